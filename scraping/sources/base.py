"""The protocols of source adapters. An adapter lists requests and parses readings; it never touches the network.

A poll reads in one of three modes. `visit` opens the page in the browser and keeps the JSON responses of the page's own
script that match the adapter's endpoints. `direct` requests the same endpoints again with the browser's session,
without opening the page. `attached` leaves a page that updates itself open and evaluates its selectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol, runtime_checkable

from scraping.errors import LayoutChanged
from scraping.payloads import DiscoveredMatch, Figures, Lineups, MatchState, Payload, Sport
from scraping.readings import Document, Endpoint, Reading, ReadMode, RefInfo, Request
from scraping.sources.layout import Layout
from scraping.sources.parsing import integrity_of

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
    """The page that lists a source's matches, the endpoints that its script calls, and further requests."""

    url: str  # empty: there is no page, only `requests`
    endpoints: tuple[Endpoint, ...]
    requests: tuple[Request, ...] = ()  # asked through the session that the page earns, not by the page itself


class Adapter(Protocol):
    """The base class of adapters: one site. Stateless: every method is a pure function of its arguments."""

    key: str
    sport: Sport
    payload_schema: str  # "crex.match.v1"
    events_endpoint: str = ""  # the name of the endpoint that lists events, newest first; empty: they are on the page
    round_fields: tuple[str, ...] = ()  # the numbers that name a round here; empty: the source has no rounds
    address_example: str  # the address of a match, shown to operators
    layout: Layout | None = None  # the selectors of a match page; None: it is not read by selectors
    list_layout: Layout | None = None  # the same of the page that lists matches
    prefers_attached: bool = False  # its pages update themselves: they stay open and are read again

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        """Returns the endpoints that a match page's script is expected to request."""
        return ()

    def parse(self, reading: Reading) -> Payload:
        """Returns the payload. Raises LayoutChanged, SchemaBreak, PayloadRejected or Blocked (bot challenge)."""
        ...

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """Returns the request for the events before those in `reading`; None where there are none.

        `request` is how the event endpoint was asked before.
        """
        return None

    def list_plan(self, base_url: str) -> ListPlan:
        """Returns the page and the requests that list the source's matches."""
        ...

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        """Returns the matches on the list page. Raises LayoutChanged where there is no list."""
        ...

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        """Returns the requests for the matches of one round; `asked` has a number for each of `round_fields`."""
        raise LayoutChanged(f"{self.key} has no rounds")

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        """Returns all matches of the round. Raises SchemaBreak for an invalid row: a round is never silently short."""
        raise LayoutChanged(f"{self.key} has no rounds")

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        """Returns the match of an address of this source; None where it is not the address of a match."""
        ...

    def payload(
        self,
        reading: Reading,
        state: MatchState,
        *,
        has_events: bool,
        also_missing: tuple[str, ...] = (),
        also_expected: int = 0,
        **fields: Any,
    ) -> Payload:
        """Returns the payload of a state; arguments as those of `integrity_of`, and the other fields of a payload."""
        integrity = integrity_of(state, has_events=has_events, also_missing=also_missing, also_expected=also_expected)
        return Payload(state=state, integrity=integrity, **self.envelope(reading), **fields)

    def envelope(self, reading: Reading, schema: str = "") -> dict[str, Any]:
        """Returns the fields that payloads, line-ups and figures have in common."""
        return {
            "source": self.key,
            "payload_schema": schema or self.payload_schema,
            "captured_at": reading.captured_at,
            "source_event_id": reading.ref.source_event_id,
        }


@runtime_checkable
class HasPublicEndpoints(Protocol):
    """An adapter whose source has endpoints that need no token."""

    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Returns the requests that need no token. `parse` makes a partial state of their responses."""
        ...


@runtime_checkable
class AsksOutright(Protocol):
    """An adapter that needs no visit to know its requests: an open API, or a page that contains all its data.

    Its polls are direct from the first one. Where the source refuses, the page of the match is visited instead.
    """

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Returns the requests of one poll. A request named "page" is the match's own page."""
        ...


@runtime_checkable
class FollowsUp(Protocol):
    """An adapter whose next requests depend on a response, for example on its number of pages."""

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """Returns the requests that follow `reading`; a response of the same name replaces the first."""
        ...


@runtime_checkable
class HasLineups(Protocol):
    """An adapter whose source has line-ups."""

    lineup_schema: str  # "sofascore.lineups.v1"

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]: ...

    def parse_lineups(self, reading: Reading) -> Lineups:
        """Returns Lineups without sides where the source has none yet (status 404)."""
        ...


@runtime_checkable
class HasFigures(Protocol):
    """An adapter whose source has player figures."""

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
        """Returns the requests that follow these readings; empty: the list is complete."""
        ...
