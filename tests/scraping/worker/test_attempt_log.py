"""The log line of an attempt: every field, good or bad; unchanged polls are sampled."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from scraping.errors import LayoutChanged, ScrapingError, Transient
from scraping.models import MatchRef, Scraper, ScrapeTask
from scraping.payloads import Integrity
from scraping.readings import (
    AttemptEvidence,
    Document,
    Reading,
    ReadMode,
    RefInfo,
    SessionFacts,
    attach_evidence,
    attempt_facts,
    note_content,
)
from scraping.worker import scrape as scrape_module
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import NOW, make_ref, make_unread_match
from tests.scraping.builders import POLICIES, Outcome, ScriptedReader, chasing, later, open_task, payload_of
from victoryline.lib import logs

pytestmark = [pytest.mark.both, pytest.mark.django_db]
Lines = list[dict[str, Any]]
PAGE = Document("page", "https://crex.example/13KM?session=s3cr3t", 200, "text/html", b"<html>")
# The specified fields of a line, by group.
GROUPS = {
    "proxy": {"proxy_pool", "geo", "session_id", "ip_hash"},
    "network": {"bytes_in_est", "requests_total", "requests_blocked", "xhr_captured_count"},
    "result": {"status", "error_type", "http_status", "duration_ms"},
    "integrity": {"schema_version", "null_field_rate", "missing_required_fields"},
}
NAMES = {"ts", "service", "run_id", "match_id", "source_event_id", "attempt", "state", "job_id", "task_id", *GROUPS}


@pytest.fixture
def lines() -> Iterator[Lines]:
    """The lines as they are written, with their context."""
    written: Lines = []
    formatter = logs.formatter("json")

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(json.loads(formatter.format(record)))

    logger, handler = logging.getLogger("scraping"), Handler()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.fixture
def ref() -> MatchRef:
    return make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)


def as_the_reader_does() -> None:
    facts = attempt_facts.get()
    assert facts is not None
    facts.session = SessionFacts("5e55", "gateway", "de", "abc123")
    documents = {"page": PAGE, "live": PAGE}
    facts.add(Reading(RefInfo("x", "u"), ReadMode.DIRECT, NOW, documents, bytes_in=900, requests_made=2))
    note_content("crex.match.v1", Integrity(missing_fields=("venue",), null_field_rate=0.125))


def engine_of(*outcomes: Outcome, every: int = 1) -> Engine:
    reader = ScriptedReader(*outcomes, before=as_the_reader_does)
    return Engine(worker_id="w-1", reader=reader, policies=POLICIES, log_unchanged_every=every)


def of_attempts(lines: Lines) -> Lines:
    return [line for line in lines if line.get("action") in ("attempt", "attempt_failed")]


@pytest.mark.requirement("FS-15", "ZT-10")
class TestLine:
    def test_of_a_good_attempt_has_every_field(self, ref: MatchRef, lines: Lines) -> None:
        task_id = open_task(ref)
        scrape([task_id], engine_of(payload_of(ref, chasing(100))))
        (line,) = of_attempts(lines)
        assert set(line) >= NAMES
        assert {name: set(line[name]) for name in GROUPS} == GROUPS
        assert (line["level"], line["match_id"], line["source_event_id"]) == ("INFO", ref.key, ref.source_event_id)
        assert (line["task_id"], line["attempt"], line["state"]) == (task_id, 1, "DONE")
        assert line["scraper_id"] == str(Scraper.objects.get().pk)
        assert line["proxy"] == {"proxy_pool": "gateway", "geo": "de", "session_id": "5e55", "ip_hash": "abc123"}
        assert line["network"] == {
            "bytes_in_est": 900, "requests_total": 2, "requests_blocked": 0, "xhr_captured_count": 1,
        }  # fmt: skip
        assert line["result"] | {"duration_ms": 0} == {
            "status": "success", "error_type": None, "http_status": 200, "duration_ms": 0,
        }  # fmt: skip
        assert line["integrity"] == {
            "schema_version": "crex.match.v1", "null_field_rate": 0.125, "missing_required_fields": ["venue"],
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("error", "status", "type_"),
        [(Transient("502", http_status=502), "soft_fail", "network"), (LayoutChanged("x"), "hard_fail", "layout")],
    )
    def test_of_a_bad_attempt_has_them_too(
        self, ref: MatchRef, lines: Lines, error: ScrapingError, status: str, type_: str
    ) -> None:
        task_id = open_task(ref)
        scrape([task_id], engine_of(error))
        (line,) = of_attempts(lines)
        assert set(line) >= NAMES
        assert {name: set(line[name]) for name in GROUPS} == GROUPS
        assert (line["match_id"], line["task_id"], line["attempt"]) == (ref.key, task_id, 1)
        assert (line["result"]["status"], line["result"]["error_type"]) == (status, type_)
        assert line["result"]["http_status"] == error.http_status
        assert line["state"] == "NAVIGATING"
        assert line["proxy"]["session_id"] == "5e55"

    def test_every_other_line_of_the_attempt_names_it(self, ref: MatchRef, lines: Lines) -> None:
        task_id = open_task(ref)
        scrape([task_id], engine_of(ValueError("a bug")))
        assert {(line["match_id"], line["task_id"], line["attempt"], line["job_id"]) for line in lines} == {
            (ref.key, task_id, 1, None)
        }


@pytest.mark.requirement("FS-15")
class TestSampling:
    def polls(self, ref: MatchRef, number: int, engine: Engine) -> None:
        for _ in range(number):
            scrape([open_task(ref)], engine)

    def test_a_change_is_always_logged(self, ref: MatchRef, lines: Lines) -> None:
        payloads = [payload_of(ref, chasing(100 + run), at=later(run)) for run in range(3)]
        self.polls(ref, 3, engine_of(*payloads, every=0))
        assert [line["event"] for line in of_attempts(lines)] == [f"{ref.key}: scorecard by direct, changed"] * 3

    @pytest.mark.parametrize(("every", "logged"), [(0, 0), (1, 12), (4, 3)])
    def test_one_of_so_many_unchanged_polls_is_logged(
        self, ref: MatchRef, lines: Lines, every: int, logged: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = engine_of(payload_of(ref, chasing(100)), every=every)
        self.polls(ref, 1, engine)
        lines.clear()
        rendered = []
        original = scrape_module.attempt_log._fields
        monkeypatch.setattr(
            scrape_module.attempt_log, "_fields", lambda *args: (rendered.append(1), original(*args))[1]
        )
        self.polls(ref, 12, engine)
        assert MatchRef.objects.get().unchanged_polls >= 12
        assert len(of_attempts(lines)) == len(rendered) == logged, "what is left out is not rendered either"
        assert {line["event"] for line in of_attempts(lines)} <= {f"{ref.key}: scorecard by direct, unchanged"}
        assert all(line["scraper_id"] == str(Scraper.objects.get().pk) for line in of_attempts(lines))


@pytest.mark.requirement("FR-014")
class TestFailure:
    def test_names_scraper_address_selector_and_responses(self, ref: MatchRef, lines: Lines) -> None:
        scrape([open_task(ref)], engine_of(payload_of(ref, chasing(100))))
        error = LayoutChanged("not on the page: score", url=PAGE.url, selector=".score, .total")
        attach_evidence(error, AttemptEvidence((PAGE,)))
        task_id = open_task(ref, at=NOW + timedelta(seconds=1))
        for _ in range(2):
            ScrapeTask.objects.filter(pk=task_id).update(run_at=NOW)
            scrape([task_id], engine_of(error))
        *_, retried, dead = of_attempts(lines)
        assert (retried["level"], dead["level"]) == ("WARN", "ERROR")
        for line in (retried, dead):
            assert line["scraper_id"] == str(Scraper.objects.get().pk)
            assert (line["error_type"], line["error_code"]) == ("parsing", "layout")
            assert line["error_message"] == "not on the page: score"
            assert (line["selector"], line["url"]) == (".score, .total", "https://crex.example/13KM?session=***")
            assert line["requests"] == [
                {"name": "page", "url": "https://crex.example/13KM?session=***", "status": 200,
                 "content_type": "text/html", "bytes": 6}
            ]  # fmt: skip
        assert "LayoutChanged: not on the page: score" in dead["stack_trace"]
        assert "s3cr3t" not in json.dumps(lines)
