"""Error rows: grouping, resolution, and the detection of a changed layout."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction

from monitoring.models import Alert, AuditEntry
from scraping import journal
from scraping.errors import Blocked, LayoutChanged, PayloadRejected, SchemaBreak, Transient
from scraping.journal import error_log
from scraping.matches import discovery, lifecycle, scrapers
from scraping.models import Breaker, BreakerState, ErrorGroup, MatchRef, ScrapeError, Scraper, ScrapeTask, TaskState
from tests.factories import NOW, make_match, make_ref, make_scraper, make_source, make_unread_match
from tests.monitoring.rows import make_error, make_task
from tests.scraping.attempts import Clock, attempt, fail_for_good, fingerprint, stopped_clock
from tests.scraping.builders import later, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


@pytest.fixture
def ref() -> MatchRef:
    return make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)


def methods() -> set[str]:
    return set(ScrapeError.objects.values_list("resolution_method", flat=True))


def raised(error: Exception) -> Exception:
    """Returns an error with a traceback."""
    try:
        raise error
    except Exception as caught:  # noqa: BLE001
        return caught


def broken_here(text: str) -> Exception:
    return raised(KeyError(text))


def broken_there(text: str) -> Exception:
    return raised_elsewhere(KeyError(text))


def raised_elsewhere(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001
        return caught


@pytest.mark.requirement("BX-9")
class TestGroups:
    INDIA = ("India", "Australia", "India vs Australia", "13KM")
    KENYA = ("Kenya", "Nepal", "Kenya vs Nepal", "9QX")

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (Transient("live answered 502 after 31 ms"), Transient("live answered 503 after 7 ms")),
            (Transient("asked https://a.example/x?y=1"), Transient("asked https://b.example/z")),
            (PayloadRejected("requested 13KM and received 14AB"), PayloadRejected("requested 9QX and received 7")),
            (LayoutChanged("India has no innings"), LayoutChanged("Kenya has no innings")),
            (PayloadRejected("India vs Australia, not 4.2"), PayloadRejected("Kenya vs Nepal, not 17.6")),
            (
                SchemaBreak("the live answer's `a` is '^3X', not keys"),
                SchemaBreak("the live answer's `a` is '', not keys"),
            ),
            (broken_here("India"), broken_here("Kenya")),
        ],
        ids=lambda error: str(error)[:40],
    )
    def test_the_same_cause_with_other_names_and_numbers(self, one: Exception, two: Exception) -> None:
        assert fingerprint(one, *self.INDIA) == fingerprint(two, *self.KENYA)

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (LayoutChanged("no header; tried .score"), LayoutChanged("no header; tried .result")),
            (SchemaBreak("the live answer's `a` is ''"), SchemaBreak("the live answer's `b` is ''")),
            (LayoutChanged("no header"), SchemaBreak("no header")),
            (LayoutChanged("no header"), Blocked("no header")),
            (broken_here("India"), broken_there("India")),
            (broken_here("India"), raised(ValueError("India"))),
        ],
        ids=lambda error: str(error)[:40],
    )
    def test_another_cause(self, one: Exception, two: Exception) -> None:
        assert fingerprint(one) != fingerprint(two)

    def test_ignores_a_name_inside_a_word(self) -> None:
        message = "no `oman` in Oman's romance"
        assert error_log._normalized(message, ("Oman",)) == "no `oman` in #'s romance"

    def test_have_first_and_last_time_count_and_sample(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, LayoutChanged("no header in 13KM"))
        clock.forward(60)
        attempt(ref, clock, LayoutChanged("no header in 14AB"))
        group = ErrorGroup.objects.get()
        assert (group.count, group.sample_message) == (2, "no header in 13KM")
        assert (group.first_seen_at, group.last_seen_at) == (NOW, clock.now)
        assert clock.now >= later(60)

    def test_two_workers_at_once_count_a_new_cause_twice(self) -> None:
        source = make_source()
        for _ in range(2):
            with transaction.atomic():
                error_log.record(
                    error_log.ErrorReport(source.pk, Transient("reset"), operation="scorecard", attempt=1, now=NOW)
                )
        assert ErrorGroup.objects.get().count == 2


@pytest.mark.requirement("DM-5")
class TestResolution:
    def good(self, ref: MatchRef, clock: Clock) -> None:
        clock.forward(3)
        attempt(ref, clock, payload_of(ref, at=clock.now))

    def test_by_an_automatic_retry(self, ref: MatchRef, clock: Clock) -> None:
        self.good(ref, clock)
        attempt(ref, clock, Transient("502"))
        self.good(ref, clock)
        row = ScrapeError.objects.get()
        assert (row.resolved, row.resolution_method, row.resolution_time) == (True, "auto_retry", clock.now)

    def test_by_a_fresh_scraper(self, ref: MatchRef, clock: Clock) -> None:
        self.good(ref, clock)
        attempt(ref, clock, Transient("502"))
        scrapers.restart(Scraper.objects.get(), reason="silent", now=clock.now)
        self.good(ref, clock)
        assert methods() == {"restart"}

    def test_by_a_pause_after_which_a_fresh_scraper_began(self, ref: MatchRef, clock: Clock) -> None:
        self.good(ref, clock)
        fail_for_good(ref, clock, ValueError("a bug"))
        lifecycle.pause(match_id=ref.match_id, until=later(600), reason="x", actor="Ann", now=clock.now)
        lifecycle.resume(match_id=ref.match_id, actor="Ann", now=clock.now)
        self.good(ref, clock)
        assert methods() == {"restart"}

    def test_by_an_open_breaker(self, ref: MatchRef, clock: Clock) -> None:
        self.good(ref, clock)
        for _ in range(5):
            attempt(ref, clock, Transient("502"))
        assert Breaker.objects.get(ref=ref).state != BreakerState.CLOSED
        clock.forward(120)
        self.good(ref, clock)
        assert methods() == {"circuit_breaker"}

    def test_by_a_person_who_retried_it(self, ref: MatchRef, clock: Clock) -> None:
        dead = fail_for_good(ref, clock, ValueError("a bug"))
        clock.forward(60)
        assert journal.retry(task_ids=[dead.pk], actor="Ann", now=clock.now).retried == [dead.pk]
        self.good(ref, clock)
        assert methods() == {"manual"}
        assert ScrapeTask.objects.get(pk=dead.pk).state == TaskState.SUCCESS

    def test_by_a_person(self) -> None:
        errors = [make_error(now=NOW) for _ in range(3)]
        ids = [error.pk for error in errors[:2]]
        assert error_log.resolve_by_hand(ids, actor="Ann", now=later(5)) == 2
        assert error_log.resolve_by_hand(ids, actor="Ann", now=later(9)) == 0, "the first resolution is kept"
        rows = ScrapeError.objects.order_by("pk").values_list("resolved", "resolution_method", "resolution_time")
        assert list(rows) == [(True, "manual", later(5))] * 2 + [(False, "", None)]
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.action_type, entry.target) == ("Ann", "errors_resolved", "2 errors")

    def test_not_by_another_source_of_the_same_match(self, ref: MatchRef, clock: Clock) -> None:
        other = make_ref(ref.match, source="other", captured_at=None)
        attempt(ref, clock, Transient("502"))
        error_log.resolve(other, now=clock.now)
        assert not ScrapeError.objects.get().resolved
        error_log.resolve(ref, now=clock.now)
        assert ScrapeError.objects.get().resolved

    def test_of_each_error_by_what_followed(self, clock: Clock) -> None:
        ref = make_ref(make_match())
        scraper = make_scraper(ref)
        group = ErrorGroup.objects.create(
            fingerprint="f",
            source=ref.source,
            error_class="transient",
            error_code="x",
            first_seen_at=NOW,
            last_seen_at=NOW,
        )
        make_error(ref.match, now=NOW, group=group, scraper_id=uuid4())
        make_error(ref.match, now=NOW, group=group, scraper_id=scraper.pk)
        assert error_log.resolve(ref, now=later(1)) == 2
        assert list(ScrapeError.objects.order_by("pk").values_list("resolution_method", flat=True)) == [
            "restart",
            "auto_retry",
        ]

    def test_of_a_list_of_matches_when_it_is_read_again(self, clock: Clock) -> None:
        source, other = make_source(), make_source("other")
        for each in (source, other):
            with transaction.atomic():
                error_log.record(
                    error_log.ErrorReport(each.pk, LayoutChanged("no list"), operation="discovery", attempt=1, now=NOW)
                )
        round_of = error_log.ErrorReport(source.pk, LayoutChanged("no round"), operation="round", attempt=1, now=NOW)
        error_log.record(round_of)
        discovery.register(source, [], now=later(30))
        resolved = ScrapeError.objects.filter(resolved=True).get()
        assert resolved.group is not None
        assert (resolved.group.source_id, resolved.resolution_method) == (source.pk, "auto_retry")

    def test_of_a_round_when_its_task_succeeds(self) -> None:
        mine, other = make_error(now=NOW, task=make_task(None)), make_error(now=NOW)
        assert mine.task_id is not None
        assert error_log.resolve_task(mine.task_id, now=later(1)) == 1
        assert list(ScrapeError.objects.filter(resolved=False)) == [other]


@pytest.mark.requirement("SO-10")
def test_a_task_that_succeeded_has_no_error(ref: MatchRef, clock: Clock) -> None:
    attempt(ref, clock, Transient("502", http_status=502))
    task = attempt(ref, clock, payload_of(ref))
    assert (task.state, task.error, task.error_class, task.reason) == (TaskState.SUCCESS, None, "", "")
    assert task.transitions.filter(to_state=TaskState.FAILED).count() == 1
    assert task.errors.get().error_message == "502"


@pytest.mark.requirement("EC-1")
class TestChangedLayout:
    DRIFT = "no match header found; tried .header, .team with .name"

    def drift(self, ref: MatchRef, clock: Clock, times: int) -> None:
        """Makes failed attempts, without those postponed by an open breaker. Other matches of the source are read in
        between; else the whole source would count as changed.
        """
        wanted = ScrapeError.objects.count() + times
        while ScrapeError.objects.count() < wanted:
            attempt(ref, clock, LayoutChanged(self.DRIFT))
            Breaker.objects.filter(source=ref.source).update(failure_count=0)

    def test_the_eleventh_failure_in_a_row_is_critical(
        self, ref: MatchRef, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.drift(ref, clock, 10)
        assert not [record for record in caplog.records if record.levelno == logging.CRITICAL]
        assert not Alert.objects.filter(key__startswith="layout:").exists()
        self.drift(ref, clock, 1)
        logged = [record for record in caplog.records if record.levelno == logging.CRITICAL]
        assert len(logged) == 1
        assert ref.url in logged[0].getMessage()
        assert ".header, .team with .name" in logged[0].getMessage()
        alert = Alert.objects.get(key=f"layout:{ref.match_id}")
        assert (alert.severity, alert.closed_at) == ("critical", None)

    def test_from_then_on_it_is_tried_every_five_minutes(self, ref: MatchRef, clock: Clock) -> None:
        self.drift(ref, clock, 11)
        task = ScrapeTask.objects.latest("pk")
        at = task.run_at if task.state == TaskState.PENDING else MatchRef.objects.get(pk=ref.pk).next_poll_at
        assert at is not None
        assert at - clock.now == timedelta(minutes=5)

    def test_another_kind_of_failure_ends_the_row(self, ref: MatchRef, clock: Clock) -> None:
        self.drift(ref, clock, 9)
        attempt(ref, clock, Transient("502"))
        self.drift(ref, clock, 2)
        assert not Alert.objects.filter(key__startswith="layout:").exists()

    def test_the_first_good_reading_ends_it(self, ref: MatchRef, clock: Clock) -> None:
        self.drift(ref, clock, 11)
        clock.forward(400)
        attempt(ref, clock, payload_of(ref, at=clock.now))
        assert Alert.objects.get(key=f"layout:{ref.match_id}").closed_at is not None
        assert not ScrapeError.objects.filter(resolved=False).exists()
