"""What is asked besides the score: who plays, and what every player did. The tab of the page brings the names along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from scraping.errors import LayoutChanged, PayloadRejected
from scraping.payloads import Figures, Integrity, Lineup, Lineups, PlayerFigure
from scraping.sources import parsing
from scraping.sources.base import Reading, RefInfo, Request
from scraping.sources.crex import addresses, blob, schemas
from scraping.sources.crex.card import figures_of
from scraping.sources.crex.compose import SOURCE
from scraping.sources.crex.facts import Facts, card_in
from scraping.sources.crex.innings import parse_total
from scraping.sources.crex.schemas import InningsCard
from scraping.sources.crex.squads import lineups_of
from scraping.sources.crex.ways import facts_of

SQUADS, SCORECARD = "squads", "scorecard"
_PATHS = {SQUADS: "getIV4", SCORECARD: "getSC4"}
_TABS = {SQUADS: "match-details", SCORECARD: "match-scorecard"}


def requests(ref: RefInfo, base_url: str, name: str) -> tuple[Request, ...]:
    """The answer, and the tab that shows it: only a page says whose the keys are."""
    address = f"{addresses.hosts_of(base_url).live}/{_PATHS[name]}?key={quote(ref.source_event_id, safe='')}"
    return (
        Request(name, address, headers=addresses.headers_of(base_url)),
        Request("page", addresses.tab_of(ref.url, _TABS[name])),
    )


def lineups(reading: Reading) -> Lineups:
    facts = facts_of(reading)
    answer = _answer(reading, SQUADS, blob.SQUADS)
    with parsing.collecting_unrecognized() as words:
        sides: tuple[Lineup, ...] = ()
        if answer is not None:
            sides = lineups_of(answer, facts.order or _stated(facts), facts.people)
        missing = () if any(side.is_confirmed for side in sides) else ("lineups",)
        return Lineups(
            source=SOURCE,
            payload_schema=schemas.SQUADS,
            captured_at=reading.captured_at,
            source_event_id=reading.ref.source_event_id,
            kickoff=facts.start_time,
            lineups=sides,
            integrity=Integrity(missing_fields=missing),
            unknown=tuple(words),
        )


def figures(reading: Reading) -> Figures:
    """LayoutChanged where nothing says which teams the match has."""
    facts = facts_of(reading)
    answer = _answer(reading, SCORECARD, blob.SCORECARD)
    card = card_in(answer)
    with parsing.collecting_unrecognized() as words:
        told: tuple[PlayerFigure, ...] = ()
        if card:
            _check_card(card, facts)
            told = figures_of(card, _teams(facts, reading), facts.people)
        return Figures(
            source=SOURCE,
            payload_schema=schemas.SCORECARD,
            captured_at=reading.captured_at,
            source_event_id=reading.ref.source_event_id,
            figures=told,
            unknown=tuple(words),
        )


def _check_card(card: Sequence[InningsCard], facts: Facts) -> None:
    """The same teams meet again: a first innings that is over must have the score that the page has of it."""
    stated, printed = parse_total(card[0].d), parse_total(facts.first_innings)
    is_over = len(card) > 1 and facts.innings_seen > 1
    if is_over and stated and printed and (stated.runs, stated.wickets) != (printed.runs, printed.wickets):
        shown = f"{card[0].d!r} instead of {facts.first_innings!r}"
        raise PayloadRejected(f"the scorecard is of another match between these teams: {shown}")


def _answer(reading: Reading, name: str, names: tuple[str, ...]) -> Any:
    """The answer itself, else the copy of it in the page; None where the source has none."""
    document, page = reading.document(name), reading.document("page")
    if document is not None and document.status < 400:
        data = document.json()
        parsing.raise_if_error_body(data, document.url)
        return data
    state = blob.page_state(page.text()) if page is not None else None
    return blob.answer(state, names) if state is not None else None


def _teams(facts: Facts, reading: Reading) -> tuple[str, str]:
    order = facts.order or _stated(facts)
    if len(order) != 2:
        raise LayoutChanged("no page says which teams the match has", url=reading.ref.url)
    return order[0], order[1]


def _stated(facts: Facts) -> tuple[str, ...]:
    return tuple(facts.teams)[:2] if len(facts.team_keys) == 2 else ()
