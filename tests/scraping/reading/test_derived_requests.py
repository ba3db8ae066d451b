"""One match's visit teaches how the others of its source are asked."""

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


def test_the_id_moves_in_address_body_and_referer() -> None:
    derived = derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example=ASKED)
    assert derived is not None
    assert derived["live"].url == "https://api.test/v3/getSV3?key=VDYD"
    assert derived["live"].headers == {"referer": OTHER.url, "accept": "*/*"}
    assert json.loads(derived["feed"].body or b"") == {"matchKey": "VDYD", "lang": "en"}


def test_a_short_id_is_not_found_inside_other_words() -> None:
    like, other = RefInfo("7", "https://s.test/7"), RefInfo("8", "https://s.test/8")
    asked = {"event": Request("event", "https://s.test/api/v17/event/7?page=77")}
    endpoint = Endpoint("event", re.compile(r"/event/8\?"))
    derived = derive_requests(other, (endpoint,), example_ref=like, example=asked)
    assert derived is not None
    assert derived["event"].url == "https://s.test/api/v17/event/8?page=77"


def test_requests_that_name_no_match_teach_nothing() -> None:
    """A session's own number in the address, for example: nobody can tell how another match would be asked."""
    asked = {"live": Request("live", "https://api.test/v3/getSV3?key=opaque")}
    assert derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example=asked) is None


def test_what_does_not_fit_the_adapters_endpoints_is_not_tried() -> None:
    asked = {"live": Request("live", "https://api.test/elsewhere?key=13KM")}
    assert derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example=asked) is None


def test_a_missing_required_endpoint_is_not_made_up() -> None:
    assert derive_requests(OTHER, endpoints_of(OTHER), example_ref=LIKE, example={"feed": ASKED["feed"]}) is None


@given(
    there=st.from_regex(r"[A-Za-z0-9]{1,8}", fullmatch=True), back=st.from_regex(r"[A-Za-z0-9]{1,8}", fullmatch=True)
)
def test_there_and_back_is_where_it_began(there: str, back: str) -> None:
    """Whatever the ids are, unless one of them is a word of the address itself."""
    if there == back or {there, back} & {"https", "api", "test", "v3", "getSV3", "key"}:
        return
    one, two = RefInfo(back, f"https://crex.test/{back}"), RefInfo(there, f"https://crex.test/{there}")
    asked = {"live": Request("live", f"https://api.test/v3/getSV3?key={back}", headers={"referer": one.url})}
    moved = derive_requests(two, endpoints_of(two), example_ref=one, example=asked)
    assert moved is not None
    assert derive_requests(one, endpoints_of(one), example_ref=two, example=moved) == asked
