"""The metrics that the specification names, with their labels, after real attempts of a worker.

`instance` is Prometheus' own label: it is added to what a worker exports when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries

from monitoring.health.log import log_health
from scraping.browser.health import RECYCLE_REASONS, LaunchCause
from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.errors import ReadTimeout, Transient
from scraping.models import Breaker, BreakerState
from scraping.payloads import Figures, Lineup, LineupPlayer, Lineups, PlayerFigure
from scraping.stats import attempt_metrics
from scraping.stats.read_stats import ReadStats
from scraping.worker.heartbeat import Heartbeat
from tests.factories import NOW, make_match, make_ref
from tests.monitoring.rows import make_watched, make_worker
from tests.scraping.attempts import Clock, attempt, stopped_clock
from tests.scraping.builders import chasing, engine_with, payload_of

pytestmark = pytest.mark.django_db

WITHOUT_MATCHES = 30_000  # bytes of the page of a new process
QUALITY = {"endpoint_family", "league_id"}
HISTOGRAM = ("_bucket", "_sum", "_count")
CONTRACT: dict[str, set[str]] = {
    # SO-14
    "scraper_pids_current": set(),
    "scraper_contexts_active": set(),
    "scraper_pages_open": set(),
    "scraper_browser_uptime_seconds": set(),
    "scraper_queue_depth": {"priority"},
    "scraper_freshness_seconds_bucket": {"le"},
    "scraper_freshness_seconds_sum": set(),
    "scraper_freshness_seconds_count": set(),
    "scraper_scrapes_total": {"domain", "status"},
    "scraper_recycles_total": {"reason"},
    "scraper_data_staleness_seconds": {"quantile"},
    "scraper_data_staleness_seconds_sum": set(),
    "scraper_data_staleness_seconds_count": set(),
    # FR-015
    "scraper_errors_total": {"match_id", "error_type"},
    "scraper_updates_total": {"match_id"},
    "scraper_update_latency_seconds_bucket": {"match_id", "le"},
    "scraper_memory_bytes": {"match_id"},
    "active_scrapers_count": set(),
    "data_staleness_seconds": {"match_id"},
    # FS-16
    "scraper_attempts_total": {"source"},
    "scraper_success_total": {"source"},
    "scraper_fail_total": {"source", "type", "reason"},
    "integrity_null_rate": {"match_id", *QUALITY},
    "integrity_required_missing_total": {"source", "field", *QUALITY},
    "data_integrity_score": {"source"},
    "scraper_bytes_in_est_total": {"source"},
}
# Without a series until a page is visited; tests of the browser prove their labels.
DECLARED = ("scraper_navigation_failures_total", "scraper_requests_total", "scraper_requests_blocked_total")
TYPES = {"scraper_freshness_seconds": "histogram", "scraper_update_latency_seconds": "histogram",
         "scraper_scrape_duration_seconds": "histogram", "scraper_data_staleness_seconds": "summary"}  # fmt: skip
REASONS = {"uptime", "task_count", "memory", "fault", "manual"}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as clock:
        yield clock


def read(client: Client) -> Samples:
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


@pytest.fixture
def beating(tmp_path) -> Heartbeat:
    host = BrowserHost(BrowserOptions(executable=tmp_path / "chromium", owner="w-1"))
    return Heartbeat(engine_with(ValueError("never read")), Sessions(host), every_seconds=0.01)


@pytest.mark.requirement("SO-14", "FR-015", "FS-16")
def test_every_agreed_metric_has_its_name_and_labels(client: Client, clock: Clock, beating: Heartbeat) -> None:
    make_worker(now=clock.now)
    ref = make_ref(make_match())
    attempt(ref, clock, payload_of(ref, chasing(95, metadata={"series": "Cup"}), at=clock.now))
    attempt(ref, clock, Transient("connection reset"))
    stats = ReadStats()
    stats.payload("crex", payload_of(ref, chasing(96), integrity={"missing_fields": ("venue",)}))
    stats.flush(now=timezone.now())
    beating.beat(now=clock.now)
    log_health(clock.now)
    found = read(client)
    for name, labels in CONTRACT.items():
        series = [{key for key, _ in of} for each, of in found if each == name]
        assert series, f"{name} is not served"
        assert all(each == labels for each in series), f"{name} has {series[0]}, agreed is {labels}"
    assert {dict(of)["reason"] for name, of in found if name == "scraper_recycles_total"} == REASONS
    text = client.get("/metrics").content.decode()
    totals = {name: "counter" for name in (*CONTRACT, *DECLARED) if name.endswith("_total")}
    for name, kind in (TYPES | totals).items():
        assert f"# TYPE {name} {kind}\n" in text


@pytest.mark.requirement("SO-14")
def test_every_replaced_browser_has_an_agreed_reason() -> None:
    assert set(RECYCLE_REASONS) == set(LaunchCause) - {LaunchCause.FIRST}
    assert set(RECYCLE_REASONS.values()) == REASONS


class TestCounters:
    def sample(self, client: Client, name: str, **labels: str) -> float:
        return read(client).get((name, frozenset(labels.items())), 0.0)

    @pytest.mark.requirement("FR-015")
    def test_count_polls_and_failures_and_keep_them_when_the_rows_go(self, client: Client, clock: Clock) -> None:
        ref = make_ref(make_match(), source_event_id="counted")
        attempt(ref, clock, payload_of(ref, chasing(95), at=clock.now))
        for _ in range(2):
            clock.forward(2)
            attempt(ref, clock, ReadTimeout("too slow"))
        before = read(client)
        assert self.sample(client, "scraper_updates_total", match_id=ref.key) == 1
        assert self.sample(client, "scraper_errors_total", match_id=ref.key, error_type="network") == 2
        assert self.sample(client, "scraper_update_latency_seconds_count", match_id=ref.key) == 1
        ref.match.delete()
        counted = {key: value for key, value in read(client).items() if key[0].endswith("_total")}
        assert not [key for key, value in before.items() if key in counted and counted[key] < value]
        assert {key for key in before if key[0].startswith(("scraper_errors_total", "scraper_scrapes"))} <= {*counted}

    def test_series_of_a_match_end_with_its_watch(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attempt_metrics, "KEPT_SECONDS", -1.0)
        ref, gone = make_ref(make_match(), is_watched=True), make_ref(make_match(), is_watched=False)
        for one in (ref, gone):
            attempt_metrics.updated(one.key, NOW, NOW)
            attempt_metrics.failed("crex", match_key=one.key, error_type="network", is_soft=True, reason="timeout")
        ReadStats().flush(now=NOW)
        names = {name for name, labels in read(client) if ("match_id", gone.key) in labels}
        assert not names
        assert self.sample(client, "scraper_updates_total", match_id=ref.key) >= 1

    def test_leagues_are_bounded(self) -> None:
        for number in range(attempt_metrics.MAX_LEAGUES + 20):
            ref = make_ref(make_match(), source_event_id=f"league-{number}")
            payload = payload_of(ref, chasing(1, metadata={"series": f"League {number}"}))
            attempt_metrics.completeness("crex", payload)
        assert len(set(attempt_metrics._leagues.values())) <= attempt_metrics.MAX_LEAGUES + 1
        attempt_metrics._leagues.clear()


@pytest.mark.requirement("FS-16")
def test_line_ups_and_ratings_have_null_rates_of_their_own(client: Client) -> None:
    def eleven(positions: int) -> tuple[LineupPlayer, ...]:
        return tuple(
            LineupPlayer(player_id=str(n), name=f"P{n}", position="M" if n < positions else "", is_starter=True)
            for n in range(11)
        )

    about = {"source": "crex", "captured_at": NOW, "source_event_id": "lined-up"}
    sides = (Lineup(side="team_a", formation="4-4-2", players=eleven(11)), Lineup(side="team_b", players=eleven(0)))
    attempt_metrics.completeness("crex", Lineups(**about, lineups=sides))
    figures = tuple(
        PlayerFigure(side="team_a", role="rating", player_id=str(n), name=f"P{n}", values=values)
        for n, values in enumerate([{"minutes": 90, "rating": 7.1}, {"minutes": 90}, {"goals": 0}])
    )
    attempt_metrics.completeness("crex", Figures(**about, figures=figures))
    rates = {
        dict(labels)["endpoint_family"]: value
        for (name, labels), value in read(client).items()
        if name == "integrity_null_rate" and ("match_id", "crex_lined-up") in labels
    }
    assert rates == {"lineups": 0.5, "formation": 0.5, "ratings": 0.5}
    about["source_event_id"] = "too-early"  # none yet, or squads without an eleven: nothing is missing
    squads = tuple(
        Lineup(side=side, players=(LineupPlayer(player_id="1", name="P1"),)) for side in ("team_a", "team_b")
    )
    for early in (Lineups(**about), Lineups(**about, lineups=squads)):
        attempt_metrics.completeness("crex", early)
    assert not [of for name, of in read(client) if ("match_id", "crex_too-early") in of]
    missing = {dict(labels)["field"] for name, labels in read(client) if name == "integrity_required_missing_total"}
    assert {"team_b.formation", "rating"} <= missing


@pytest.mark.requirement("NFR-018")
def test_three_hundred_matches_take_less_than_300_kilobytes_from_memory(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _end_series()
    earlier = len(client.get("/metrics", {"scope": "process"}).content)  # domains and addresses of earlier tests
    make_worker()
    for number in range(300):
        _, ref, _ = make_watched()
        attempt_metrics.updated(ref.key, NOW, NOW)
        payload = payload_of(ref, chasing(1, metadata={"series": f"League {number % 20}"}))
        attempt_metrics.completeness(ref.source.key, payload)
    body = client.get("/metrics").content
    assert body.count(b"data_staleness_seconds{match_id") == 300
    assert len(body) - earlier + WITHOUT_MATCHES < 300_000
    with django_assert_num_queries(0):
        assert client.get("/metrics").content == body
    _end_series()


def _end_series() -> None:
    for key in list(attempt_metrics._matches):
        attempt_metrics._matches[key] = float("-inf")
    attempt_metrics.end_series(list)


def test_a_breaker_has_series_while_its_match_is_watched_and_it_is_not_at_rest(client: Client) -> None:
    """One that is half open when its match ends would stay so, and its alert with it."""
    states = {"tried": BreakerState.HALF_OPEN, "ended": BreakerState.HALF_OPEN, "rest": BreakerState.CLOSED}
    for event, state in states.items():
        ref = make_ref(make_match(), source_event_id=event, is_watched=event != "ended")
        Breaker.objects.create(name=f"{ref.key}_scraper", ref=ref, state=state, last_state_change=NOW)
    shown = {dict(of)["name"] for name, of in read(client) if name == "scraper_breaker_state"}
    assert shown == {"crex_tried_scraper"}
