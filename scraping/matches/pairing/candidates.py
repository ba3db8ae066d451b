"""Loads the matches that a match of another source may be the same as."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from scraping import names
from scraping.matches.pairing.scoring import Facts
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.names import Aliases, TeamName
from scraping.payloads import DiscoveredMatch, Status

BACK, AHEAD = timedelta(hours=12), timedelta(days=6)  # start times that are compared
MOST_WITH_A_WORD = 40  # a word of more teams ("united", "city") finds no candidates
UNKNOWN_BACK = timedelta(days=2)  # since the discovery, where no start is known
_VERSUS = re.compile(r"\s+(?:vs?\.?|versus|@|-|\u2013)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Candidate:
    """A match that may turn out to be another one."""

    match_id: int
    title: str
    facts: Facts
    sources: frozenset[int]
    is_read: bool
    sides: tuple[dict[str, str], dict[str, str]] | None = None  # names and short names, as the match has them

    @property
    def state(self) -> dict[str, Any]:
        """Returns the part of a state that has the teams."""
        return {"teams": dict(zip(("team_a", "team_b"), self.sides, strict=True))} if self.sides else {}


class Candidates:
    """All candidates of one sport, indexed by the words of their teams' names."""

    def __init__(self, found: Iterable[Candidate]) -> None:
        self._by_word: dict[str, list[Candidate]] = defaultdict(list)
        self.all = list(found)
        for candidate in self.all:
            self.add(candidate)

    def add(self, candidate: Candidate) -> None:
        for word in _words(candidate.facts):
            self._by_word[word].append(candidate)

    def like(self, facts: Facts) -> Iterator[Candidate]:
        """Yields the candidates that share a team name, or a word of one that is not common."""
        seen: set[int] = set()
        whole = {name for team in facts.teams or () for name in (team.name, team.short)}
        for word in _words(facts):
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
    return Candidates(_candidate(row, sport, frozenset(sources[row["pk"]]), aliases) for row in found)


def _candidate(row: dict[str, Any], sport: str, sources: frozenset[int], aliases: Aliases) -> Candidate:
    sides = _sides(row)
    metadata = row["payload__metadata"] or {}
    facts = Facts(
        sport=sport,
        teams=_team_names(sides, aliases),
        start=row["start_time"],
        series=_series(row["series"], metadata),
        format=str(metadata.get("match_type") or metadata.get("format") or ""),
        is_live=row["status"] == Status.LIVE,
    )
    return Candidate(row["pk"], row["title"], facts, sources, bool(row["sequence"]), sides)


def _series(series: str, metadata: dict[str, Any]) -> str:
    """Returns the series with the number and the round, where the source has them as fields of their own."""
    return ", ".join(str(part) for part in (series, metadata.get("match_number"), metadata.get("round")) if part)


def facts_of(found: DiscoveredMatch, aliases: Aliases) -> Facts:
    sides = tuple({"name": team.name, "short_name": team.short_name} for team in found.teams)
    return Facts(
        sport=found.sport.value,
        teams=_team_names(sides if len(sides) == 2 else sides_of_title(found.title), aliases),
        start=found.start_time,
        series=found.series,
        is_live=found.status is Status.LIVE,
    )


def _sides(row: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]] | None:
    teams = row["payload__teams"]
    if teams:
        return teams["team_a"], teams["team_b"]
    if row["team_a"] and row["team_b"]:
        return {"name": row["team_a"]}, {"name": row["team_b"]}
    return sides_of_title(row["title"])


def sides_of_title(title: str) -> tuple[dict[str, str], dict[str, str]] | None:
    """Returns both teams of a title like "India vs Australia, 2nd ODI"."""
    parts = _VERSUS.split(title.partition(",")[0])
    return ({"name": parts[0].strip()}, {"name": parts[1].strip()}) if len(parts) == 2 and all(parts) else None


def _team_names(sides: Any, aliases: Aliases) -> tuple[TeamName, TeamName] | None:
    if sides is None:
        return None
    first, second = (names.team(side.get("name") or "", side.get("short_name") or "", aliases) for side in sides)
    return first, second


def _words(facts: Facts) -> set[str]:
    return {word for team in facts.teams or () for word in (*team.words, team.name, team.short) if len(word) > 1}
