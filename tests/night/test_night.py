"""Simulated nights: the rules hold, the same seed is the same night, and a broken policy is found out."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from monitoring.alerts import notification_policy
from monitoring.health import grading
from monitoring.models import Grade
from scraping.models import Importance
from scraping.policies import breaker, error_slowdown, fairness, ladder, retry_budget
from scraping.policies.ladder import Rung
from victoryline.night import plot, report
from victoryline.night.engine import Story, simulate
from victoryline.night.faults import CALM, HELL, USUAL, Fault, Kind
from victoryline.night.invariants import CALM_FRESH_SHARE, CALM_UPTIME_SHARE
from victoryline.night.world import Script

# All sources are down for six minutes.
DOWN = Script(
    seed=3,
    matches=6,
    hours=0.75,
    is_crowded=False,
    given=tuple(Fault(Kind.OUTAGE, 60.0, 420.0, target=number) for number in range(4)),
)


def night(seed: int, faults: str = USUAL, *, matches: int = 4, hours: float = 1.2, crowded: bool = False) -> Story:
    return simulate(Script(seed=seed, matches=matches, hours=hours, faults=faults, is_crowded=crowded))


def broken(story: Story) -> set[str]:
    return {violation.rule for violation in story.violations}


def told(story: Story) -> str:
    return "\n".join(str(violation) for violation in story.violations)


class TestNight:
    @pytest.mark.parametrize("seed", [1, 2, 3])
    @pytest.mark.requirement("NFR-007")
    @pytest.mark.requirement("NFR-011")
    def test_a_calm_one_is_fresh_all_the_time(self, seed: int) -> None:
        story = night(seed, CALM, hours=0.8)
        assert not story.violations, told(story)
        assert story.figures.fresh_share >= CALM_FRESH_SHARE
        assert story.figures.uptime_share >= CALM_UPTIME_SHARE
        assert story.figures.errors == story.figures.retries == 0

    @pytest.mark.parametrize(("seed", "faults"), [(1, USUAL), (2, USUAL), (3, HELL), (4, HELL)])
    def test_all_is_well_again_after_whatever_went_wrong(self, seed: int, faults: str) -> None:
        story = night(seed, faults)
        assert not story.violations, told(story)
        assert story.faults
        assert story.figures.grade == "HEALTHY"

    @pytest.mark.requirement("FR-025")
    def test_in_a_crowd_the_important_go_first_and_nobody_is_forgotten(self) -> None:
        story = night(14, CALM, matches=14, hours=0.5, crowded=True)
        assert not story.violations, told(story)
        late: dict[int, list[float]] = {Importance.HIGH: [], Importance.NORMAL: [], Importance.LOW: []}
        for watch in story.sources[0].watches.values():
            if len(watch.game.watches) == 1:
                late[watch.game.match.importance].append(watch.game.longest_age)
        assert max(late[Importance.HIGH], default=0.0) < max(late[Importance.LOW]) < 300.0

    def test_both_sources_of_a_match_are_read_as_often_as_it_moves(self) -> None:
        """As ingest has it: what one source tells is news from it, though another has told it before."""
        polls: defaultdict[int, list[int]] = defaultdict(list)
        for site in night(1, CALM, matches=6, hours=0.15).sources:
            for watch in site.watches.values():
                polls[watch.game.number] += [] if watch.is_spare else [watch.polls]
        pairs = [sorted(both) for both in polls.values() if len(both) == 2]
        assert pairs
        assert all(fewer > 0.8 * more for fewer, more in pairs), pairs

    def test_messages_stay_within_the_limit_of_an_hour(self) -> None:
        story = night(3, HELL)
        assert story.figures.alerts > 0
        assert story.figures.messages_an_hour_peak <= story.alarms.rules.hourly_limit


class TestSeed:
    def test_tells_the_same_night_again_byte_for_byte(self) -> None:
        first, again = (night(7, HELL, matches=3, hours=0.8) for _ in range(2))
        assert report.text(first) == report.text(again)
        assert plot.svg(first) == plot.svg(again)

    def test_makes_another_night_than_the_next_seed(self) -> None:
        assert report.text(night(1, CALM, matches=2, hours=1)) != report.text(night(2, CALM, matches=2, hours=1))


class TestRules:
    """They can fail: each policy is broken on purpose, and the rules say which."""

    def test_see_whoever_is_starved(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def urgent_only(waiting: Any, room: int, **_: Any) -> list[fairness.DueMatch]:
            return sorted(waiting, key=lambda one: (one.priority, one.importance, one.ref_id))[:room]

        monkeypatch.setattr(fairness, "choose", urgent_only)
        assert "starved" in broken(night(14, CALM, matches=14, hours=0.4, crowded=True))

    def test_see_a_source_that_is_asked_too_much(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fairness, "choose", lambda waiting, room, **_: list(waiting))
        assert "source limit" in broken(night(14, CALM, matches=14, hours=0.5, crowded=True))

    def test_see_a_ladder_that_is_jumped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ladder, "next_rung", lambda silence, **_: Rung.FROZEN)
        assert "ladder" in broken(night(1, CALM, matches=2, hours=0.3))

    @pytest.mark.parametrize("highest", [Rung.GROUND, Rung.HINT, Rung.OTHER_SOURCE], ids=lambda rung: rung.name)
    def test_see_a_ladder_that_is_not_climbed_to_its_end(self, highest: Rung, monkeypatch: pytest.MonkeyPatch) -> None:
        real = ladder.next_rung
        monkeypatch.setattr(ladder, "next_rung", lambda silence, **known: min(real(silence, **known), highest))
        hangs = tuple(Fault(Kind.HANGS, 60.0, 1100.0, target=number) for number in range(4))
        assert "ladder" in broken(simulate(Script(seed=3, matches=3, hours=0.35, is_crowded=False, given=hangs)))

    def test_see_errors_that_slow_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(error_slowdown, "after_error", lambda before, **_: before)
        assert "slowing" in broken(simulate(DOWN))

    def test_see_a_grade_that_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = grading.grade
        stays = {Grade.FAILING, Grade.RECOVERING}
        monkeypatch.setattr(
            grading, "grade", lambda before, *seen: before if before.grade in stays else real(before, *seen)
        )
        assert "grade" in broken(simulate(DOWN))

    def test_see_a_false_alarm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(grading, "DEGRADED_FROM_SECONDS", 2.0)
        assert "false alarm" in broken(night(1, CALM, matches=2, hours=0.2))

    def test_see_a_storm_of_messages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            notification_policy, "NotificationRules", partial(notification_policy.NotificationRules, hourly_limit=3)
        )
        assert not broken(simulate(DOWN)), "what is broken below is broken on purpose"
        monkeypatch.setattr(notification_policy, "has_room", lambda *_, **__: True)
        assert "alert storm" in broken(simulate(DOWN))

    def test_see_what_nobody_was_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notification_policy, "plan", lambda *_, **__: notification_policy.NotificationPlan())
        hangs = tuple(Fault(Kind.HANGS, 60.0, 4300.0, target=number) for number in range(4))
        assert "untold" in broken(simulate(Script(seed=3, matches=2, hours=1.25, is_crowded=False, given=hangs)))

    def test_see_a_breaker_that_sticks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(breaker, "after_success", lambda view, *_: view)
        assert "breaker stuck" in broken(night(3, HELL))

    def test_see_a_request_through_an_open_breaker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(breaker, "admit", lambda view, *_: breaker.Admission(view))
        monkeypatch.setattr(breaker, "probe_limit", lambda *_: None)
        assert "open breaker" in broken(night(3, HELL))

    def test_see_a_storm_of_retries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retry_budget, "retries_left", lambda *_, **__: 1000)
        some_errors = tuple(Fault(Kind.ERRORS, 60.0, 600.0, target=number, strength=0.3) for number in range(4))
        story = simulate(Script(seed=3, matches=6, hours=0.2, is_crowded=False, given=some_errors))
        assert "retry budget" in broken(story)


class TestCommand:
    def test_prints_a_table_and_draws_the_night(self, tmp_path: Path) -> None:
        out, picture = StringIO(), tmp_path / "night.svg"
        call_command("simulate_night", "--matches=3", "--hours=1", "--faults=calm", f"--plot={picture}", stdout=out)
        assert "Nothing was broken." in out.getvalue()
        assert picture.read_text(encoding="utf-8").startswith("<svg")

    @pytest.mark.parametrize("place", ["", "nowhere/night.svg"], ids=["a folder", "no such folder"])
    def test_says_before_the_night_that_the_picture_has_no_place(self, tmp_path: Path, place: str) -> None:
        with pytest.raises(CommandError, match="cannot be written"):
            call_command("simulate_night", "--matches=1000", "--hours=24", f"--plot={tmp_path / place}")

    def test_gives_the_figures_as_json(self) -> None:
        out = StringIO()
        call_command("simulate_night", "--matches=3", "--hours=1", "--faults=calm", "--json", stdout=out)
        document = json.loads(out.getvalue())
        assert document["violations"] == []
        assert document["matches"] == 3

    def test_shows_what_was_broken_and_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ladder, "next_rung", lambda silence, **_: Rung.FROZEN)
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("simulate_night", "--matches=2", "--hours=1", "--faults=calm", stdout=out)
        assert "replay with --seed 1" in out.getvalue()
