"""The lists of matches: all cricket of a day by series, and a football league's matches of some days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from scraping.errors import Drift, LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Team
from scraping.sources import parsing
from scraping.sources.base import Reading
from scraping.sources.espn import site, soccer_match, summary
from scraping.sources.espn.schemas import SUMMARY, Competition
from scraping.sources.espn.soccer_schemas import SOCCER, Scoreboard, SoccerEvent
from scraping.sources.espn.summary import SIDES, innings_of
from scraping.sources.parsing import validated


def cricket_matches(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """Returns each match once; skips invalid rows, and raises the last error where all rows are invalid."""
    data, url = site.body_of(reading, "list")
    found: dict[str, DiscoveredMatch] = {}
    broken: Drift | None = None
    for league, event in _cricket_events(data, url):
        try:
            match = _cricket_match(league, event, base_url, url)
        except Drift as drift:
            broken = drift
        else:
            found.setdefault(match.source_event_id, match)
    if broken is not None and not found:
        raise broken
    return list(found.values())


def soccer_matches(reading: Reading, base_url: str, day: date | None = None) -> list[DiscoveredMatch]:
    """Returns each match once; with a day only those that begin on it."""
    data, url = site.body_of(reading, "list")
    board = validated(Scoreboard, data, schema=SOCCER, url=url)
    league = board.leagues[0] if board.leagues else None
    slug = (league.slug if league else None) or site.SERIE_A
    series = parsing.plain(league.name, 200) if league else ""
    found: dict[str, DiscoveredMatch] = {}
    for event in board.events:
        try:
            match = _soccer_match(event, base_url, slug, series)
        except Drift:
            if day is not None:  # a day's fixtures are never silently short
                raise
            continue
        if day is None or (match.start_time is not None and match.start_time.date() == day):
            found.setdefault(match.source_event_id, match)
    return list(found.values())


def _cricket_events(data: Any, url: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yields each event with its league. A day has `scores[]`, one group per series; a series is one group."""
    response = parsing.mapping(data)
    groups = response.get("scores") if isinstance(response.get("scores"), list) else [response]
    if not isinstance(groups, list) or not all(isinstance(parsing.mapping(g).get("events"), list) for g in groups):
        raise LayoutChanged("no list of cricket matches found; tried scores, events", url=url)
    for group in map(parsing.mapping, groups):
        league = next(iter(parsing.rows(group.get("leagues"))), {})
        for event in parsing.rows(group.get("events")):
            yield league, event


def _cricket_match(league: Mapping[str, Any], event: Mapping[str, Any], base_url: str, url: str) -> DiscoveredMatch:
    match_id = parsing.text(event.get("id"), 20)
    number = parsing.text(league.get("id") or event.get("leagueId"), 20)
    competitions = parsing.rows(event.get("competitions"))
    if not match_id.isdecimal() or not number.isdecimal() or not competitions:
        raise SchemaBreak(f"a match of the list has no id, no league or no competition: {match_id!r}", url=url)
    row = validated(Competition, {"date": event.get("date"), **competitions[0]}, schema=SUMMARY, url=url)
    has_play = any(one.runs or one.wickets or one.overs != "0.0" for one in innings_of(row))
    judged, _ = summary.status_and_phase(row.status, summary.ending_in(row.status, row.note), has_play=has_play)
    by_side = {SIDES.get(one.home_away, ""): one.team for one in row.competitors}
    teams = tuple(
        Team(name=parsing.plain(team.display_name, 120), short_name=parsing.plain(team.abbreviation, 24))
        for side in ("team_a", "team_b")
        if (team := by_side.get(side)) is not None
    )
    return DiscoveredMatch(
        source_event_id=match_id,
        url=site.summary_url(base_url, number, match_id),
        title=" v ".join(team.name for team in teams),
        sport=Sport.CRICKET,
        status=judged,
        start_time=parsing.iso_moment(row.date),
        teams=teams if len(teams) == len(SIDES) else (),
        series=parsing.plain(league.get("name"), 200),
    )


def _soccer_match(event: SoccerEvent, base_url: str, league: str, series: str) -> DiscoveredMatch:
    state = soccer_match.state_of(event, series=series)
    if state.start_time is None or not event.id.isdecimal():
        raise SchemaBreak(f"{SOCCER}: the match {event.id[:20]!r} has no id or no time")
    return DiscoveredMatch(
        source_event_id=event.id,
        url=site.soccer_match_url(base_url, league, event.id, state.start_time),
        title=state.title,
        sport=Sport.FOOTBALL,
        status=state.status,
        start_time=state.start_time,
        teams=(state.teams.team_a, state.teams.team_b),
        series=series,
    )
