"""The status page in a real Chromium, under its real content security policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from scraping.models import Match
from scraping.payloads import LastEvent
from tests.factories import cricket_state
from tests.monitoring.rows import make_watched, make_worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("BX-21"),
    pytest.mark.django_db(transaction=True, serialized_rollback=False),
]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a context of its own; errors in the browser's console fail the test."""
    complaints: list[str] = []
    context = browser.new_context()
    opened = context.new_page()
    opened.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert not [text for text in complaints if "Failed to load resource" not in text and "ERR_" not in text]


def test_scores_move_and_ages_tick(live_server: LiveServer, page: Page) -> None:
    make_worker()
    match, _, _ = make_watched(age=3)
    page.goto(live_server.url)
    card = page.locator(".card")
    expect(card.locator('[data-batting="yes"] .team__score')).to_have_text("95/3")
    before = card.locator(".age").inner_text()
    expect(card.locator(".age")).not_to_have_text(before)
    match.payload["innings"][1]["runs"] = 99
    Match.objects.filter(pk=match.pk).update(payload=match.payload, last_scraper_update=timezone.now())
    score = card.locator('[data-batting="yes"] .team__score')
    expect(score).to_have_text("99/3")
    expect(score).to_have_class("team__score is-changed")


def test_matches_appear_disappear_and_change_group(live_server: LiveServer, page: Page) -> None:
    page.goto(live_server.url)
    expect(page.get_by_text("No matches yet")).to_be_visible()
    match, _, _ = make_watched()
    expect(page.locator("#group-live .card")).to_have_count(1)
    expect(page.get_by_text("No matches yet")).to_be_hidden()
    Match.objects.filter(pk=match.pk).update(status="completed", completed_at=timezone.now())
    expect(page.locator("#group-finished .card")).to_have_count(1)
    expect(page.locator("#group-live")).to_be_hidden()


def test_escapes_scraped_text(live_server: LiveServer, page: Page) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\">"
    page.goto(live_server.url)
    make_watched(title=evil, state=cricket_state(title=evil, last_event=LastEvent(type="x", description=evil)))
    expect(page.locator(".card__event")).to_have_text(evil)
    assert page.locator(".card img").count() == 0
    assert page.title() != "owned"


def test_shows_a_lost_connection_and_its_return(live_server: LiveServer, page: Page) -> None:
    make_watched()
    page.goto(live_server.url)
    expect(page.locator(".card")).to_have_count(1)
    page.route("**/status", lambda route: route.abort())
    expect(page.locator("#lost")).to_contain_text("Connection lost. The last data is from")
    expect(page.locator("#grade")).to_have_attribute("data-grade", "UNKNOWN")
    expect(page.locator(".card")).to_have_count(1)
    page.unroute("**/status")
    expect(page.locator("#lost")).to_be_hidden()


def test_fits_a_narrow_screen(live_server: LiveServer, page: Page) -> None:
    make_watched(team_a="A" * 60, start_time=timezone.now() - timedelta(hours=1), series="S" * 200)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(live_server.url)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_works_without_script(live_server: LiveServer, browser: Browser) -> None:
    make_watched()
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(live_server.url)
    expect(plain.locator(".card .team__score").last).to_have_text("95/3")
    context.close()


def test_a_paused_match_shows_end_and_age(live_server: LiveServer, page: Page) -> None:
    make_watched(age=130, lifecycle="PAUSED", pause_until=timezone.now() + timedelta(minutes=30))
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(live_server.url)
    expect(page.locator(".card .age")).to_have_text(re.compile(r"^paused until \d\d:\d\d.*, read 2 min ago$"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
