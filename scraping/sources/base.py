"""What a source adapter is: it says what to read and makes a payload of what was read. It never touches the network.

A poll reads in one of three ways. `visit` opens the page in the browser; the JSON answers that the page's own script
gets and that match the adapter's endpoints are kept. `direct` asks those same endpoints again through the browser's
session, without opening the page. `attached` leaves a page that updates itself open, and asks what its selectors find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, runtime_checkable

from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload, Sport
from scraping.readings import Document, Endpoint, Reading, ReadMode, RefInfo, Request
from scraping.sources.layout import Layout

__all__ = [
    "Adapter",
    "AsksOutright",
    "Document",
    "Endpoint",
    "FollowsUp",
    "HasFigures",
    "HasFixtures",
    "HasLineups",
    "HasPublicEndpoints",
    "ListPlan",
    "ReadMode",
    "Reading",
    "RefInfo",
    "Request",
]


@dataclass(frozen=True)
class ListPlan:
    """The page that lists a source's matches, the endpoints that its script calls, and what we ask besides."""

    url: str  # empty: there is no page, only `requests`
    endpoints: tuple[Endpoint, ...]
    requests: tuple[Request, ...] = ()  # asked through the session that the page earns, not by the page itself


class Adapter(Protocol):
    """One site. Stateless: every method is a pure function of its arguments."""

    key: str
    sport: Sport
    payload_schema: str  # "crex.match.v1"
    events_endpoint: str  # the name of the endpoint that lists events, newest first; empty: they are on the page
    round_fields: tuple[str, ...]  # the numbers that name a round here; empty: the source has no rounds
    address_example: str  # how the address of a match looks, told to people
    layout: Layout | None  # where a match page has its facts; None: it is not read by selectors
    list_layout: Layout | None  # the same of the page that lists matches
    prefers_attached: bool  # its pages update themselves: they stay open and are asked what they show

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        """What a match page's script is expected to ask for."""
        ...

    def parse(self, reading: Reading) -> Payload:
        """Make a payload. Raises LayoutChanged, SchemaBreak, PayloadRejected, Blocked (challenge with status 200)."""
        ...

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """The request for the page of events before those in `reading`, or None where there is nothing older.

        `request` is how the event endpoint was asked before.
        """
        ...

    def list_plan(self, base_url: str) -> ListPlan:
        """Where the source lists its matches."""
        ...

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        """The matches on the list page. Raises LayoutChanged when the list cannot be found at all."""
        ...

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        """Where the source lists the matches of one round; `asked` has a number for each of `round_fields`."""
        ...

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        """All matches of the round. A row that cannot be read is a SchemaBreak: a round is never silently short."""
        ...

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        """The match behind an address of this source; None where it is not the address of a match."""
        ...


@runtime_checkable
class HasPublicEndpoints(Protocol):
    """An adapter that knows what can be asked of its site without a token."""

    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """What anybody may ask about a match. `parse` makes a partial state of what such a reading brings."""
        ...


@runtime_checkable
class AsksOutright(Protocol):
    """An adapter that knows without any visit what to ask: an open API, or a page that holds all its data itself.

    Its polls are direct from the first one. Where the source refuses, the page of the match is visited instead, and
    `parse` finds there what it needs, or says that it does not.
    """

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """What one poll asks. A request named "page" is the match's own page."""
        ...


@runtime_checkable
class FollowsUp(Protocol):
    """An adapter whose source says only in an answer what to ask next: how many pages its list of events has."""

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """What to ask right after the answers in `reading`; an answer of the same name takes the place of the first."""
        ...


@runtime_checkable
class HasLineups(Protocol):
    """An adapter whose source tells who plays."""

    lineup_schema: str  # "sofascore.lineups.v1"

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]: ...

    def parse_lineups(self, reading: Reading) -> Lineups:
        """Where the source has none yet (it answers 404), a Lineups without sides."""
        ...


@runtime_checkable
class HasFigures(Protocol):
    """An adapter whose source tells what every player did."""

    figure_schema: str  # "crex.scorecard.v1"

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]: ...

    def parse_figures(self, reading: Reading) -> Figures: ...


@runtime_checkable
class HasFixtures(Protocol):
    """An adapter whose source lists the matches of a day."""

    def fixture_plan(self, base_url: str, day: date) -> ListPlan: ...

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]: ...


@runtime_checkable
class HasMoreFixtures(Protocol):
    """An adapter whose source lists the matches of a day on several lists, of which the first names the others."""

    def more_fixtures(self, readings: Sequence[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        """What to ask after these readings; empty: that was all."""
        ...
