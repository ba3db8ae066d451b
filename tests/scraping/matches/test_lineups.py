"""Line-ups: the pre-match ones are kept apart from the post-match ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.configuration import policies
from scraping.errors import OverBudget
from scraping.matches import lineups
from scraping.matches.lineups import PointInTimeError
from scraping.models import (
    Breaker,
    BreakerState,
    Lineup,
    LineupPlayer,
    Match,
    MatchLifecycle,
    MatchRef,
    PlayerFigure,
    ScrapeError,
    ScrapeTask,
    SnapshotType,
    TaskState,
)
from scraping.payloads import Resource, Status
from scraping.policies.lineup_schedule import next_lineup_read
from scraping.reading.reader import Reader, Target
from scraping.readings import RefInfo, Request, Site
from scraping.scheduler.other_tasks import open_lineup_tasks
from scraping.sources import ADAPTERS
from scraping.sources.sofascore.adapter import SofascoreAdapter
from scraping.worker.scrape import scrape
from tests.factories import NOW, football_state, make_match, make_ref
from tests.scraping.attempts import Clock, stopped_clock
from tests.scraping.builders import POLICIES, later, open_task
from tests.scraping.scripted_lineups import (
    ScriptedAdapter,
    engine_parsing,
    figures_of,
    lineups_of,
    no_lineups,
    player,
    rating,
    side_of,
)
from tests.scraping.sources.sofa_stadium import Site as SofaSite

pytestmark = [pytest.mark.both, pytest.mark.django_db]
HOUR = 3600
KICKOFF = later(2 * HOUR)
WINDOW = timedelta(hours=72)


@pytest.fixture(autouse=True)
def scripted_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADAPTERS, "sofascore", ScriptedAdapter())
    monkeypatch.setattr(policies, "current", lambda: POLICIES)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


def upcoming(*, kickoff: datetime = KICKOFF, **fields: Any) -> MatchRef:
    state = football_state(status=Status.UPCOMING, start_time=kickoff)
    match = make_match(state=state, start_time=kickoff, lifecycle=MatchLifecycle.DISCOVERED)
    return make_ref(match, source="sofascore", **fields)


def ended(*, at: datetime = NOW) -> MatchRef:
    match = make_match(
        state=football_state(status=Status.COMPLETED), lifecycle=MatchLifecycle.COMPLETED, completed_at=at
    )
    return make_ref(match, source="sofascore")


def rows(kind: SnapshotType = SnapshotType.PRE_MATCH) -> dict[str, Lineup]:
    return {row.side: row for row in Lineup.objects.filter(snapshot_type=kind)}


@pytest.mark.requirement("FS-1")
class TestPointInTime:
    @pytest.mark.parametrize(
        ("status", "at", "expected"),
        [
            pytest.param(Status.UPCOMING, later(-1), SnapshotType.PRE_MATCH, id="a second before the start"),
            pytest.param(Status.UPCOMING, NOW, None, id="at the start"),
            pytest.param(Status.UPCOMING, later(60), None, id="late, though the source has not noticed the start"),
            pytest.param(Status.LIVE, later(-60), None, id="a match that began early"),
            pytest.param(Status.LIVE, later(60), None, id="under way"),
            pytest.param(Status.COMPLETED, later(9000), SnapshotType.POST_MATCH, id="over"),
            pytest.param(Status.ABANDONED, later(9000), None, id="called off"),
        ],
    )
    def test_snapshot_type_of_a_reading(self, status: Status, at: datetime, expected: SnapshotType | None) -> None:
        if expected is not None:
            assert lineups.snapshot_type_at(at, kickoff=NOW, status=status) is expected
            return
        with pytest.raises(PointInTimeError):
            lineups.snapshot_type_at(at, kickoff=NOW, status=status)

    def test_without_a_start_time_no_reading_is_pre_match(self) -> None:
        with pytest.raises(PointInTimeError, match="the start of the match is unknown"):
            lineups.snapshot_type_at(NOW, kickoff=None, status=Status.UPCOMING)

    def test_a_late_reading_changes_no_pre_match_row(self, clock: Clock) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        before = rows()["team_a"]
        clock.now = KICKOFF
        other = lineups_of(ref, side_of("team_a", formation="5-5-0"), at=KICKOFF)
        task_id = open_task(ref, at=KICKOFF, resource=Resource.LINEUPS)
        scrape([task_id], engine_parsing(other))
        task = ScrapeTask.objects.get(pk=task_id)
        assert (task.state, ScrapeError.objects.count()) == (TaskState.SKIPPED, 0)
        assert "the pre-match line-up is kept" in task.reason
        assert (rows()["team_a"].formation, rows()["team_a"].captured_at) == ("4-3-3", before.captured_at)

    def test_the_database_enforces_the_rule_too(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        with pytest.raises(IntegrityError), transaction.atomic():
            Lineup.objects.update(captured_at=KICKOFF)

    def test_a_start_that_was_moved_away_leaves_time_for_another_reading(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        moved = KICKOFF + timedelta(hours=3)
        Match.objects.update(start_time=moved)
        at = KICKOFF + timedelta(hours=1)
        stored = lineups.store(lineups_of(ref, side_of(formation="3-5-2"), at=at), ref_id=ref.pk, now=at)
        assert stored.changed_sides == ("team_a",)
        assert (rows()["team_a"].kickoff, rows()["team_b"].kickoff) == (moved, KICKOFF)

    def test_a_start_that_was_moved_closer_keeps_the_rows(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        Match.objects.update(start_time=later(-60))
        stored = lineups.store(lineups_of(ref, side_of(formation="3-5-2")), ref_id=ref.pk, now=NOW)
        assert (stored.snapshot_type, rows()["team_a"].formation) == (None, "4-3-3")

    def test_the_sources_own_start_time_counts_first(self) -> None:
        ref = upcoming(kickoff=later(-60))
        stored = lineups.store(lineups_of(ref, kickoff=later(600)), ref_id=ref.pk, now=NOW)
        assert stored.snapshot_type is SnapshotType.PRE_MATCH
        assert rows()["team_a"].kickoff == later(600)

    def test_ratings_after_the_end_are_rows_of_their_own(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        Match.objects.update(status=Status.COMPLETED)
        rated = side_of("team_a", players=(player(1, rating=7.8, minutes=90),))
        lineups.store(lineups_of(ref, rated, at=later(4 * HOUR)), ref_id=ref.pk, now=later(4 * HOUR))
        assert set(LineupPlayer.objects.filter(lineup=rows()["team_a"]).values_list("rating", flat=True)) == {None}
        after = LineupPlayer.objects.get(lineup__snapshot_type=SnapshotType.POST_MATCH)
        assert (after.rating, after.minutes) == (7.8, 90)


@pytest.mark.requirement("FS-19")
class TestStoring:
    def test_keeps_formation_starters_and_bench(self) -> None:
        ref = upcoming()
        stored = lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        assert (stored.snapshot_type, stored.changed_sides) == (SnapshotType.PRE_MATCH, ("team_a", "team_b"))
        row = rows()["team_a"]
        assert (row.formation, row.is_confirmed, row.xi_missing) == ("4-3-3", True, False)
        assert row.players.filter(is_starter=True).count() == 11
        assert [one.player_id_ext for one in row.players.all()][:2] == ["a1", "a2"]

    def test_an_eleven_that_is_not_whole_is_flagged(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref, side_of(starters=10), side_of("team_b")), ref_id=ref.pk, now=NOW)
        assert (rows()["team_a"].xi_missing, rows()["team_b"].xi_missing) == (True, False)

    @pytest.mark.requirement("FS-4")
    def test_the_same_again_writes_nothing(self, django_assert_max_num_queries: Any) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        again = lineups_of(ref, at=later(600))
        with django_assert_max_num_queries(9):
            assert lineups.store(again, ref_id=ref.pk, now=later(600)).changed_sides == ()
        assert rows()["team_a"].captured_at == NOW
        assert (Lineup.objects.count(), LineupPlayer.objects.count()) == (2, 26)
        assert MatchRef.objects.get().lineups_read_at == later(600)

    @pytest.mark.requirement("FS-4")
    def test_a_change_replaces_one_side_and_duplicates_no_player(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        others = tuple(player(number) for number in (*range(2, 12), 99))
        changed = side_of(players=(*others, others[0]))
        stored = lineups.store(lineups_of(ref, changed, side_of("team_b")), ref_id=ref.pk, now=later(5))
        assert stored.changed_sides == ("team_a",)
        kept = [one.player_id_ext for one in rows()["team_a"].players.all()]
        assert kept == [*(f"a{number}" for number in range(2, 12)), "a99"]

    @pytest.mark.parametrize(
        "worse", [side_of(starters=9), side_of(is_confirmed=False)], ids=["an eleven lost", "a word taken back"]
    )
    def test_an_incomplete_eleven_does_not_replace_a_complete_one(self, worse: Any) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        assert lineups.store(lineups_of(ref, worse), ref_id=ref.pk, now=later(5)).changed_sides == ()
        assert rows()["team_a"].players.count() == 13

    def test_an_empty_reading_changes_nothing(self) -> None:
        ref = upcoming()
        lineups.store(lineups_of(ref), ref_id=ref.pk, now=NOW)
        lineups.store(no_lineups(ref, at=later(60)), ref_id=ref.pk, now=later(60))
        assert len(rows()) == 2

    def test_sides_are_those_of_the_match(self) -> None:
        ref = upcoming(is_crossed=True)
        lineups.store(lineups_of(ref, side_of("team_a", formation="5-4-1")), ref_id=ref.pk, now=NOW)
        assert rows()["team_b"].formation == "5-4-1"


class TestFigures:
    @pytest.mark.requirement("FS-4")
    def test_are_written_once_and_corrected_in_place(self) -> None:
        ref = ended()
        first = figures_of(ref, rating("a1"), rating("a2"))
        assert lineups.store_figures(first, ref_id=ref.pk) == 2
        assert lineups.store_figures(first, ref_id=ref.pk) == 0
        better = figures_of(ref, rating("a1", values={"rating": 8.0}), rating("a3"))
        assert lineups.store_figures(better, ref_id=ref.pk) == 3, "one corrected, one new, one gone"
        assert dict(PlayerFigure.objects.values_list("player_id_ext", "values")) == {
            "a1": {"rating": 8.0},
            "a3": {"rating": 7.1},
        }

    def test_an_empty_list_deletes_nothing(self) -> None:
        ref = ended()
        lineups.store_figures(figures_of(ref, rating()), ref_id=ref.pk)
        assert lineups.store_figures(figures_of(ref), ref_id=ref.pk) == 0
        assert PlayerFigure.objects.count() == 1

    def test_one_player_in_two_innings_is_two_rows(self) -> None:
        ref = ended()
        bats = [rating(role="batting", innings=number, values={"runs": number}) for number in (1, 3)]
        assert lineups.store_figures(figures_of(ref, *bats), ref_id=ref.pk) == 2


class TestTask:
    @pytest.mark.requirement("FS-19")
    def test_reads_parses_and_stores(self, clock: Clock) -> None:
        ref = upcoming()
        task_id = open_task(ref, resource=Resource.LINEUPS)
        scrape([task_id], engine_parsing(lineups_of(ref)))
        assert ScrapeTask.objects.get(pk=task_id).state == TaskState.SUCCESS
        assert len(rows()) == 2

    def test_another_match_s_line_ups_are_not_stored(self, clock: Clock) -> None:
        ref = upcoming()
        wrong = lineups_of(ref).model_copy(update={"source_event_id": "other"})
        task_id = open_task(ref, resource=Resource.LINEUPS)
        scrape([task_id], engine_parsing(wrong))
        task = ScrapeTask.objects.get(pk=task_id)
        assert (task.error_class, Lineup.objects.count()) == ("drift", 0)
        assert "received other" in task.reason

    def test_figures_too(self, clock: Clock) -> None:
        ref = ended()
        scrape([open_task(ref, resource=Resource.FIGURES)], engine_parsing(figures_of(ref, rating())))
        assert PlayerFigure.objects.get().values == {"rating": 7.1}

    def test_a_source_whose_traffic_is_used_up_is_not_visited_for_them(self) -> None:
        ref = upcoming()
        target = Target(
            ref.pk, Site("sofascore", "https://sofascore.example"), RefInfo("77", ref.url), ScriptedAdapter(),
            visits_from=later(3600),
        )  # fmt: skip
        reader = Reader(Sessions(BrowserHost(BrowserOptions(executable=Path("chromium"), owner="w"))), _never_run)
        with pytest.raises(OverBudget):
            reader.extra_documents(target, (Request("lineups", "https://sofascore.example/lineups"),))


def _never_run(coroutine: object) -> object:
    raise AssertionError("nothing is read here")


class TestSchedule:
    """Reads become more frequent as the start comes closer."""

    @pytest.mark.parametrize(
        ("left", "wait"),
        [
            pytest.param(timedelta(hours=100), timedelta(hours=28), id="not in the window yet"),
            pytest.param(timedelta(hours=72), timedelta(hours=6), id="three days"),
            pytest.param(timedelta(hours=25), timedelta(hours=1), id="the last day begins soon"),
            pytest.param(timedelta(hours=24), timedelta(hours=1), id="a day"),
            pytest.param(timedelta(hours=3), timedelta(minutes=10), id="three hours"),
            pytest.param(timedelta(minutes=80), timedelta(minutes=5), id="soon oftener"),
            pytest.param(timedelta(minutes=75), timedelta(minutes=2), id="when teams are announced"),
            pytest.param(timedelta(minutes=3), timedelta(minutes=2), id="last minutes"),
            pytest.param(timedelta(minutes=2), None, id="the next would be too late"),
            pytest.param(timedelta(0), None, id="begun"),
        ],
    )
    def test_until_they_are_known(self, left: timedelta, wait: timedelta | None) -> None:
        found = next_lineup_read(NOW + left, NOW, is_final=False, window=WINDOW)
        assert found == (NOW + wait if wait else None)

    @pytest.mark.parametrize(("minutes", "wait"), [(60, 55), (6, 1), (5, None), (1, None)])
    def test_once_more_when_they_are_known(self, minutes: int, wait: int | None) -> None:
        found = next_lineup_read(NOW + timedelta(minutes=minutes), NOW, is_final=True, window=WINDOW)
        assert found == (NOW + timedelta(minutes=wait) if wait else None)

    def test_a_reading_plans_the_next(self) -> None:
        ref = upcoming()
        lineups.store(no_lineups(ref), ref_id=ref.pk, now=NOW)
        assert MatchRef.objects.get().lineups_at == later(600)
        lineups.store(lineups_of(ref, at=later(600)), ref_id=ref.pk, now=later(600))
        assert MatchRef.objects.get().lineups_at == KICKOFF - timedelta(minutes=5)
        last = KICKOFF - timedelta(minutes=5)
        lineups.store(lineups_of(ref, at=last), ref_id=ref.pk, now=last)
        assert MatchRef.objects.get().lineups_at is None

    @pytest.mark.parametrize("minutes", [-90, -30, -3, 10, 80 * 60])
    def test_a_source_with_another_start_is_not_read_for_ever(self, minutes: int) -> None:
        """The start of the heavier source counts; this source confirms its line-ups an hour before its own."""
        ref = upcoming()
        kickoff = KICKOFF + timedelta(minutes=minutes)
        reads, at = 0, KICKOFF - timedelta(minutes=60)
        while at < KICKOFF:
            if open_lineup_tasks(at):
                reads += 1
                ScrapeTask.objects.update(state=TaskState.SUCCESS, finished_at=at)
                lineups.store(lineups_of(ref, at=at, kickoff=kickoff), ref_id=ref.pk, now=at)
            at += timedelta(minutes=1)
        assert 1 <= reads <= 31


@pytest.mark.requirement("FS-19")
class TestScheduler:
    def tasks(self, at: datetime = NOW) -> int:
        return open_lineup_tasks(at)

    @pytest.mark.parametrize(
        ("hours", "expected"), [(0.1, 1), (71.9, 1), (72.1, 0), (-0.1, 0)], ids=["soon", "3 days", "later", "begun"]
    )
    def test_matches_that_start_soon_get_a_task_by_themselves(self, hours: float, expected: int) -> None:
        upcoming(kickoff=later(hours * HOUR))
        assert self.tasks() == expected
        assert self.tasks() == 0, "one at a time"

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            pytest.param({"lineups_read_at": NOW, "lineups_at": later(60)}, 0, id="not due yet"),
            pytest.param({"lineups_read_at": NOW, "lineups_at": NOW}, 1, id="due"),
            pytest.param({"lineups_read_at": KICKOFF - timedelta(minutes=5), "lineups_at": None}, 0, id="seen"),
            pytest.param({"lineups_read_at": later(-60), "lineups_at": None}, 1, id="the start was moved away"),
            pytest.param({"lineups_read_at": NOW, "lineups_at": later(3 * HOUR)}, 1, id="the start was moved closer"),
            pytest.param({"is_watched": False}, 0, id="not watched"),
            pytest.param({"gone_at": NOW}, 0, id="removed at its source"),
        ],
    )
    def test_when_they_are_due(self, fields: dict[str, Any], expected: int) -> None:
        upcoming(**fields)
        assert self.tasks() == expected

    def test_sources_without_line_ups_are_not_read(self) -> None:
        match = make_match(status=Status.UPCOMING, start_time=KICKOFF)
        make_ref(match, source="board")
        assert self.tasks() == 0

    def test_a_breaker_that_is_open_holds_them_back(self) -> None:
        ref = upcoming()
        Breaker.objects.create(name="b", ref=ref, state=BreakerState.OPEN, open_until=later(60), last_state_change=NOW)
        assert self.tasks() == 0

    def test_a_failed_read_is_not_repeated_at_once(self) -> None:
        upcoming()
        assert self.tasks() == 1
        ScrapeTask.objects.update(state=TaskState.DEAD, reason="gone wrong", finished_at=NOW)
        assert self.tasks(later(60)) == 0
        assert self.tasks(later(301)) == 1

    def test_once_after_the_end_for_the_ratings(self) -> None:
        ref = ended()
        assert self.tasks() == 1
        ScrapeTask.objects.all().delete()
        lineups.store(lineups_of(ref, at=later(1)), ref_id=ref.pk, now=later(1))
        assert (self.tasks(later(2)), rows(SnapshotType.POST_MATCH).keys()) == (0, {"team_a", "team_b"})


@pytest.mark.requirement("FS-1", "FS-19")
def test_sofascore_from_the_guess_to_the_ratings() -> None:
    """The simulated site has no line-ups, predicted, confirmed, then rated ones; each is stored as its type."""
    site, adapter = SofaSite(programme="only:sofascore:2", seed=7), SofascoreAdapter()
    game = site.simulation.programme.match(site.simulation.programme.slots[0], 3, "sofascore")
    kickoff = datetime.fromtimestamp(site.simulation.start_wall(game), tz=UTC)
    ref = upcoming(kickoff=kickoff, source_event_id=game.key)
    known: list[tuple[bool, bool] | None] = []
    for minutes in (-5 * 60, -2 * 60, -30):
        site.move_to(game, minutes * 60)
        found = adapter.parse_lineups(site.football_lineups(game))
        stored = lineups.store(found, ref_id=ref.pk, now=found.captured_at)
        assert stored.snapshot_type is SnapshotType.PRE_MATCH
        row = rows().get("team_a")
        known.append((row.is_confirmed, row.xi_missing) if row else None)
    assert known == [None, (False, False), (True, False)], "none, predicted, confirmed"
    before = set(LineupPlayer.objects.values_list("player_id_ext", flat=True))
    site.move_to(game, game.script.ends_at + 1)
    Match.objects.update(status=Status.COMPLETED)
    found = adapter.parse_lineups(site.football_lineups(game))
    assert lineups.store(found, ref_id=ref.pk, now=found.captured_at).snapshot_type is SnapshotType.POST_MATCH
    assert lineups.store_figures(adapter.parse_figures(site.football_lineups(game)), ref_id=ref.pk) >= 22
    after = LineupPlayer.objects.filter(lineup__snapshot_type=SnapshotType.POST_MATCH)
    assert after.filter(rating__isnull=False).count() >= 22
    assert not LineupPlayer.objects.filter(lineup__snapshot_type=SnapshotType.PRE_MATCH, rating__isnull=False).exists()
    assert before == set(after.values_list("player_id_ext", flat=True))
