"""Fixture lists of the coming days: read when due; a failed day affects no other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping import journal
from scraping.errors import Blocked, Gone, SchemaBreak, Transient
from scraping.journal import evidence
from scraping.models import Match, MatchRef, ScrapeError, ScrapeTask, Source, TaskState
from scraping.payloads import DiscoveredMatch, Resource, Sport, Status, Team
from scraping.readings import Document, Reading, ReadMode, RefInfo, Request, Site
from scraping.sources import ADAPTERS, parsing
from scraping.sources.base import ListPlan
from scraping.sources.crex.adapter import CrexAdapter
from scraping.sources.scoreboard.adapter import ScoreboardAdapter
from scraping.worker import scrape
from scraping.worker.engine import Engine
from scraping.worker.list_tasks import MAX_FIXTURE_LISTS
from tests.factories import make_ref, make_source
from tests.scraping.builders import LEASE_SECONDS, POLICIES, ScriptedReader, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("ZT-12")]


def a_match(key: str, start: datetime | None = None) -> DiscoveredMatch:
    return DiscoveredMatch(
        source_event_id=key,
        url=f"https://crex.example/match/{key}",
        sport=Sport.CRICKET,
        status=Status.UPCOMING,
        start_time=start,
        teams=(Team(name=f"Home {key}"), Team(name=f"Away {key}")),
    )


class ByDay(CrexAdapter):
    """A site with one live match and one fixture for each day."""

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        return [a_match("now")]

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return ListPlan("", (), (Request("day", f"{base_url}/{day}"),))

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return [a_match(str(day))]


class DayReader(ScriptedReader):
    """Fails for the given days, counted from today."""

    def __init__(self, failing: Mapping[int, Exception]) -> None:
        super().__init__(payload_of(make_ref()))
        today = timezone.now().date()
        self.failing = {str(today + timedelta(days=number)): error for number, error in failing.items()}
        self.asked: list[str] = []

    def match_list(self, site: Site, adapter: Any, **_: Any) -> Reading:
        return Reading(RefInfo("", site.base_url), ReadMode.VISIT, timezone.now(), {})

    def planned_list(self, site: Site, plan: ListPlan, *, visits_from: datetime | None = None) -> Reading:
        day = plan.requests[0].url.rpartition("/")[2]
        self.asked.append(day)
        if day in self.failing:
            raise self.failing[day]
        return Reading(RefInfo("", plan.requests[0].url), ReadMode.DIRECT, timezone.now(), {})


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setitem(ADAPTERS, "crex", ByDay())
    return make_source("crex")


def discover(source: Source, failing: Mapping[int, Exception] | None = None) -> DayReader:
    """Runs one task that reads the source's lists."""
    reader, now = DayReader(failing or {}), timezone.now()
    journal.open_tasks([journal.NewTask(source.pk, None, Resource.DISCOVERY, 0, now)], now=now)
    task = ScrapeTask.objects.filter(resource=Resource.DISCOVERY).latest("pk")
    claim = journal.claim(task.pk, worker_id="w-1", lease_seconds=LEASE_SECONDS, now=now)
    assert claim is not None
    scrape.run([claim], Engine(worker_id="w-1", reader=reader, policies=POLICIES))
    task.refresh_from_db()
    assert task.state == TaskState.SUCCESS
    return reader


def known() -> set[str]:
    keys = MatchRef.objects.filter(match__title__startswith="Home").values_list("source_event_id", flat=True)
    return set(keys)


def days(*numbers: int) -> set[str]:
    return {str(timezone.now().date() + timedelta(days=number)) for number in numbers}


def test_reads_today_and_the_next_three_days(source: Source) -> None:
    discover(source)
    assert known() == {"now"} | days(0, 1, 2, 3)
    assert Match.objects.get(title="Home now vs Away now").team_a == "Home now"


def test_reads_them_only_when_due(source: Source) -> None:
    discover(source)
    assert discover(source).asked == []
    Source.objects.update(last_fixtures_at=timezone.now() - timedelta(minutes=31))
    source.refresh_from_db()
    assert len(discover(source).asked) == 4


@pytest.mark.parametrize("error", [Transient("slow"), SchemaBreak("another shape")])
def test_a_failed_day_keeps_the_list_and_the_other_days(source: Source, error: Exception) -> None:
    discover(source, {1: error})
    assert known() == {"now"} | days(0, 2, 3)
    source.refresh_from_db()
    assert source.last_fixtures_at is not None
    again = source.last_fixtures_at + timedelta(minutes=30) - timezone.now()
    assert timedelta(minutes=3) < again < timedelta(minutes=6)


