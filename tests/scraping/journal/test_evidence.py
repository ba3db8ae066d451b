"""Evidence of failed attempts: when it is kept, redaction, limits, safe storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings

from scraping import readings
from scraping.errors import (
    AuthExpired,
    Blocked,
    LayoutChanged,
    PayloadRejected,
    ResourceLost,
    ScrapingError,
    Transient,
)
from scraping.journal import evidence
from scraping.models import Evidence, MatchRef, ScrapeError, ScrapeTask, Stage, TaskState
from scraping.payloads import Payload
from scraping.readings import AttemptEvidence, Document, Reading, ReadMode, RefInfo
from scraping.worker.scrape import scrape
from tests.factories import NOW, make_ref, make_unread_match
from tests.scraping.attempts import Clock, attempt, fail_for_good, fails, stopped_clock
from tests.scraping.builders import claimed, engine_with, later, open_task, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]
PAGE = Document("page", "https://crex.example/13KM", 200, "text/html", b"<html><h1>Something new</h1></html>")
ANSWER = Document("live", "https://crex.example/live?key=abc123", 200, "application/json", b'{"half": ')
PICTURE = b"\x89PNG\r\n a picture"


@pytest.fixture(autouse=True)
def media(settings: LazySettings, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "media"
    settings.STORAGE_DIR = folder
    yield folder
    if folder.exists():
        folder.chmod(0o755)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


@pytest.fixture
def ref() -> MatchRef:
    return make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)


def saw(error: Exception, *documents: Document, screenshot: bytes = b"") -> Exception:
    readings.attach_evidence(error, AttemptEvidence(documents or (PAGE, ANSWER), screenshot))
    return error


def files(media: Path) -> list[str]:
    return sorted(file.relative_to(media).as_posix() for file in media.rglob("*") if file.is_file())


@pytest.mark.requirement("ZT-6", "FR-019", "US1.4")
class TestStore:
    def test_keeps_page_response_and_screenshot_with_the_error(self, ref: MatchRef, clock: Clock, media: Path) -> None:
        attempt(ref, clock, saw(LayoutChanged("no header"), screenshot=PICTURE))
        assert ScrapeTask.objects.get().stage == Stage.CAPTURED, "it was read; only parsing failed"
        rows = {row.kind: row for row in ScrapeError.objects.get().files.all()}
        assert set(rows) == {"page", "answer", "screenshot"}
        assert files(media) == sorted(row.path for row in rows.values())
        stem = f"20260110T120000000000_{ref.key}"
        assert files(media) == [f"error_pages/{stem}.html", f"error_pages/{stem}_live.txt", f"errors/{stem}.png"]
        assert (media / rows["screenshot"].path).read_bytes() == PICTURE
        page = (media / rows["page"].path).read_text()
        head = "<!-- https://crex.example/13KM\n200 text/html -->"
        assert page == f"{head}\n\n<html><h1>Something new</h1></html>"
        assert [row.size_bytes for row in rows.values()] == [(media / row.path).stat().st_size for row in rows.values()]

    @pytest.mark.parametrize(
        ("error", "is_kept"),
        [
            (LayoutChanged("no header"), True),
            (PayloadRejected("another match"), True),
            (Blocked("the page is a bot challenge"), True),
            (Blocked("403", http_status=403), True),
            (ValueError("a bug"), True),
            (Blocked("429", http_status=429), False),
            (Transient("502", http_status=502), False),
            (AuthExpired("401", http_status=401), False),
            (ResourceLost("browser"), False),
        ],
        ids=lambda value: f"{type(value).__name__} {value}" if isinstance(value, Exception) else None,
    )
    def test_depends_on_the_error(self, ref: MatchRef, clock: Clock, error: Exception, is_kept: bool) -> None:
        attempt(ref, clock, saw(error))
        assert Evidence.objects.exists() is is_kept

    def test_keeps_evidence_of_every_dead_task(self, ref: MatchRef, clock: Clock) -> None:
        task = fail_for_good(ref, clock, saw(Transient("502", http_status=502)))
        assert task.state == TaskState.DEAD
        assert {row.error.retry_attempt for row in Evidence.objects.all()} == {task.attempt}

    def test_keeps_nothing_without_evidence(self, ref: MatchRef, clock: Clock, media: Path) -> None:
        attempt(ref, clock, LayoutChanged("no header"))
        assert not media.exists()
        assert not Evidence.objects.exists()

    def test_keeps_the_documents_of_a_rejected_payload(self, ref: MatchRef, clock: Clock) -> None:
        """Through the whole flow: the reading succeeds, and validation rejects the payload."""

        class Brings(type(engine_with(payload_of(ref)).reader)):  # type: ignore[misc]
            def scorecard(self, target: object) -> tuple[Reading, Payload]:
                reading = Reading(RefInfo("x", "u"), ReadMode.DIRECT, NOW, {"live": ANSWER, "static_page": PAGE})
                return reading, payload_of(ref).model_copy(update={"source_event_id": "another"})

        engine = engine_with(payload_of(ref))
        engine.reader = Brings(payload_of(ref))
        scrape([open_task(ref)], engine)
        row = Evidence.objects.get()
        assert (row.kind, row.error.error_code) == ("answer", "rejected")


@pytest.mark.requirement("FS-21")
class TestFiles:
    def test_are_redacted(self, ref: MatchRef, clock: Clock, media: Path) -> None:
        body = b'<meta name="csrf-token" content="s3cr3t"> mail ann@example.org, {"token": "s3cr3t"}'
        attempt(ref, clock, saw(LayoutChanged("x"), replace(PAGE, body=body, url="https://c.example/?token=s3cr3t")))
        kept = (media / Evidence.objects.get().path).read_text()
        assert "s3cr3t" not in kept
        assert "ann@" not in kept

    def test_are_truncated_at_the_limit(
        self, ref: MatchRef, clock: Clock, media: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(evidence, "MAX_FILE_BYTES", 2048)
        monkeypatch.setattr(evidence, "MAX_PICTURE_BYTES", 2048)
        secret = b'"token": "' + b"s" * 3000
        body = b"x" * (2048 - 60) + secret
        attempt(ref, clock, saw(LayoutChanged("x"), replace(PAGE, body=body), screenshot=b"p" * 3000))
        row = Evidence.objects.get()
        assert (row.kind, row.is_truncated, row.size_bytes) == ("page", True, (media / row.path).stat().st_size)
        assert row.size_bytes <= 2048
        assert "ssss" not in (media / row.path).read_text(), "a secret across the limit is hidden too"

    def test_have_safe_names(self, clock: Clock, media: Path) -> None:
        evil = make_ref(
            make_unread_match(), captured_at=None, source_event_id="../../etc/<b>", url="https://crex.example/x"
        )
        attempt(evil, clock, saw(LayoutChanged("x"), replace(PAGE, name="../page")))
        assert len(files(media)) == 1
        assert files(media)[0].count("/") == 1
        assert not {"..", "<"} & set(files(media)[0].split("/"))

    def test_an_address_cannot_end_the_comment_above_the_page(self, ref: MatchRef, clock: Clock, media: Path) -> None:
        attempt(ref, clock, saw(LayoutChanged("x"), replace(PAGE, url="https://c.example/--><script>")))
        assert (media / Evidence.objects.get().path).read_text().count("-->") == 1


class TestLimits:
    def test_keeps_one_set_for_the_same_failure_in_ten_minutes(self, ref: MatchRef, clock: Clock) -> None:
        for _ in range(6):
            attempt(ref, clock, saw(LayoutChanged("no header"), PAGE))
        assert Evidence.objects.count() == 1
        clock.now = later(601)
        attempt(ref, clock, saw(LayoutChanged("no header"), PAGE))
        assert Evidence.objects.count() == 2

    def test_keeps_a_set_for_another_failure_and_another_match(self, ref: MatchRef, clock: Clock) -> None:
        other = make_ref(make_unread_match(), captured_at=None)
        attempt(ref, clock, saw(LayoutChanged("no header"), PAGE))
        attempt(other, clock, saw(LayoutChanged("no header"), PAGE))
        attempt(ref, clock, saw(PayloadRejected("holes"), PAGE))
        assert Evidence.objects.count() == 3

    @pytest.mark.django_db(transaction=True)
    def test_a_set_with_a_screenshot_replaces_one_without(self, ref: MatchRef, clock: Clock, media: Path) -> None:
        attempt(ref, clock, saw(LayoutChanged("no header"), PAGE))
        dead = attempt(ref, clock, saw(LayoutChanged("no header"), PAGE, screenshot=PICTURE))
        assert dead.state == TaskState.DEAD
        assert [row.error.task_id for row in Evidence.objects.all()] == [dead.pk, dead.pk]
        assert files(media) == sorted(Evidence.objects.values_list("path", flat=True))

    @pytest.mark.django_db(transaction=True)
    def test_deletes_the_oldest_above_the_total(
        self, clock: Clock, media: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(evidence, "TOTAL_MB", 1)
        big = replace(PAGE, body=b"x" * 300_000)
        for _ in range(5):
            clock.forward(1)
            attempt(make_ref(make_unread_match(), captured_at=None), clock, saw(LayoutChanged("no header"), big))
        kept = Evidence.objects.order_by("created_at")
        assert [row.created_at for row in kept] == [later(3), later(4), later(5)]
        assert len(files(media)) == 3


class TestFailingDisk:
    def failed(self, ref: MatchRef, clock: Clock) -> None:
        task = attempt(ref, clock, saw(LayoutChanged("no header")))
        assert (task.state, ScrapeError.objects.count(), Evidence.objects.count()) == (TaskState.PENDING, 1, 0)

    def test_survives_a_folder_that_is_not_writable(self, ref: MatchRef, clock: Clock, media: Path) -> None:
        media.parent.mkdir(exist_ok=True)
        media.write_text("a file where the folder should be")
        self.failed(ref, clock)
        media.unlink()

    def test_survives_a_nearly_full_disk(self, ref: MatchRef, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.files.MIN_FREE_DISK_MB", 1_000_000_000)
        self.failed(ref, clock)

    def test_survives_a_disk_that_fills_up_while_writing(
        self, ref: MatchRef, clock: Clock, media: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: Path, content: bytes) -> int:
            with self.open("wb") as file:
                file.write(content[:3])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        self.failed(ref, clock)
        assert files(media) == []


@pytest.mark.django_db(transaction=True)
def test_rows_are_written_with_their_failure_or_not_at_all(ref: MatchRef, clock: Clock, media: Path) -> None:
    """Crashes at each statement in turn: no row without its failure; the file is removed later."""
    error = saw(LayoutChanged("no header"), PAGE)
    claim = claimed(open_task(ref))
    cuts = 0
    while not fails(claim, error, cut_at=cuts + 1):
        cuts += 1
        clock.forward(0.001)  # files are named by the time
        assert (Evidence.objects.count(), ScrapeError.objects.count()) == (0, 0), f"after statement {cuts}"
    assert cuts > 5
    row = Evidence.objects.get()
    orphans = {file.relative_to(media).as_posix() for file in evidence.orphan_files(clock.now + timedelta(days=36500))}
    assert row.path not in orphans
    assert len(orphans) == len(files(media)) - 1 > 0


def test_reads_no_path_outside_the_folder(media: Path) -> None:
    (media / "error_pages").mkdir(parents=True)
    (media.parent / "secret").write_text("s3cr3t")
    (media / "match_logs").write_text("of another kind")
    for path in ("error_pages/../../secret", "error_pages/gone.html", "match_logs"):
        assert evidence.content_of(Evidence(path=path)) is None


class TestEvidenceOf:
    def test_the_innermost_error_with_evidence_counts(self) -> None:
        error = ScrapingError("x")
        readings.attach_evidence(error, AttemptEvidence((ANSWER,)))
        readings.attach_evidence(error, AttemptEvidence((PAGE,), PICTURE))
        assert readings.evidence_of(error) == AttemptEvidence((ANSWER,), PICTURE)

    def test_an_error_without_evidence_has_none(self) -> None:
        assert not readings.evidence_of(ValueError("x"))
