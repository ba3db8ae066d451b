"""The three ways to a match's state, in their order: the live answer, the copy of it in the page, the page as drawn."""

from __future__ import annotations

from collections.abc import Callable

from scraping.errors import Drift, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Payload
from scraping.sources import parsing
from scraping.sources.base import Document, Reading, ReadMode
from scraping.sources.crex import blob, dom, feed, schemas
from scraping.sources.crex.compose import compose, envelope
from scraping.sources.crex.facts import Facts, card_in, facts_of_page, with_mapping
from scraping.sources.crex.live import LiveState, live_data, parse_live
from scraping.sources.crex.schemas import InningsCard
from scraping.sources.parsing import missing_cricket_fields

PUBLIC = "public"


def visited(reading: Reading) -> Payload:
    """The three ways in their order; what each lacked is in the message if none works."""
    page = reading.document("page")
    if page is not None and blob.page_state(page.text()) is None:
        parsing.raise_if_challenge(page.text(), page.url)
    ways: tuple[Callable[[Reading], Payload], ...] = (from_live, _from_state, _from_dom)
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


def from_live(reading: Reading) -> Payload:
    document = reading.document("live")
    if document is None or document.status >= 400:
        raise SchemaBreak("the live endpoint gave no answer", url=reading.ref.url)
    facts = facts_of(reading)
    live = parse_live(live_data(document), may_be_bare=_is_early(reading, facts), url=document.url)
    card = card_of(reading)
    _want_card(reading, live, facts, card)
    return compose(reading.ref, reading.captured_at, live, facts, items_of(reading), card=card)


def from_public(reading: Reading) -> Payload:
    """What is told without a token: good for the score, and it denies nothing of what is known besides."""
    document = reading.document(PUBLIC)
    if document is None or document.status >= 400:
        raise SchemaBreak("the public endpoint gave no answer", url=reading.ref.url)
    facts = facts_of(reading)
    live = parse_live(live_data(document), may_be_bare=_is_early(reading, facts), url=document.url)
    payload = compose(reading.ref, reading.captured_at, live, facts, None, went_without=("live_answer",))
    return payload.model_copy(update={"is_partial_state": True})


def _from_state(reading: Reading) -> Payload:
    page = reading.document("page")
    state = blob.page_state(page.text()) if page else None
    if state is None:
        raise LayoutChanged("the page has no app-root-state that can be read", url=reading.ref.url)
    facts = facts_of(reading)
    live = parse_live(parsing.mapping(blob.answer(state, blob.LIVE)), may_be_bare=_is_early(reading, facts))
    return compose(
        reading.ref,
        reading.captured_at,
        live,
        facts,
        items_of(reading),
        card=card_of(reading),
        went_without=("live_answer",),
        payload_schema=schemas.PAGE,
    )


def _from_dom(reading: Reading) -> Payload:
    page = reading.document("page")
    if page is None:
        raise LayoutChanged("there is no page", url=reading.ref.url)
    state = dom.state_of_page(page, reading)
    missing = ("live_answer", *missing_cricket_fields(state, has_events=False))
    return envelope(reading.ref, reading.captured_at, state, missing, is_partial=True, payload_schema=schemas.DOM)


def _is_early(reading: Reading, facts: Facts) -> bool:
    return facts.start_time is not None and reading.captured_at < facts.start_time


def _want_card(reading: Reading, live: LiveState, facts: Facts, card: tuple[InningsCard, ...]) -> None:
    """The live answer has no room for a third innings and those after it: the scorecard has them, and the page asks for
    it then. A direct read that does without is broken off once an innings, so that a visit may teach it.
    """
    told = set(live.innings) | set(range(1, len(card or facts.card) + 1))
    lacks = live.at_hand > 2 and not told >= set(range(1, live.at_hand + 1))
    if lacks and reading.mode is ReadMode.DIRECT and facts.innings_seen < live.at_hand:
        raise SchemaBreak(f"innings {live.at_hand} is at hand, and only the scorecard tells all of them")


def facts_of(reading: Reading) -> Facts:
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


def card_of(reading: Reading) -> tuple[InningsCard, ...]:
    document = reading.document("scorecard")
    if document is None or document.status >= 400:
        return ()
    return card_in(document.json()) or ()


def items_of(reading: Reading) -> list[feed.Item] | None:
    """The feed's answer, else the copy in a page that is as fresh as the reading."""
    key, page = reading.ref.source_event_id, reading.document("page")
    broken: SchemaBreak | None = None
    try:
        items = feed.feed_items(reading.document("feed"), key)
    except SchemaBreak as failure:
        items, broken = None, failure
    if items is None and page is not None:
        state = blob.page_state(page.text())
        items = feed.items_in(blob.answer(state, blob.FEED), key) if state is not None else None
    if items is None and broken is not None:
        raise broken
    return items
