"""The result of a recorded match, as text."""

from __future__ import annotations

from dataclasses import dataclass

from stadium.cricsheet.document import Document, Margin, Outcome
from stadium.matches.teams import Team, plural


@dataclass(frozen=True, slots=True)
class Ending:
    text: str  # with the short names
    long_text: str
    winner: Team | None
    is_abandoned: bool = False


def ending(document: Document, teams: dict[str, Team]) -> Ending:
    outcome = document.info.outcome
    if outcome.winner:
        winner, rest = teams[outcome.winner], f"won{_by(outcome.by)}{_method(outcome)}"
        return Ending(f"{winner.short} {rest}", f"{winner.name} {rest}", winner)
    if outcome.result == "tie":
        return _tie(outcome, teams)
    if outcome.result == "draw":
        return Ending("Match drawn", "Match drawn", None)
    has_play = any(innings.deliveries for innings in document.innings)
    text = "No result" if has_play else "Match abandoned without a ball bowled"
    return Ending(text, text, None, is_abandoned=True)


def _tie(outcome: Outcome, teams: dict[str, Team]) -> Ending:
    name = outcome.eliminator or outcome.bowl_out
    tied = f"Match tied{_method(outcome)}"
    if not name:
        return Ending(tied, tied, None)
    winner, by = teams[name], "Super Over" if outcome.eliminator else "bowl-out"
    return Ending(f"{tied} ({winner.short} won the {by})", f"{tied} ({winner.name} won the {by})", winner)


def _by(margin: Margin) -> str:
    parts = []
    if margin.innings:
        parts.append("an innings")
    if margin.runs is not None:
        parts.append(plural(margin.runs, "run"))
    if margin.wickets is not None:
        parts.append(plural(margin.wickets, "wicket"))
    return f" by {' and '.join(parts)}" if parts else ""


def _method(outcome: Outcome) -> str:
    if outcome.method == "Awarded":
        return " (match awarded)"
    if not outcome.method:
        return ""
    return f" ({outcome.method} method)" if outcome.method.isupper() else f" ({outcome.method.lower()})"
