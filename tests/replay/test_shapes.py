"""Every shape of the stadium at every site that can have it, from the list of matches to the API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from scraping.matches import discovery, late_updates, lineups
from scraping.matches.ingest import Attempt
from scraping.matches.validate import check
from scraping.models import Match, MatchRef, Source
from scraping.policies.interval import Pace
from scraping.sources import parsing
from stadium.football.script import Period
from stadium.matches.programme import Match as StadiumMatch
from stadium.replay.comparison import current_events
from stadium.shapes import DAY_SECONDS, SHAPES
from tests.api_fixtures import Caller, caller, clean_api
from tests.replay.shaped_sites import ShapedSite
from tests.scraping.builders import read

__all__ = ["caller", "clean_api"]
pytestmark = [pytest.mark.django_db, pytest.mark.requirement("SO-12", "FS-2", "BX-16")]

PHASES = {
    "toss": "scheduled",
    "in_play": "play",
    "first_half": "play",
    "second_half": "play",
    "abandoned": "finished",
}
WITHOUT_PLAY = ("postponed", "walkover", "no_play")
FROM_BEFORE = (*WITHOUT_PLAY, "no_short_names", "neutral", "unconfirmed", "late_toss", "suspended")
SIDES = ("team_a", "team_b")
EVENT_KINDS = {  # of football, by those of the ground truth
    "goal": ("goal", "penalty_goal", "own_goal"),
    "penaltyShootout": ("shootout_goal", "shootout_miss"),
    "substitution": ("substitution",),
}


def moments_of(shape: str, matches: list[StadiumMatch]) -> list[float]:
    """Returns the simulated times of the readings: before the start, in play, in every odd situation, after the end."""
    found = []
    for match in matches:
        if shape in FROM_BEFORE:
            found.append(match.starts_at - 600.0)
        if shape == "shootout":
            found += [match.starts_at + match.script.time_of(Period.SECOND_EXTRA) + 30.0, match.times[-3] + 0.5]
        elif shape not in WITHOUT_PLAY:
            found.append(match.times[int(0.65 * len(match.times))] + 0.5)
        if shape == "suspended":
            found.append(match.ends_at - DAY_SECONDS / 2)
        found.append(max(match.ends_at, match.starts_at) + 60.0)
    return sorted(found)


def cases() -> Iterator[tuple[str, str]]:
    for name, shape in SHAPES.items():
        for site in shape.sites:
            # Crexpro renders a match with the functions of Crex: its own way of reading is covered by a few shapes
            if site != "crexpro" or shape.edit or name in ("suspended", "hundred"):
                yield name, site


@pytest.mark.parametrize(("shape", "site_key"), list(cases()))
def test_shape(shape: str, site_key: str, caller: Caller) -> None:
    has_sides = shape in ("women", "under_19")
    with ShapedSite(site_key, shape, matches=2 if has_sides else 1) as site:
        matches = [site.match(), *([site.match(1)] if has_sides else [])]
        matches += [site.match(0, turn=1)] if shape == "doubleheader" else []
        source = Source.objects.create(
            key=site_key, name=site_key, sport=site.adapter.sport.value, base_url=site.base, adapter=site.adapter.key
        )
        moments = moments_of(shape, matches)
        site.start_at(moments[0])
        for moment in moments:
            site.move_to(moment)
            discovery.register(source, site.listed(), now=site.now)
            refs = MatchRef.objects.filter(source_event_id__in=[match.key for match in matches])
            for ref in refs:
                follow(site, ref, shape, caller)
        assert refs.count() == len(matches)
        assert Match.objects.count() == MatchRef.objects.count()


def follow(site: ShapedSite, ref: MatchRef, shape: str, caller: Caller) -> None:
    """Reads a match, and compares what the API serves with the ground truth."""
    truth = site.truth(ref.source_event_id)
    assert ref.url == truth["url"] or site.site == "espnsoccer"
    is_over = truth["status"] not in ("upcoming", "live")
    payload = site.read(ref.source_event_id, ref.url, is_whole=is_over)
    check(payload, expected_id=ref.source_event_id, sport=site.adapter.sport.value)
    assert not payload.unknown, payload.unknown
    read(ref, payload)
    has_lineups = bool(site.adapter.lineup_schema) and shape not in WITHOUT_PLAY
    if has_lineups:
        read_lineups(site, ref)
    served = caller.get(f"/api/v1/matches/{ref.match_id}").json()
    assert_match(served, truth, shape)
    if is_over:
        assert_events(events_of(ref, caller), truth)
    if has_lineups:
        assert_lineups(site, ref, truth, shape, caller)


def read_lineups(site: ShapedSite, ref: MatchRef) -> None:
    found = site.lineups(ref.source_event_id, ref.url)
    lineups.store(found, ref_id=ref.pk, now=site.now)
    attempt = Attempt("w-1", found.captured_at, had_failures=False, now=site.now, is_replayed=True)
    late_updates.add_toss(found, ref_id=ref.pk, pace=Pace(), attempt=attempt)


def assert_match(served: dict[str, Any], truth: dict[str, Any], shape: str) -> None:
    assert (served["status"], served["phase"]) == (truth["status"], PHASES.get(truth["phase"], truth["phase"]))
    for side in SIDES:
        named = truth["teams"][side]
        short = "" if shape == "no_short_names" else named["short_name"]
        assert served["teams"][side] == {"name": named["name"], "short_name": short}
        shown = {name: value for name, value in served["score"][side].items() if value is not None}
        penalties = {"penalties": truth["penalties"][side]} if truth.get("penalties") else {}
        assert shown == (truth["score"][side] or {}) | penalties
    start = datetime.fromisoformat(truth["start_time"])
    assert abs(datetime.fromisoformat(served["start_time"]) - start) < timedelta(minutes=1)
    assert served["venue"].startswith(truth["venue"])
    assert served["metadata"]["series"] == truth["series"]
    assert_result(served, truth)
    if truth["format"] != "football":
        assert_innings(served, truth)


def assert_result(served: dict[str, Any], truth: dict[str, Any]) -> None:
    if truth["status"] in ("upcoming", "live"):
        assert served["result"] == ""
    elif truth.get("result_long"):
        assert served["result"] in (truth["result"], truth["result_long"])
    elif truth["winner"]:
        assert served["result"].startswith(f"{truth['teams'][truth['winner']]['name']} won")
    else:
        assert served["result"]


def assert_innings(served: dict[str, Any], truth: dict[str, Any]) -> None:
    keys = ("number", "runs", "wickets", "overs", "is_super_over")
    real = [{**{key: one[key] for key in keys}, "team": one["batting"]} for one in truth["innings"]]
    assert [{**{key: one[key] for key in keys}, "team": one["team"]} for one in served["innings"]] == real
    toss = truth["toss_winner"] and {
        "winner": truth["teams"][truth["toss_winner"]]["name"],
        "decision": {"bowl": "field"}.get(truth["toss_decision"], truth["toss_decision"]),
    }
    assert served["toss"] == toss


def events_of(ref: MatchRef, caller: Caller) -> list[Any]:
    rows: list[dict[str, Any]] = []
    has_more, since = True, 0
    while has_more:
        page = caller.get(f"/api/v1/matches/{ref.match_id}/events", {"since": since, "limit": 100}).json()
        rows, has_more, since = rows + page["events"], page["has_more"], page["next_since"]
    return current_events(rows)


def assert_events(served: list[Any], truth: dict[str, Any]) -> None:
    if truth["format"] == "football":
        counted = Counter(one["kind"] for one in served)
        real = Counter(one["kind"] for one in truth["events"])
        for kind, names in EVENT_KINDS.items():
            assert sum(counted[name] for name in names) == real[kind]
        return
    wickets = [one for one in served if one["kind"] == "dismissal"]
    balls = [one for one in served if one["kind"] not in ("dismissal", "over_complete", "over_end")]
    truths = [one for one in truth["events"] if one["kind"] == "ball"]
    assert sorted(map(_place_and_runs, balls)) == sorted(map(_place_and_runs, truths))
    real = sorted((one["innings"], one["player"]) for one in truth["events"] if one["kind"] == "wicket")
    names = {player for _, player in real}
    assert sorted((one["innings"], _player_in(one, names)) for one in wickets) == real


def _place_and_runs(ball: dict[str, Any]) -> tuple[int, str, int]:
    return ball["innings"], ball["over"], ball["runs"]


def _player_in(wicket: dict[str, Any], names: set[str]) -> str:
    """The scoreboard has the name in the text only."""
    return wicket["detail"].get("player") or next(name for name in names if wicket["description"].startswith(name))


def assert_lineups(site: ShapedSite, ref: MatchRef, truth: dict[str, Any], shape: str, caller: Caller) -> None:
    is_early = datetime.fromisoformat(truth["start_time"]) - site.now > timedelta(minutes=15)
    if truth["status"] == "live" or (truth["status"] == "upcoming" and is_early):
        return
    kind = "pre_match" if truth["status"] == "upcoming" else "post_match"
    rows = caller.get(f"/api/v1/matches/{ref.match_id}/lineups", {"snapshot_type": kind}).json()["lineups"]
    players = {team.name: team.players for team in site.simulation.find(site.site, ref.source_event_id).teams}
    assert {row["team"] for row in rows} == set(players)
    for row in rows:
        assert {one["name"] for one in row["players"]} <= {player.name for player in players[row["team"]]}
        assert row["is_confirmed"] == (shape != "unconfirmed")
        if kind == "post_match":
            assert len(row["players"]) == len(players[row["team"]])


def test_odd_rows_of_fixtures_are_read_or_counted() -> None:
    """Starts in seconds and as date and time are read; a row without a start belongs to no day and is counted."""
    with ShapedSite("crex", "odd_fixtures", matches=4) as site, parsing.noting_unrecognized() as noted:
        matches = [site.match(slot) for slot in range(4)]
        site.start_at(min(match.starts_at for match in matches) - 1_800.0)
        found = {match.source_event_id: match.start_time for match in site.fixtures()}
        starts = {match.key: site.simulation.start_wall(match) for match in matches}
        assert len(found) >= 2
        assert all(abs(start.timestamp() - starts[key]) < 60 for key, start in found.items() if start)
        assert {one.path for one in noted} == {parsing.LIST_ROW}