def test_a_blocked_day_stops_the_other_days(source: Source) -> None:
    reader = discover(source, {0: Blocked("no")})
    assert (len(reader.asked), known()) == (1, {"now"})


def test_skips_sources_without_fixture_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(ScoreboardAdapter):
        def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
            return [a_match("now")]

    monkeypatch.setitem(ADAPTERS, "crex", Plain())
    assert discover(make_source("crex")).asked == []


def test_reads_lists_named_by_the_first_one(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def more(_: object, readings: list[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        return (Request("more", f"{base_url}/{day}-{len(readings)}"),) if len(readings) < 3 else ()

    def parse(_: object, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return [a_match(reading.ref.url.rpartition("/")[2])]

    monkeypatch.setattr(ByDay, "more_fixtures", more, raising=False)
    monkeypatch.setattr(ByDay, "parse_fixtures", parse)
    discover(source)
    assert known() == {"now"} | {f"{day}{list_}" for day in days(0, 1, 2, 3) for list_ in ("", "-1", "-2")}


def test_a_missing_named_list_counts_as_empty(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def more(_: object, readings: list[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        return tuple(Request(f"more{n}", f"{base_url}/{n}") for n in (7, 8, 9)) if len(readings) == 1 else ()

    def parse(_: object, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return [a_match(name) for name, one in reading.documents.items() if one.status == 200]

    def ask(self: DayReader, site: Site, plan: ListPlan, **_: Any) -> Reading:
        if plan.requests[-1].name == "more8" or len(plan.requests) > 1:
            raise Gone("no such list", http_status=404)
        found = {one.name: Document(one.name, one.url, 200, "application/json", b"{}") for one in plan.requests}
        return Reading(RefInfo("", plan.requests[0].url), ReadMode.DIRECT, timezone.now(), found)

    monkeypatch.setattr(ByDay, "more_fixtures", more, raising=False)
    monkeypatch.setattr(ByDay, "parse_fixtures", parse)
    monkeypatch.setattr(DayReader, "planned_list", ask)
    discover(source)
    assert known() == {"now", "day", "more7", "more9"}


def test_rejects_lists_without_an_end(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    again = (Request("more", f"{source.base_url}/again"),)
    monkeypatch.setattr(ByDay, "more_fixtures", lambda *_: again, raising=False)
    assert len(discover(source).asked) == 4 * MAX_FIXTURE_LISTS
    assert known() == {"now"}


def test_reads_a_list_of_all_days_once(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ListPlan("", (), (Request("days", f"{source.base_url}/all"),))
    monkeypatch.setattr(ByDay, "fixture_plan", lambda *_: plan)
    assert discover(source).asked == ["all"]
    assert known() == {"now"} | days(0, 1, 2, 3)


class TestBadRows:
    """Rows that could not be read: the list is registered, and the rows are an error with the list as evidence."""

    @pytest.fixture(autouse=True)
    def rows(self, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
        def parse(_: object, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
            return parsing.unique_matches(["good", "bad"], row_to_match)

        def listed(_: object, site: Site, adapter: Any, **__: Any) -> Reading:
            page = Document("page", site.base_url, 200, "text/html", b"<ul><li>a list</li></ul>")
            return Reading(RefInfo("", site.base_url), ReadMode.VISIT, timezone.now(), {"page": page})

        monkeypatch.setattr(ByDay, "parse_list", parsing.parses(parse))
        monkeypatch.setattr(DayReader, "match_list", listed)

    @pytest.mark.requirement("SO-12")
    def test_are_reported_once_with_evidence_and_fail_nothing(self, source: Source) -> None:
        discover(source)
        assert "now" in known()
        error = ScrapeError.objects.get()
        assert (error.error_class, error.operation, error.match) == ("drift", "discovery", None)
        assert "rows of a list could not be read and are left out: 1" in error.error_message
        content = evidence.content_of(error.files.get())
        assert content is not None
        assert b"a list" in content
        discover(source)
        assert ScrapeError.objects.count() == 1


def row_to_match(row: str) -> DiscoveredMatch:
    if row == "bad":
        raise SchemaBreak("a row without an id")
    return a_match("now")
