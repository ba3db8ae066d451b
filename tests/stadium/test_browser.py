"""The pages in a real Chromium: scripts set their cookies, call the JSON endpoints and update the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.patience import wait_for

from .test_server import ask, stadium

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with stadium(tmp_path_factory.mktemp("stadium"), "--pace", "60") as (_, number):
        yield number


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a context of its own, without cookies of other tests."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def address(port: int, site: str) -> str:
    matches = ask(port, "/truth/matches")
    running = [match for match in matches if (match["site"], match["status"]) == (site, "live")]
    return str(running[0]["url"])


def test_crex_header_follows_the_match(port: int, page: Page) -> None:
    with (
        page.expect_response(lambda response: "getSV3" in response.url) as live,
        page.expect_response(lambda response: "getBallFeeds" in response.url) as feed,
    ):
        page.goto(address(port, "crex"))
    assert live.value.status == 200
    assert feed.value.json()[0]["type"] in ("b", "o", "w")
    overs = page.locator(".f-runs span").nth(1)
    before = overs.inner_text()
    expect(overs).not_to_have_text(before, timeout=15_000)
    assert page.locator(".cm-b-roundcard").count() > 10


def shown(page: Page) -> list[str]:
    texts = page.locator(".team-header").all_inner_texts()
    return [" ".join(text.split()) for text in texts]


def test_crex_page_kept_open_shows_what_a_fresh_one_shows(tmp_path: Path, page: Page) -> None:
    with stadium(tmp_path, "--pace", "0") as (_, port):
        url = next(match["url"] for match in ask(port, "/truth/matches") if match["key"] == "V4KX")
        page.goto(url)
        ask(port, "/control/skip", {"seconds": 2_500})  # from the first innings into the chase
        expect(page.locator(".final-result")).to_contain_text("need", timeout=15_000)
        kept = shown(page)
        fresh = page.context.new_page()
        fresh.goto(url)
        assert kept == shown(fresh)


def test_crex_list_follows_the_matches(port: int, page: Page) -> None:
    def has_a_card_for_each_match() -> bool:
        with page.expect_response(lambda response: "getLiveMatches" in response.url) as listed:
            page.goto(f"http://127.0.0.1:{port}/crex/")
        assert listed.value.status == 200
        return page.locator(".live-card").count() == len(listed.value.json())

    # Not always at once: a match may begin between the page and the response.
    wait_for(has_a_card_for_each_match, what="a card for each listed match")


def test_sofascore_page_asks_for_event_and_incidents(port: int, page: Page) -> None:
    with (
        page.expect_response(lambda response: response.url.endswith("/incidents")) as incidents,
        page.expect_response(lambda response: "/api/v1/event/" in response.url) as event,
    ):
        page.goto(address(port, "sofascore"))
    assert event.value.status == 200
    expect(page.locator(".incidents li")).to_have_count(len(incidents.value.json()["incidents"]))


def test_sofascore_home_asks_for_the_lists(port: int, page: Page) -> None:
    with page.expect_response(lambda response: response.url.endswith("/events/live")) as live:
        page.goto(f"http://127.0.0.1:{port}/sofascore/")
    assert live.value.status == 200
    assert page.locator(".event-link").count() >= 2
