"""One round of a season: the list of its matches, asked for by tournament, season and round number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport
from scraping.sources import parsing
from scraping.sources.base import ListPlan, Reading, Request
from scraping.sources.parsing import validated
from scraping.sources.sofascore import listing, schemas
from scraping.sources.sofascore.answers import body_of

FIELDS: tuple[str, ...] = ("tournament", "season", "round")


def plan(base_url: str, asked: Mapping[str, int]) -> ListPlan:
    """The home page earns the session; the round's list is asked for directly, since no page shows it unasked."""
    home = f"{base_url.rstrip('/')}/"
    path = "api/v1/unique-tournament/{tournament}/season/{season}/events/round/{round}".format_map(asked)
    request = Request("round", f"{home}{path}", headers={"accept": "*/*", "referer": home})
    return ListPlan(url=home, endpoints=listing.endpoints(Sport.FOOTBALL), requests=(request,))


def matches_of(reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
    """Every match of the round, each once."""
    document = reading.document("round")
    try:
        answer = validated(schemas.ListResponse, body_of(document) if document else None, schema=schemas.LIST)
    except SchemaBreak as broken:
        raise SchemaBreak(f"the answer has no list of the round's matches: {broken}", url=reading.ref.url) from broken
    found: dict[str, DiscoveredMatch] = {}
    for row in map(parsing.mapping, answer.events):
        _refuse_another_round(row, asked)
        match = listing.match_of(row, base_url, Sport.FOOTBALL)
        if match is None:
            named = parsing.text(row.get("id"), 40) or "one without an id"
            raise SchemaBreak(f"a match of the round cannot be read: {named}", url=reading.ref.url)
        found.setdefault(match.source_event_id, match)
    return list(found.values())


def _refuse_another_round(row: Mapping[str, Any], asked: Mapping[str, int]) -> None:
    """What a row says about itself must be what was asked for; what it does not say is not held against it."""
    tournament = parsing.mapping(parsing.mapping(row.get("tournament")).get("uniqueTournament"))
    stated = {
        "tournament": parsing.integer(tournament.get("id")),
        "season": parsing.integer(parsing.mapping(row.get("season")).get("id")),
        "round": parsing.integer(parsing.mapping(row.get("roundInfo")).get("round")),
    }
    for name, value in stated.items():
        if value is not None and value != asked[name]:
            raise PayloadRejected(f"asked for {name} {asked[name]} and was given a match of {name} {value}")
