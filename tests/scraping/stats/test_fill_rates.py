"""Drift: fill rates of fields compared with earlier ones, per stage of a match."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from monitoring.health.evaluation import Evaluation
from monitoring.metrics.families import families
from monitoring.models import Alert
from monitoring.watchdogs.sources import watch_drift
from scraping.models import FieldFill, Source
from scraping.payloads import Payload, Phase, Status
from scraping.policies.drift import BUCKET_SECONDS, DriftPolicy, Fill, is_sparse, points_fallen
from scraping.reading.read_modes import PAGE_SECONDS
from scraping.readings import STATIC_PAGE, Document, ReadMode, RefInfo
from scraping.scheduler import retention
from scraping.sources import adapter_for
from scraping.stats import fill_rates
from scraping.stats.fill_rates import fields_of, schema_of, window_start
from scraping.stats.read_stats import ReadStats
from tests.factories import NOW, cricket_state, football_state, make_match, make_ref, make_source
from tests.scraping.builders import balls, payload_of
from tests.scraping.sources.test_stadium import Visitor, crex_answers, in_stadium, sofascore_answers
from victoryline.lib.bulk_sql import bucket_start

POLICY = DriftPolicy()
PLAY = "cricket/v1/play"


@pytest.mark.requirement("BX-16")
class TestPolicy:
    @pytest.mark.parametrize(
        ("baseline", "window", "fallen"),
        [
            pytest.param(Fill(1000, 1000), Fill(100, 100), None, id="as ever"),
            pytest.param(Fill(1000, 1000), Fill(100, 70), None, id="30 points: tolerated"),
            pytest.param(Fill(1000, 1000), Fill(100, 69), 31.0, id="31 points"),
            pytest.param(Fill(1000, 400), Fill(100, 0), 40.0, id="from 40 % to nothing"),
            pytest.param(Fill(1000, 200), Fill(100, 0), None, id="a rarely filled field"),
            pytest.param(Fill(1000, 0), Fill(100, 100), None, id="more than before"),
            pytest.param(Fill(49, 49), Fill(100, 0), None, id="too few earlier readings"),
            pytest.param(Fill(50, 50), Fill(19, 0), None, id="too few present readings"),
            pytest.param(Fill(50, 50), Fill(20, 0), 100.0, id="just enough of both"),
        ],
    )
    def test_of_a_field(self, baseline: Fill, window: Fill, fallen: float | None) -> None:
        assert points_fallen(baseline, window, POLICY) == fallen

    @pytest.mark.parametrize(
        ("integrity", "expected"),
        [(Fill(100, 80), False), (Fill(100, 79), True), (Fill(19, 0), False), (Fill(0, 0), False)],
    )
    def test_of_a_source(self, integrity: Fill, expected: bool) -> None:
        assert is_sparse(integrity, POLICY) is expected

    def test_the_window_is_made_of_whole_buckets(self) -> None:
        at = datetime(2026, 1, 10, 12, 3, 20, tzinfo=UTC)
        assert bucket_start(at, BUCKET_SECONDS) == datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
        assert window_start(at, 15) == datetime(2026, 1, 10, 11, 50, tzinfo=UTC)


@pytest.mark.requirement("BX-16", "FS-8")
class TestFields:
    """A field counts only in stages in which it is expected."""

    def fields(self, payload: Payload) -> dict[str, bool]:
        return dict(fields_of(payload))

    def of(self, state: Any, **fields: Any) -> Payload:
        return Payload(source="x", captured_at=NOW, source_event_id="T1", state=state, **fields)

    def test_of_a_match_to_come_hold_no_score_and_no_result(self) -> None:
        upcoming = self.of(
            cricket_state(status=Status.UPCOMING, phase=Phase.SCHEDULED, innings=(), current_innings=None)
        )
        assert schema_of(upcoming) == "cricket/v1/upcoming"
        assert not {"score", "result", "toss", "last_event", "events", "current_innings"} & fields_of(upcoming).keys()

    def test_a_side_that_has_not_batted_needs_no_score(self) -> None:
        state = cricket_state()
        first_innings = self.of(state.model_copy(update={"innings": state.innings[:1]}))
        assert fields_of(first_innings)["score"] is True

    def test_the_clock_of_football_is_required_in_play_and_not_at_halftime(self) -> None:
        assert self.fields(self.of(football_state()))["clock"] is True
        assert self.fields(self.of(football_state(clock="")))["clock"] is False
        halftime = self.of(football_state(clock="", phase=Phase.HALFTIME))
        assert schema_of(halftime) == "football/v1/break"
        assert "clock" not in fields_of(halftime)

    def test_the_result_is_required_at_the_end(self) -> None:
        over = self.of(cricket_state(status=Status.COMPLETED, phase=Phase.FINISHED))
        assert fields_of(over)["result"] is False
        assert "result" not in fields_of(self.of(cricket_state()))

    def test_no_events_are_required_before_the_first_ball(self) -> None:
        state = cricket_state()
        begun = state.innings[0].model_copy(update={"runs": 0, "wickets": 0, "overs": "0.0"})
        fresh = self.of(state.model_copy(update={"innings": (begun,)}), integrity={"missing_fields": ("events",)})
        assert not {"events", "last_event"} & fields_of(fresh).keys()
        assert fields_of(self.of(state, integrity={"missing_fields": ("events",)}))["events"] is False

    def test_a_fallback_is_counted(self) -> None:
        assert fields_of(self.of(cricket_state()))["usual_way"] is True
        assert fields_of(self.of(cricket_state(), is_partial_state=True))["usual_way"] is False
        round_about = self.of(football_state(), integrity={"missing_fields": ("event_answer",)})
        assert fields_of(round_about)["usual_way"] is False
        lacking = self.of(cricket_state(), integrity={"missing_fields": ("venue", "last_event", "events")})
        assert fields_of(lacking)["usual_way"] is True

    def test_one_event_with_the_field_is_enough(self) -> None:
        listed = self.of(cricket_state(), events=balls(1, 2, 3))
        found = fields_of(listed)
        assert (found["events.ordinal"], found["events.description"]) == (True, False)


def fill(
    source: Source, minutes_ago: float, seen: int, filled: int, *, field: str = "venue", schema: str = PLAY
) -> None:
    at = bucket_start(NOW - timedelta(minutes=minutes_ago), BUCKET_SECONDS)
    fill_rates.add({(source.pk, schema, field, at): (seen, filled)})


@pytest.mark.both
@pytest.mark.django_db
@pytest.mark.requirement("BX-16")
class TestFallen:
    def names(self) -> list[str]:
        return [one.name for one in fill_rates.fallen_fields(POLICY, now=NOW)]

    def test_a_field_that_is_filled_less_than_in_the_day_before(self) -> None:
        source = make_source()
        fill(source, 300, 500, 490)
        fill(source, 5, 60, 20)
        found = fill_rates.fallen_fields(POLICY, now=NOW)
        assert [(one.name, one.baseline, one.window) for one in found] == [
            ("venue (cricket, play)", Fill(500, 490), Fill(60, 20))
        ]

    def test_is_compared_with_the_same_stage_only(self) -> None:
        source = make_source()
        fill(source, 300, 500, 500, field="score")
        fill(source, 5, 100, 0, field="score", schema="cricket/v1/upcoming")
        assert self.names() == []

    def test_is_compared_with_its_own_source_only(self) -> None:
        fill(make_source(), 300, 500, 500)
        fill(make_source("other"), 5, 100, 0)
        assert self.names() == []

    def test_what_is_older_than_a_day_is_forgotten(self) -> None:
        source = make_source()
        fill(source, 26 * 60, 500, 500)
        fill(source, 5, 100, 0)
        assert self.names() == []

    def test_a_reading_counts_for_the_stage_of_the_match(self) -> None:
        ref, counted = make_ref(), ReadStats()
        counted.payload("crex", payload_of(ref))
        counted.payload("crex", payload_of(ref, cricket_state(status=Status.UPCOMING, phase=Phase.SCHEDULED)))
        counted.flush(now=NOW, is_last=True)
        rows = FieldFill.objects.filter(field="start_time").values_list("payload_schema", "seen", "filled")
        assert set(rows) == {(PLAY, 1, 0), ("cricket/v1/upcoming", 1, 0)}

    def test_fills_are_written_every_half_minute_and_at_the_end(self) -> None:
        ref, counted = make_ref(), ReadStats()

        def beat(seconds: float, *, is_last: bool = False) -> int:
            counted.payload("crex", payload_of(ref))
            counted.flush(now=NOW + timedelta(seconds=seconds), is_last=is_last)
            return sum(FieldFill.objects.filter(field="score").values_list("seen", flat=True))

        assert [beat(0), beat(3), beat(29), beat(31), beat(34), beat(35, is_last=True)] == [1, 1, 1, 4, 4, 6]

    def test_they_are_kept_for_three_days(self) -> None:
        source = make_source()
        fill(source, 71 * 60, 1, 1)
        fill(source, 73 * 60, 1, 1)
        rule = next(one for one in retention.rules() if one.table == "field-fills")
        assert rule.step(NOW) == 1
        assert FieldFill.objects.count() == 1


@pytest.mark.both
@pytest.mark.django_db
class TestAlert:
    @pytest.mark.requirement("BX-16")
    def test_names_field_rates_and_matches_and_ends_by_itself(self, caplog: pytest.LogCaptureFixture) -> None:
        source = make_source()
        lacking = make_ref(make_match(), payload=cricket_state().model_dump(mode="json"))
        make_ref(make_match(), payload=cricket_state(venue="Eden Gardens").model_dump(mode="json"))
        fill(source, 300, 500, 490)
        fill(source, 5, 60, 20)
        assert watch_drift(NOW) == 1
        assert watch_drift(NOW) == 1
        alert = Alert.objects.get(key=f"drift:crex:{PLAY}:venue")
        assert alert.severity == "warning"
        assert alert.summary == "Crex fills venue (cricket, play) in 33 % of its readings; it used to be 98 %"
        assert (alert.detail["matches_without"], alert.detail["matches_read"]) == ([lacking.key], 2)
        logged = [one for one in caplog.records if getattr(one, "action", "") == "data_integrity_degraded"]
        assert [(one.levelno, one.field, one.window_percent) for one in logged] == [(logging.WARNING, "venue", 33.3)]
        fill(source, 0, 500, 500)
        assert watch_drift(NOW) == 0
        alert.refresh_from_db()
        assert alert.closed_at == NOW

    @pytest.mark.requirement("FS-16", "FS-17")
    def test_is_raised_for_a_source_that_leaves_out_more_than_a_fifth(self) -> None:
        ref, counted = make_ref(), ReadStats()
        half = {"missing_fields": ("venue",), "null_field_rate": 0.5}
        for number in range(30):
            counted.payload("crex", payload_of(ref, integrity=half if number % 2 else {}))
        counted.flush(now=NOW)
        assert watch_drift(NOW) == 1
        alert = Alert.objects.get(key="sparse:crex")
        assert alert.summary == "Crex left out 27 % of the wanted fields in the last hour; 20 % is the limit"
        score = next(family for family in families(Evaluation(NOW)) if family.name == "data_integrity_score")
        assert [(one.labels["source"], round(one.value, 2)) for one in score.samples] == [("crex", 0.73)]
        for _ in range(60):
            counted.payload("crex", payload_of(ref))
        counted.flush(now=NOW + timedelta(minutes=1))
        assert watch_drift(NOW + timedelta(minutes=1)) == 0
        alert.refresh_from_db()
        assert alert.closed_at is not None


STEP_SECONDS = 300.0
READ_IN_A_STEP = 6  # the weight of a reading, as if a match were read every 50 s
READ_FROM, BROKEN_FROM, BROKEN_TO = 0.0, 9_000.0, 10_500.0
SIMULATED = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)


SITES = ("crex", "sofascore")


async def payloads_of_an_afternoon(visitor: Visitor) -> list[tuple[float, str, Payload]]:
    """Yields readings of both sites' matches; for a time Crex's live response has another layout, its page is used."""
    found = []
    pages: dict[str, Document] = {}
    fault: str | None = None
    moment = READ_FROM
    while moment < 12_500.0:
        visitor.move_to(moment)
        if fault is None and BROKEN_FROM <= moment < BROKEN_TO:
            await visitor.plant(site="crex", target="live", kind="layout")
            fault = "planted"
        if fault == "planted" and moment >= BROKEN_TO:
            async with visitor.http.delete(f"{visitor.base}/control/faults") as answer:
                assert answer.status < 300
            fault = "removed"
        for row in await visitor.json("/truth/matches"):
            ref, site = RefInfo(row["key"], row["url"]), row["site"]
            if site not in SITES:  # the same matches again, as other sites show them
                continue
            if row["key"] not in pages or fault == "planted" or moment % PAGE_SECONDS == 0:
                pages[row["key"]] = await visitor.open(site, row["url"])
            page = pages[row["key"]]
            answers = await (crex_answers if site == "crex" else sofascore_answers)(visitor, ref)
            if fault == "planted":
                read = visitor.reading(ref, ReadMode.VISIT, page, *answers)
            else:
                read = visitor.reading(ref, ReadMode.DIRECT, replace(page, name=STATIC_PAGE), *answers)
            payload = adapter_for(site).parse(read)
            at = SIMULATED + timedelta(seconds=moment)
            found.append((moment, site, payload.model_copy(update={"captured_at": at})))
        moment += STEP_SECONDS
    return found


@pytest.mark.django_db
@pytest.mark.requirement("BX-16")
def test_ordinary_matches_are_no_drift_and_a_changed_answer_is() -> None:
    for site in SITES:
        make_source(site)
    afternoon: list[tuple[float, str, Payload]] = []

    async def scenario(visitor: Visitor) -> None:
        afternoon.extend(await payloads_of_an_afternoon(visitor))

    in_stadium(scenario)
    counted, seen = ReadStats(), Counter[tuple[str, str]]()
    raised: dict[float, set[str]] = {}
    for moment in sorted({moment for moment, _, _ in afternoon}):
        for at, site, payload in afternoon:
            if at == moment:
                for _ in range(READ_IN_A_STEP):
                    counted.payload(site, payload)
                seen[site, schema_of(payload)] += 1
        now = SIMULATED + timedelta(seconds=moment)
        counted.flush(now=now, is_last=True)
        watch_drift(now)
        raised[moment] = set(Alert.objects.filter(closed_at__isnull=True).values_list("key", flat=True))
    stages = {schema.rpartition("/")[2] for _, schema in seen}
    assert stages >= {"upcoming", "play", "break", "completed"}
    assert [(at, keys) for at, keys in raised.items() if keys and at < BROKEN_FROM] == []
    broken = set().union(*(keys for at, keys in raised.items() if BROKEN_FROM <= at < BROKEN_TO + 900))
    assert f"drift:crex:{PLAY}:usual_way" in broken
    assert not [key for key in broken if "sofascore" in key]
    first = min(at for at, keys in raised.items() if keys)
    assert first - BROKEN_FROM <= 900
    assert [keys for at, keys in raised.items() if at >= BROKEN_TO + 1_200 and keys] == []
