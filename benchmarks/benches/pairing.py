"""Are the fixtures of two sites paired rightly? Generated ones (`benchmarks/pairing`): other names of one team, traps.

Each day has the fixtures of two sites, many of them the same match. Ours is the code that pairs listed matches: the
candidates, their comparison and the choice. Beside it, on the same days: rapidfuzz alone (token_set_ratio of both teams
at or above a limit) and exact tables of aliases (both names mean one team), with starts at most half an hour apart.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from benchmarks.errors import BenchError
from benchmarks.progress import say

if TYPE_CHECKING:
    from benchmarks.pairing.fixtures import Pair
    from scraping.payloads import DiscoveredMatch

SUMMARY = "fixtures of two sites under other names: found, false joins, for review; rapidfuzz and alias tables beside"
CLOSE = timedelta(minutes=30)
SHOWN = 10  # false joins in the problems
FOUND, REVIEW, APART = "found", "in_review", "apart"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--pairs", type=int, default=12_000, help="pairs of fixtures (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generator (%(default)s)")
    parser.add_argument("--limit", type=float, default=90.0, help="least ratio of the peer rapidfuzz (%(default)s)")
    parser.add_argument("--missed", type=int, default=0, help="print so many pairs of each kind that are not found")


def run(options: Namespace) -> dict[str, Any]:
    _set_up()
    from benchmarks.pairing.fixtures import days

    if options.pairs < 1:
        raise BenchError("at least one pair")
    tables = _tables()
    none: dict[str, str] = {}
    began, made = time.monotonic(), 0
    tallies = {name: _Tally() for name in ("ours", "without_aliases", "rapidfuzz", "alias_tables")}
    missed: dict[str, list[str]] = defaultdict(list)
    for number, pairs in enumerate(days(options.pairs, options.seed)):
        sport = pairs[0].ours.sport.value
        tallies["ours"].add(pairs, _ours(pairs, tables[sport]), missed)
        tallies["without_aliases"].add(pairs, _ours(pairs, none))
        tallies["rapidfuzz"].add(pairs, _by_teams(pairs, _by_ratio(options.limit)))
        tallies["alias_tables"].add(pairs, _by_teams(pairs, _by_identity(tables[sport])))
        made += len(pairs)
        if number % 50 == 0:
            say(f"  {made:,} of {options.pairs:,} pairs, {len(tallies['ours'].false)} false joins")
    for kind, texts in missed.items():
        say("\n".join(f"  {kind}: {text}" for text in texts[: options.missed]))
    return _result(tallies, options, time.monotonic() - began)


def _set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()


def _tables() -> dict[str, Mapping[str, str]]:
    """Returns the shipped aliases of each sport, as `TeamAlias.objects.names` returns them."""
    from django.conf import settings

    from scraping.configuration import source_file
    from scraping.names import alias_table

    rows = source_file.read_teams(settings.BASE_DIR / "config" / "teams.yaml")
    sports = {row.sport for row in rows}
    return {
        sport: alias_table(tuple((row.squeezed, row.name) for row in rows if row.sport == sport)) for sport in sports
    }


class _Tally:
    """Counts the outcomes of one way of pairing."""

    def __init__(self) -> None:
        self.kinds: dict[str, Counter[str]] = defaultdict(Counter)
        self.false: list[str] = []

    def add(self, pairs: Sequence[Pair], outcomes: Mapping[int, tuple[int | None, bool]], missed: Any = None) -> None:
        """`outcomes`: for each pair, the number of the fixture that it was joined with, and whether it is in review."""
        for number, pair in enumerate(pairs):
            joined, is_reviewed = outcomes[number]
            if joined is not None and (joined != number or not pair.is_same):
                self.false.append(f"{pair.kind}: {_text(pair.ours)} | {_text(pairs[joined].theirs)}")
            outcome = FOUND if joined is not None else REVIEW if is_reviewed else APART
            self.kinds[pair.kind][outcome] += 1
            if missed is not None and pair.is_same and joined is None:
                missed[f"{pair.kind}, {outcome}"].append(f"{_text(pair.ours)} | {_text(pair.theirs)}")

    def figures(self, traps: set[str]) -> dict[str, Any]:
        total: Counter[str] = Counter()
        for kind, counts in self.kinds.items():
            if kind not in traps:
                total += counts
        matches = sum(total.values())
        return {
            FOUND: round(total[FOUND] / matches, 4),
            "false_joins": len(self.false),
            REVIEW: round(total[REVIEW] / matches, 4),
            APART: round(total[APART] / matches, 4),
        }


def _ours(pairs: Sequence[Pair], aliases: Mapping[str, str]) -> dict[int, tuple[int | None, bool]]:
    from scraping.matches.pairing.candidates import Candidate, Candidates, facts_of
    from scraping.matches.pairing.finding import compare, the_same
    from scraping.matches.pairing.scoring import PairOutcome

    def candidate(number: int, found: DiscoveredMatch) -> Candidate:
        facts, state = facts_of(found, aliases)
        return Candidate(number, facts, state, frozenset({2}), is_read=False)

    known = Candidates(candidate(number, pair.theirs) for number, pair in enumerate(pairs))
    found = {}
    for number, pair in enumerate(pairs):
        compared = list(compare(facts_of(pair.ours, aliases)[0], known, aliases))
        best = the_same(compared)
        is_reviewed = any(
            one.match_id == number and comparison.outcome is not PairOutcome.APART for one, comparison in compared
        )
        found[number] = None if best is None else best.match_id, is_reviewed
    return found


def _by_teams(pairs: Sequence[Pair], likeness: Callable[[str, str], float]) -> dict[int, tuple[int | None, bool]]:
    """Joins each fixture with the best one at the same time of which both teams are alike, in either order."""
    found: dict[int, tuple[int | None, bool]] = {}
    for number, pair in enumerate(pairs):
        best, of_best = None, 0.0
        for other, candidate in enumerate(pairs):
            assert pair.ours.start_time is not None
            assert candidate.theirs.start_time is not None
            if abs(pair.ours.start_time - candidate.theirs.start_time) > CLOSE:
                continue
            (a, b), (c, d) = pair.ours.teams, candidate.theirs.teams
            straight = min(likeness(a.name, c.name), likeness(b.name, d.name))
            alike = max(straight, min(likeness(a.name, d.name), likeness(b.name, c.name)))
            if alike > of_best:
                best, of_best = other, alike
        found[number] = best, False
    return found


def _by_ratio(limit: float) -> Callable[[str, str], float]:
    from rapidfuzz import fuzz, utils

    def ratio(one: str, other: str) -> float:
        found = fuzz.token_set_ratio(one, other, processor=utils.default_process)
        return found if found >= limit else 0.0

    return ratio


def _by_identity(aliases: Mapping[str, str]) -> Callable[[str, str], float]:
    from scraping.names import identity

    return lambda one, other: float(identity(one, aliases) == identity(other, aliases))


def _text(found: DiscoveredMatch) -> str:
    names = " - ".join(f"{team.name}/{team.short_name}" if team.short_name else team.name for team in found.teams)
    return f"{names} {found.start_time:%d %H:%M} {found.series}"


def _result(tallies: dict[str, _Tally], options: Namespace, seconds: float) -> dict[str, Any]:
    ours = tallies["ours"]
    traps = {kind for kind in ours.kinds if kind.startswith("trap")}
    pairs = sum(sum(counts.values()) for counts in ours.kinds.values())
    say(f"  {pairs:,} pairs compared in {seconds:.0f} s")
    return {
        "pairs": pairs,
        "traps": sum(sum(ours.kinds[kind].values()) for kind in traps),
        "seed": options.seed,
        **ours.figures(traps),
        "traps_in_review": sum(ours.kinds[kind][REVIEW] for kind in traps),
        "peers": {
            "rapidfuzz": {"limit": options.limit, **tallies["rapidfuzz"].figures(traps)},
            "alias_tables": tallies["alias_tables"].figures(traps),
        },
        "without_aliases": tallies["without_aliases"].figures(traps),
        "kinds": {kind: {"pairs": sum(counts.values()), **dict(counts)} for kind, counts in sorted(ours.kinds.items())},
        "problems": [f"false join: {text}" for text in ours.false[:SHOWN]],
    }
