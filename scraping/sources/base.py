"""The base class of source adapters. An adapter lists requests and parses readings; it never touches the network.

A poll reads in one of three modes. `visit` opens the page in the browser and keeps the JSON responses of the page's own
script that match the adapter's endpoints. `direct` requests the same endpoints again with the browser's session,
without opening the page. `attached` leaves a page that updates itself open and evaluates its selectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from scraping.errors import LayoutChanged
from scraping.payloads import (
    DiscoveredMatch,
    Event,
    Figures,
    Integrity,
    Lineups,
    MatchState,
    Payload,
    Phase,
    Sport,
    Status,
)
from scraping.readings import Document, Endpoint, Reading, ReadMode, RefInfo, Request
from scraping.sources.layout import Layout
from scraping.sources.parsing import has_play, parses, starting_on

__all__ = [
    "Adapter",
    "Document",
    "Endpoint",
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


class Adapter:
    """The base class of adapters: one site. Stateless; `parsing.parses` wraps the methods `parse...` of subclasses."""

    key: str
    sport: Sport
    payload_schema: str  # "crex.match.v1"
    lineup_schema: str = ""  # empty: the source has no line-ups
    figure_schema: str = ""  # empty: the source has no figures of players
    events_endpoint: str = ""  # the name of the endpoint that lists events, newest first; empty: they are on the page
    round_fields: tuple[str, ...] = ()  # the numbers that name a round here; empty: the source has no rounds
    address_example: str  # the address of a match, shown to operators
    layout: Layout | None = None  # the selectors of a match page; None: it is not read by selectors
    list_layout: Layout | None = None  # the same of the page that lists matches
    prefers_attached: bool = False  # its pages update themselves: they stay open and are read again

    def __init_subclass__(cls) -> None:
        for name, method in tuple(vars(cls).items()):
            if name.startswith("parse"):
                setattr(cls, name, parses(method))

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        """Returns the endpoints that a match page's script is expected to request."""
        return ()

    def parse(self, reading: Reading) -> Payload:
        """Returns the payload. Raises LayoutChanged, SchemaBreak, PayloadRejected or Challenged."""
        raise NotImplementedError

    def parse_events(self, reading: Reading) -> tuple[Event, ...]:
        """Returns the events of a response that lists them, also where the reading has nothing else of the match."""
        return self.parse(reading).events

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """Returns the request for events before those that `request` has read; None where there are none."""
        return None

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Returns the requests of one poll where no visit is needed to know them; "page" is the match's own page.

        So it is with an open API, or a page that contains all its data: polls are direct from the first one. Where the
        source refuses, the page of the match is visited instead.
        """
        return ()

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """Returns the requests that depend on a response, such as its number of pages; same names replace the first."""
        return ()

    def needed_page(self, reading: Reading) -> str:
        """Returns the address of a page with facts that the cached one lacks; it is fetched at once and replaces it."""
        return ""

    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Returns the requests that need no token. `parse` makes a partial state of their responses."""
        return ()

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return ()

    def parse_lineups(self, reading: Reading) -> Lineups:
        """Returns Lineups without sides where the source has none yet (status 404)."""
        raise NotImplementedError

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return ()

    def parse_figures(self, reading: Reading) -> Figures:
        raise NotImplementedError

    def list_plan(self, base_url: str) -> ListPlan:
        raise NotImplementedError

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        """Returns the matches on the list page. Raises LayoutChanged where there is no list."""
        raise NotImplementedError

    def fixture_plan(self, base_url: str, day: date) -> ListPlan | None:
        """Returns the page and the requests that list the matches of a day; None: the source has no such lists."""
        return None

    def more_fixtures(self, readings: Sequence[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        """Returns the requests for further lists that these readings name; empty: the list is complete."""
        return ()

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        """Returns the matches of the list that start on this day; a list may have others too."""
        return starting_on(day, self.parse_list(reading, base_url))

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        """Returns the requests for the matches of one round; `asked` has a number for each of `round_fields`."""
        raise LayoutChanged(f"{self.key} has no rounds")

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        """Returns all matches of the round. Raises SchemaBreak for an invalid row: a round is never silently short."""
        raise LayoutChanged(f"{self.key} has no rounds")

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        """Returns the match of an address of this source, upcoming until it is read; None for another address."""
        try:
            ref = self.ref_at(url, base_url)
        except ValueError:  # not an address
            return None
        if ref is None:
            return None
        return DiscoveredMatch(
            source_event_id=ref.source_event_id, url=ref.url, sport=self.sport, status=Status.UPCOMING
        )

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        """Returns id and page of the match of an address; None where it is not the address of a match."""
        raise NotImplementedError

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
        """Returns the payload of a state, with the expected fields that it lacks; `fields`: others of the payload.

        Before the start neither score nor events are expected. `also_missing`, `also_expected`: names and number of
        fields that only the caller knows.
        """
        is_present = {
            "teams.team_a.short_name": bool(state.teams.team_a.short_name),
            "teams.team_b.short_name": bool(state.teams.team_b.short_name),
            "start_time": state.start_time is not None,
            "venue": bool(state.venue),
            "metadata.series": bool(state.metadata.get("series")),
        }
        if state.sport is Sport.FOOTBALL:
            has_begun = state.status in (Status.LIVE, Status.COMPLETED)
            is_present |= {
                "score": state.score.team_a.goals is not None or not has_begun,
                "events": has_events or not has_begun,
            }
        else:
            has_begun = state.phase is Phase.PLAY or state.status is Status.COMPLETED
            is_present |= {
                "metadata.match_type": bool(state.metadata.get("match_type")),
                "score": bool(state.innings) or not has_begun,
                "last_event": state.last_event is not None or not has_play(state.innings),
                "events": has_events or not has_play(state.innings),
            }
        missing = also_missing + tuple(name for name, present in is_present.items() if not present)
        null_rate = min(1.0, len(missing) / (len(is_present) + also_expected))
        integrity = Integrity(missing_fields=missing, null_field_rate=round(null_rate, 4))
        return Payload(state=state, integrity=integrity, **{**self.envelope(reading), **fields})

    def envelope(self, reading: Reading, schema: str = "") -> dict[str, Any]:
        """Returns the fields that payloads, line-ups and figures have in common."""
        return {
            "source": self.key,
            "payload_schema": schema or self.payload_schema,
            "captured_at": reading.captured_at,
            "source_event_id": reading.ref.source_event_id,
        }
