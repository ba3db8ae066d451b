"""Any input to an adapter becomes a payload or one of our own errors."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scraping.errors import Drift, ScrapingError
from scraping.payloads import Payload
from scraping.sources import adapter_for
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from tests.scraping.sources import builders as build

CREX, SOFASCORE = adapter_for("crex"), adapter_for("sofascore")
ASKED = Request("feed", "http://site.test/getBallFeeds", "POST", b'{"lastDocId": 5}')
Path = tuple[str | int, ...]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30)
    | st.sampled_from(["", "0", "-1", "999/99(999.9", "&q;", "<b>", "2026-13-45T99:99Z", 1e300])
    | st.just("0001-01-01T00:00:00+14:00"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip
MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """Returns the paths of all values in a document."""
    if here:
        yield here
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from paths(inner, (*here, key))


@st.composite
def spoilt(draw: st.DrawFn, good: Any) -> Any:
    """Draws a good document with some values dropped, replaced or renamed."""
    value = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 4))):
        places = list(paths(value))
        if not places:
            return value
        *way, last = draw(st.sampled_from(places))
        holder = value
        for step in way:
            holder = holder[step]
        match draw(st.sampled_from(["drop", "replace", "rename"])):
            case "drop":
                del holder[last]
            case "rename" if isinstance(holder, dict):
                holder[draw(st.text(max_size=5))] = holder.pop(last)
            case _:
                holder[last] = draw(JSON)
    return value


def judged(read: Reading) -> None:
    """Parses a reading; any error must be one of ours."""
    adapter = CREX if read.ref is build.CREX else SOFASCORE
    try:
        payload = adapter.parse(read)
    except ScrapingError:
        payload = None
    if payload is not None:
        assert Payload.model_validate_json(payload.model_dump_json()) == payload
        assert len({event.id for event in payload.events}) == len(payload.events)
    try:
        adapter.older_events(read, ASKED)
    except Drift:
        return


@pytest.mark.requirement("ZT-5")
class TestCrex:
    @MANY
    @given(live=spoilt(build.live(comment1="", res="")), feed=spoilt(build.feed()), mode=st.sampled_from(ReadMode))
    def test_on_spoilt_answers(self, live: Any, feed: Any, mode: ReadMode) -> None:
        documents = (build.document("live", live), build.document("feed", feed), build.page(name="static_page"))
        judged(build.reading(build.CREX, *documents, mode=mode))

    @MANY
    @given(state=spoilt(build.state()), has_live=st.booleans(), mode=st.sampled_from(ReadMode))
    def test_on_a_spoilt_page_state(self, state: Any, has_live: bool, mode: ReadMode) -> None:
        live = (build.document("live", build.live()),) if has_live else ()
        judged(build.reading(build.CREX, build.page(state), *live, mode=mode))

    @MANY
    @given(cut=st.integers(0, 9000), noise=st.text(max_size=20))
    def test_on_a_page_cut_anywhere(self, cut: int, noise: str) -> None:
        html = build.page_html(build.state(), build.HEADER.format(said=noise))
        judged(build.reading(build.CREX, build.document("page", html[:cut] + noise)))

    @MANY
    @given(listed=spoilt({"9XA": {"b": "OR", "c": "PE", "j": "12/0(1.2", "ti": 1_777_734_000_000, "res": "x"}}))
    def test_on_a_spoilt_list(self, listed: Any) -> None:
        read = build.reading(RefInfo("", build.CREX_BASE), build.document("list", listed), build.page())
        list_judged(read)


@pytest.mark.requirement("ZT-5")
class TestSofascore:
    @MANY
    @given(event=spoilt({"event": build.event()}), incidents=spoilt(build.incidents()))
    def test_on_spoilt_answers(self, event: Any, incidents: Any) -> None:
        documents = build.document("event", event), build.document("incidents", incidents)
        judged(build.reading(build.SOFA, *documents, mode=ReadMode.DIRECT))

    @MANY
    @given(live=spoilt({"events": [build.event(), build.event(id=7002)]}))
    def test_on_a_spoilt_list(self, live: Any) -> None:
        list_judged(build.reading(RefInfo("", build.SOFA_BASE), build.document("live_list", live)))


@pytest.mark.requirement("ZT-5")
@MANY
@given(
    body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()), mode=st.sampled_from(ReadMode)
)
def test_on_anything_at_all(body: bytes, mode: ReadMode) -> None:
    for ref, names in ((build.CREX, ("live", "feed", "mapping", "page")), (build.SOFA, ("event", "incidents", "page"))):
        for name in names:
            judged(build.reading(ref, Document(name, "http://site.test/", 200, "", body), mode=mode))
        list_judged(build.reading(ref, *(Document(name, "", 200, "", body) for name in ("list", "live_list", "page"))))


def list_judged(read: Reading) -> None:
    for adapter, base_url in ((CREX, build.CREX_BASE), (SOFASCORE, build.SOFA_BASE)):
        try:
            matches = adapter.parse_list(read, base_url)
        except ScrapingError:
            continue
        assert len({match.source_event_id for match in matches}) == len(matches)
