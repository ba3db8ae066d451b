"""How a board is read: values by selectors, from a page that stays open or from one that was just loaded."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

from scraping.errors import LayoutChanged, PayloadRejected
from scraping.payloads import DiscoveredMatch, Payload, Sport
from scraping.readings import FIELDS
from scraping.sources import extract, parsing
from scraping.sources.base import Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.board import listing
from scraping.sources.board.compose import SOURCE, compose
from scraping.sources.board.selectors import LIST, MATCH
from scraping.sources.extract import Extracted
from scraping.sources.layout import Layout


class BoardAdapter:
    """A scoreboard without JSON. The page is told what is new and redraws itself."""

    key = SOURCE
    sport = Sport.CRICKET
    payload_schema = "board.match.v1"
    events_endpoint = ""  # its list of events is on the page, older ones behind a link
    round_fields: tuple[str, ...] = ()
    address_example = ".../match/ahb-v-cld-odi-138Z"
    layout: Layout | None = MATCH
    list_layout: Layout | None = LIST
    prefers_attached = True

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        return ()

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url):
            found = _extracted(reading, MATCH)
            shown = found.text("key", 20)
            if shown != reading.ref.source_event_id:
                raise PayloadRejected(
                    f"the page is about another match: {shown} instead of {reading.ref.source_event_id}",
                    url=reading.ref.url,
                )
            return compose(reading.ref, reading.captured_at, found)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """The link under the list leads to the same page with older balls on it."""
        link = _extracted(reading, MATCH).text("older", 300)
        url = urljoin(request.url, link)
        return Request("page", url) if link and url != request.url else None

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/", endpoints=())

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.matches_of(_extracted(reading, LIST), reading.ref.url or base_url, base_url)

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        raise LayoutChanged("a board has no rounds")

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        raise LayoutChanged("a board has no rounds")

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return listing.match_at(url, base_url)


def _extracted(reading: Reading, standard: Layout) -> Extracted:
    """What an open page answered, else what is in the text of a page. LayoutChanged where it is another page."""
    layout = standard.using(reading.selectors)
    answered, page = reading.document(FIELDS), reading.document("page")
    html = page.text() if page is not None else ""
    found = parsing.mapping(answered.json()) if answered is not None else extract.from_html(html, layout)
    extracted = Extracted(found, layout)
    try:
        extracted.demand(url=reading.ref.url, html=html)
    except LayoutChanged:
        parsing.raise_if_challenge(html, reading.ref.url)
        raise
    return extracted
