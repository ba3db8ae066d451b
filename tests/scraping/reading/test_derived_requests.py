"""Requests of a match, derived from the visit of another match of its source."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from scraping.reading.caches import derive_requests
from scraping.readings import Endpoint, RefInfo, Request

LIKE = RefInfo("13KM", "https://crex.test/scoreboard/13KM/live")
OTHER = RefInfo("VDYD", "https://crex.test/scoreboard/VDYD/live")
ASKED = {
    "live": Request("live", "https://api.test/v3/getSV3?key=13KM", headers={"referer": LIKE.url, "accept": "*/*"}),
    "feed": Request("feed", "https://api.test/getBallFeeds", "POST", b'{"matchKey": "13KM", "lang": "en"}'),
}


def endpoints_of(ref: RefInfo) -> tuple[Endpoint, ...]:
    return (
        Endpoint("live", re.compile(rf"/getSV3\?key={re.escape(ref.source_event_id)}$")),
        Endpoint("feed", re.compile(r"/getBallFeeds$"), is_required=False, method="POST"),
    )


def test_replaces_the_id_in_url_body_and_referer() -> None:
    derived = derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example=ASKED)
    assert derived is not None
    assert derived["live"].url == "https://api.test/v3/getSV3?key=VDYD"
    assert derived["live"].headers == {"referer": OTHER.url, "accept": "*/*"}
    assert json.loads(derived["feed"].body or b"") == {"matchKey": "VDYD", "lang": "en"}


def test_replaces_whole_ids_only() -> None:
    like, other = RefInfo("7", "https://s.test/7"), RefInfo("8", "https://s.test/8")
    asked = {"event": Request("event", "https://s.test/api/v17/event/7?page=77")}
    endpoint = Endpoint("event", re.compile(r"/event/8\?"))
    derived = derive_requests(other, (endpoint,), example_ref=like, example=asked)
    assert derived is not None
    assert derived["event"].url == "https://s.test/api/v17/event/8?page=77"


def test_requests_without_the_id_cannot_be_derived() -> None:
    """A session's own number in the address, for example: the request of another match is unknown."""
    asked = {"live": Request("live", "https://api.test/v3/getSV3?key=opaque")}
    assert derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example=asked) is None


def test_requests_outside_the_adapters_endpoints_are_refused() -> None:
    asked = {"live": Request("live", "https://api.test/elsewhere?key=13KM")}
    assert derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example=asked) is None


def test_a_missing_required_endpoint_prevents_derivation() -> None:
    assert derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example={"feed": ASKED["feed"]}) is None


@given(
    there=st.from_regex(r"[A-Za-z0-9]{1,8}", fullmatch=True), back=st.from_regex(r"[A-Za-z0-9]{1,8}", fullmatch=True)
)
def test_deriving_back_gives_the_original_request(there: str, back: str) -> None:
    """For any ids, unless one of them is a word of the address itself."""
    if there == back or {there, back} & {"https", "api", "test", "v3", "getSV3", "key"}:
        return
    one, two = RefInfo(back, f"https://crex.test/{back}"), RefInfo(there, f"https://crex.test/{there}")
    asked = {"live": Request("live", f"https://api.test/v3/getSV3?key={back}", headers={"referer": one.url})}
    moved = derive_requests(two, endpoints_of(two), example_ref=one, example=asked)
    assert moved is not None
    assert derive_requests(one, endpoints_of(one), example_ref=two, example=moved) == asked
