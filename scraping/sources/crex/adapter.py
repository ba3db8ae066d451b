"""How a Crex match is read: the live answer first, then the copy of it in the page, then the page as it is drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import quote

import orjson

from scraping.errors import Drift, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Payload, Sport
from scraping.sources import challenge, loose
from scraping.sources.base import Document, Endpoint, ListPlan, Reading, ReadMode, RefInfo, Request
from scraping.sources.crex import addresses, blob, dom, feed, listing
from scraping.sources.crex.compose import SOURCE, compose, envelope
from scraping.sources.crex.facts import Facts, facts_of_page, with_mapping
from scraping.sources.crex.live import live_data, parse_live
from scraping.sources.layout import Layout
from scraping.sources.wanted import missing_in

_PUBLIC = "public"
_LIST = Endpoint("list", re.compile(r"/(?:getLiveMatches|liveMatches2(?:\.php)?)(?:\?|$)"))


class CrexAdapter:
    """Crex, as crex.com was in 2024 to 2026."""

    key = SOURCE
    sport = Sport.CRICKET
    payload_schema = "crex.match.v1"
    events_endpoint = "feed"
    round_fields: tuple[str, ...] = ()  # a series here is a list of matches without rounds
    address_example = addresses.EXAMPLE
    layout: Layout | None = None
    list_layout: Layout | None = None
    prefers_attached = False

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        key = re.escape(ref.source_event_id)
        return (
            Endpoint("live", re.compile(rf"/(?:getSV3|sV3\.php)\?(?:.*&)?key={key}(?:&|$)"), is_pulse=True),
            Endpoint("feed", re.compile(r"/getBallFeeds(?:\?|$)"), is_required=False, method="POST"),
            Endpoint("mapping", re.compile(r"/getHomeMapData\w*(?:\?|$)"), is_required=False, method="POST"),
        )

    def parse(self, reading: Reading) -> Payload:
        with loose.rejecting_absurd_values(reading.ref.url):
            if reading.mode is not ReadMode.DIRECT:
                return _visited(reading)
            return _from_public(reading) if reading.document(_PUBLIC) else _from_live(reading)

    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Score and standing; its members' site asks a token for the rest."""
        key = quote(ref.source_event_id, safe="")
        return (Request(_PUBLIC, f"{base_url.rstrip('/')}/api/v3/public/getSV3?key={key}"),)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        items = _items(reading)
        if not items or feed.reaches_the_first_ball(items):
            return None
        asked = _asked(request)
        body = {"matchKey": reading.ref.source_event_id, "filters": [], "lang": "en", **asked}
        body["lastDocId"] = feed.oldest_id(items)
        if asked.get("lastDocId") == body["lastDocId"]:
            return None  # the source answers with the same page again
        return replace(request, body=orjson.dumps(body))

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/cricket-live-score", endpoints=(_LIST,))

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with loose.rejecting_absurd_values(base_url):
            return listing.matches_of(reading, base_url)

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        raise LayoutChanged("Crex has no rounds")

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        raise LayoutChanged("Crex has no rounds")

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return addresses.match_at(url, base_url)


def _visited(reading: Reading) -> Payload:
    """The three ways in their order; what each lacked is in the message if none works."""
    page = reading.document("page")
    if page is not None and blob.page_state(page.text()) is None:
        challenge.raise_if_challenge(page.text(), page.url)
    ways: tuple[Callable[[Reading], Payload], ...] = (_from_live, _from_state, _from_dom)
    failures: list[Drift] = []
    for way in ways:
        try:
            return way(reading)
        except PayloadRejected:
            raise  # read well and unfit: another reading of the same page would only hide that
        except Drift as failure:
            failures.append(failure)
    kind = SchemaBreak if page is None else LayoutChanged
    evidence = "" if page is None else page.text()[: dom.EVIDENCE_CHARACTERS]
    raise kind("; ".join(map(str, failures)), url=reading.ref.url, evidence=evidence)


def _from_live(reading: Reading) -> Payload:
    document = reading.document("live")
    if document is None or document.status >= 400:
        raise SchemaBreak("the live endpoint gave no answer", url=reading.ref.url)
    facts = _facts(reading)
    is_early = facts.start_time is not None and reading.captured_at < facts.start_time
    live = parse_live(live_data(document), may_be_bare=is_early)
    return compose(reading.ref, reading.captured_at, live, facts, _items(reading))


def _from_public(reading: Reading) -> Payload:
    """What is told without a token: good for the score, and it denies nothing of what is known besides."""
    document = reading.document(_PUBLIC)
    if document is None or document.status >= 400:
        raise SchemaBreak("the public endpoint gave no answer", url=reading.ref.url)
    facts = _facts(reading)
    is_early = facts.start_time is not None and reading.captured_at < facts.start_time
    live = parse_live(live_data(document), may_be_bare=is_early)
    payload = compose(reading.ref, reading.captured_at, live, facts, None, went_without=("live_answer",))
    return payload.model_copy(update={"is_partial_state": True})


def _from_state(reading: Reading) -> Payload:
    page = reading.document("page")
    state = blob.page_state(page.text()) if page else None
    if state is None:
        raise LayoutChanged("the page has no app-root-state that can be read", url=reading.ref.url)
    facts = _facts(reading)
    is_early = facts.start_time is not None and reading.captured_at < facts.start_time
    live = parse_live(loose.mapping(blob.answer(state, blob.LIVE)), may_be_bare=is_early)
    return compose(reading.ref, reading.captured_at, live, facts, _items(reading), went_without=("live_answer",))


def _from_dom(reading: Reading) -> Payload:
    page = reading.document("page")
    if page is None:
        raise LayoutChanged("there is no page", url=reading.ref.url)
    state = dom.state_of_page(page, reading)
    missing = ("live_answer", *missing_in(state, has_events=False))
    return envelope(reading.ref, reading.captured_at, state, missing, is_partial=True)


def _facts(reading: Reading) -> Facts:
    """Names and dates: of this visit's page, else of the last good visit's, which the reader carries along."""
    facts = Facts()
    for page in filter(None, map(reading.document, ("page", "static_page"))):
        facts = facts_of_page(page.body, reading.ref.source_event_id)
        if facts.teams:
            break
    return _with_names(facts, reading.document("mapping"))


def _with_names(facts: Facts, mapping: Document | None) -> Facts:
    if mapping is None or mapping.status >= 400:
        return facts
    try:
        return with_mapping(facts, mapping.json())
    except SchemaBreak:
        return facts


def _items(reading: Reading) -> list[feed.Item] | None:
    """The feed's answer, else the copy in a page that is as fresh as the reading."""
    key, page = reading.ref.source_event_id, reading.document("page")
    items = feed.feed_items(reading.document("feed"), key)
    if items is None and page is not None:
        state = blob.page_state(page.text())
        items = feed.items_in(blob.answer(state, blob.FEED), key) if state is not None else None
    return items


def _asked(request: Request) -> dict[str, object]:
    try:
        body = orjson.loads(request.body or b"")
    except orjson.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}
