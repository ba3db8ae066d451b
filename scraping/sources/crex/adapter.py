"""The Crex adapter: reads a match from the live response, its copy in the page, or the rendered page, in this order."""

import re
from dataclasses import replace
from datetime import date
from urllib.parse import quote, urlsplit

import orjson

from scraping.errors import Drift, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Event, Figures, Lineups, Payload, Sport
from scraping.readings import JSON_TYPES
from scraping.sources import parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.crex import ball_feed, listing, players, rendered_page, schemas, site, texts
from scraping.sources.crex.details import details_of
from scraping.sources.crex.payload import assemble_payload

# The old PHP endpoints label their JSON as HTML or plain text; parsing detects a challenge in its place.
_TYPES = (*sorted(JSON_TYPES), "text/html", "text/plain")
_LIST = Endpoint("list", re.compile(r"/(?:getLiveMatches|liveMatches2(?:\.php)?)(?:\?|$)"), content_types=_TYPES)
PUBLIC = "public"


class CrexAdapter(Adapter):
    """Crex, as crex.com was in 2024 to 2026."""

    key = "crex"
    sport = Sport.CRICKET
    payload_schema = schemas.LIVE
    lineup_schema = schemas.SQUADS
    figure_schema = schemas.SCORECARD
    events_endpoint = "feed"
    address_example = ".../cricket-live-score/ind-vs-aus-3rd-t20-match-updates-13KM"

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        key = rf"\?(?:.*&)?key={re.escape(ref.source_event_id)}(?:&|$)"
        return (
            Endpoint("live", re.compile(rf"/(?:getSV3|sV3\.php){key}"), content_types=_TYPES),
            Endpoint("feed", re.compile(r"/getBallFeeds(?:\?|$)"), is_required=False, method="POST"),
            Endpoint("mapping", re.compile(r"/getHomeMapData\w*(?:\?|$)"), is_required=False, method="POST"),
            Endpoint("scorecard", re.compile(rf"/(?:getSC4|sC4\.php){key}"), is_required=False, content_types=_TYPES),
        )

    def parse(self, reading: Reading) -> Payload:
        if not reading.mode.is_requested:
            return self._from_visit(reading)
        return self._from_live(reading, PUBLIC if reading.document(PUBLIC) is not None else "live")

    def _from_visit(self, reading: Reading) -> Payload:
        """Tries the three readers in order; if none succeeds, the error has the messages of all."""
        page = reading.document("page")
        html = page.text() if page is not None else ""
        if site.page_state(html) is None:
            parsing.raise_if_challenge(html, reading.ref.url)
        failures: list[Drift] = []
        for reader in (self._from_live, self._from_page_state, self._from_rendered_page):
            try:
                return reader(reading)
            except PayloadRejected:
                raise  # the data was read and is invalid: another reader would only hide that
            except Drift as failure:
                failures.append(failure)
        kind = SchemaBreak if page is None else LayoutChanged
        raise kind(
            "; ".join(map(str, failures)),
            url=reading.ref.url,
            evidence=html[: parsing.EVIDENCE_CHARACTERS],
            selector=", ".join(failure.selector for failure in failures if failure.selector),
        )

    def _from_live(self, reading: Reading, name: str = "live") -> Payload:
        document = reading.document(name)
        if document is None:
            raise SchemaBreak(f"the {name} endpoint gave no response", url=reading.ref.url)
        return assemble_payload(
            self, reading, parsing.json_object(document), url=document.url, is_public=name == PUBLIC
        )

    def _from_page_state(self, reading: Reading) -> Payload:
        page = reading.document("page")
        state = site.page_state(page.text() if page else "")
        if state is None:
            raise LayoutChanged(
                "the page has no app-root-state that can be read", url=reading.ref.url, selector="#app-root-state"
            )
        return assemble_payload(self, reading, parsing.mapping(site.embedded_response(state, site.LIVE)), is_copy=True)

    def _from_rendered_page(self, reading: Reading) -> Payload:
        page = reading.document("page")
        if page is None:
            raise LayoutChanged("there is no page", url=reading.ref.url)
        state = rendered_page.state_of_page(page, reading)
        return self.payload(
            reading,
            state,
            has_events=False,
            also_missing=("live_answer",),
            payload_schema=schemas.DOM,
            is_partial_state=True,
        )

    def parse_events(self, reading: Reading) -> tuple[Event, ...]:
        items = ball_feed.items_of(reading)
        if items is None:
            raise SchemaBreak("the ball feed gave no list", url=reading.ref.url)
        return ball_feed.events_of(items)

    def needed_page(self, reading: Reading) -> str:
        """Returns the details tab, which keeps the toss, where play has begun and the page lacks it."""
        try:
            details = details_of(reading)
            document = reading.document("live")
            has_looked = details.toss is not None or (details.is_details_tab and details.has_play)
            if has_looked or document is None or not texts.has_score(parsing.mapping(document.json()).get("j")):
                return ""
            return site.tab_of(reading.ref.url, site.DETAILS_TAB)
        except Drift:  # `parse` reports it
            return ""

    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Returns the request for the score; the site requires a token for the rest."""
        key = quote(ref.source_event_id, safe="")
        return (Request(PUBLIC, f"{base_url.rstrip('/')}/api/v3/public/getSV3?key={key}"),)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        items = ball_feed.items_of(reading)
        if not items or ball_feed.reaches_the_first_ball(items):
            return None
        try:
            sent = parsing.mapping(orjson.loads(request.body or b""))
        except orjson.JSONDecodeError:
            sent = {}
        body = {"matchKey": reading.ref.source_event_id, "filters": [], "lang": "en", **sent}
        body["lastDocId"] = ball_feed.oldest_id(items)
        if sent.get("lastDocId") == body["lastDocId"]:
            return None  # the source returned the same page again
        return replace(request, body=orjson.dumps(body))

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/cricket-live-score", endpoints=(_LIST,))

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        return listing.matches_of(reading, base_url)

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return players.requests(ref, base_url, players.SQUADS)

    def parse_lineups(self, reading: Reading) -> Lineups:
        details = details_of(reading)
        lineups = players.lineups(reading, details)
        envelope = self.envelope(reading, schemas.SQUADS)
        return Lineups(**envelope, kickoff=details.start_time, lineups=lineups, toss=details.toss)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return players.requests(ref, base_url, players.SCORECARD)

    def parse_figures(self, reading: Reading) -> Figures:
        figures = players.figures(reading, details_of(reading))
        return Figures(**self.envelope(reading, schemas.SCORECARD), figures=figures)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return listing.fixture_plan(base_url)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return listing.fixtures_on(reading, base_url, day)

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        path = urlsplit(url).path.removeprefix(urlsplit(base_url.rstrip("/")).path)
        key = site.match_key(path)
        is_match = key and path.startswith(("/cricket-live-score/", "/scoreboard/"))
        return RefInfo(key, site.match_page(url)) if is_match else None
