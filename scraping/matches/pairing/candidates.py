"""Loads the matches that a match of another source may be the same as."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from scraping.matches.pairing import scoring
from scraping.matches.pairing.scoring import Facts
from scraping.matches.reconcile.states import SIDES, State, team_name
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.names import Aliases, TeamName
from scraping.payloads import DiscoveredMatch, Status

BACK, AHEAD = timedelta(hours=12), timedelta(days=6)  # start times that are compared
MOST_WITH_A_WORD = 40  # a word of more teams ("united", "city") finds no candidates
ABBREVIATION = 3  # letters of the shortest abbreviation
UNKNOWN_BACK = timedelta(days=2)  # since the discovery, where no start is known
_VERSUS = re.compile(r"\s+(?:vs?\.?|versus|@|-|\u2013)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Candidate:
    match_id: int
    facts: Facts
    state: State  # the part of its state that has the teams
    sources: frozenset[int]
    is_read: bool


class Candidates:
    """All candidates of one sport, indexed by the words of their teams' names."""

    def __init__(self, found: Iterable[Candidate]) -> None:
        self._by_word: dict[str, list[Candidate]] = defaultdict(list)
        self.all = list(found)
        for candidate in self.all:
            for word in _words(candidate.facts) | _beginnings(candidate.facts, scoring.NEAR):
                self._by_word[word].append(candidate)

    def like(self, facts: Facts) -> Iterator[Candidate]:
        """Yields the candidates that share a team name, a word of one that is not common, or its beginning and day."""
        seen: set[int] = set()
        whole = {name for team in facts.teams or () for name in (team.name, team.short)}
        for word in _words(facts) | _beginnings(facts):
            found = self._by_word.get(word, ())
            for candidate in found if word in whole or len(found) <= MOST_WITH_A_WORD else ():
                if candidate.match_id not in seen:
                    seen.add(candidate.match_id)
                    yield candidate


def candidates(sport: str, aliases: Aliases, *, now: datetime) -> Candidates:
    """Loads the candidates of a sport with two queries."""
    near = Q(start_time__gte=now - BACK, start_time__lte=now + AHEAD)
    unknown = Q(start_time=None, created_at__gte=now - UNKNOWN_BACK)
    rows = (
        Match.objects.filter(near | unknown | Q(status=Status.LIVE), sport=sport, merged_into=None)
        .exclude(lifecycle=MatchLifecycle.ARCHIVED)
        .order_by("pk")
    )
    columns = "pk", "title", "team_a", "team_b", "start_time", "series", "status", "sequence"
    found = list(rows.values(*columns, "payload__teams", "payload__metadata"))
    sources: dict[int, set[int]] = defaultdict(set)
    refs = MatchRef.objects.filter(match_id__in=rows.values("pk"))
    for match_id, source_id in refs.values_list("match_id", "source_id"):
        sources[match_id].add(source_id)
    return Candidates(_candidate(row, frozenset(sources[row["pk"]]), aliases) for row in found)


def _candidate(row: dict[str, Any], sources: frozenset[int], aliases: Aliases) -> Candidate:
    state = teams_of(row["payload__teams"], (row["team_a"], row["team_b"]), row["title"])
    metadata = row["payload__metadata"] or {}
    # With the number and the round, where the source has them as fields of their own.
    series = (row["series"], metadata.get("match_number"), metadata.get("round"))
    facts = Facts(
        teams=_team_names(state, aliases),
        start=row["start_time"],
        series=", ".join(str(part) for part in series if part),
        format=str(metadata.get("match_type") or metadata.get("format") or ""),
        is_live=row["status"] == Status.LIVE,
        title=row["title"],
    )
    return Candidate(row["pk"], facts, state, sources, bool(row["sequence"]))


def facts_of(found: DiscoveredMatch, aliases: Aliases) -> tuple[Facts, State]:
    """Returns the facts about a listed match, and the part of its state that has the teams."""
    names = [team.model_dump() for team in found.teams]
    state = teams_of(dict(zip(SIDES, names, strict=True)) if len(names) == 2 else None, ("", ""), found.title)
    facts = Facts(
        teams=_team_names(state, aliases),
        start=found.start_time,
        series=found.series,
        is_live=found.status is Status.LIVE,
        title=found.title,
    )
    return facts, state


def teams_of(teams: Mapping[str, Any] | None, names: tuple[str, str], title: str) -> State:
    """Returns the part of a state that has the teams: as read, by their names, or by a title like "India vs Kenya"."""
    if teams:
        return {"teams": teams}
    found = names if all(names) else _VERSUS.split(title.partition(",")[0])
    if len(found) != 2 or not all(found):
        return {}
    return {"teams": {side: {"name": name.strip()} for side, name in zip(SIDES, found, strict=True)}}


def _team_names(state: State, aliases: Aliases) -> tuple[TeamName, TeamName] | None:
    return (team_name(state, SIDES[0], aliases), team_name(state, SIDES[1], aliases)) if state else None


def _words(facts: Facts) -> set[str]:
    found = ((*team.parts, *team.spelled, team.name, team.short, *team.initials) for team in facts.teams or ())
    return {word for words in found for word in words if len(word) > 1}


def _beginnings(facts: Facts, tolerance: timedelta = timedelta()) -> set[str]:
    """Returns the first letters of each word with the day, for teams whose words are all abbreviated."""
    if facts.start is None:
        return set()
    days = {(facts.start + change).date() for change in (-tolerance, tolerance)}
    return {f"{part[:ABBREVIATION]} {day}" for team in facts.teams or () for part in team.parts for day in days}
