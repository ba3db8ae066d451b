"""Admin pages of keys and requests in a real Chromium: long values sent by a caller hide no other column."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from apiauth.models import AccessLog, Consumer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("FR-028"),
    pytest.mark.django_db(transaction=True, serialized_rollback=False),
]
IS_CUT = "cell => cell.scrollWidth > cell.clientWidth"


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, admin_client: Client) -> Iterator[Page]:
    """The pages of a logged-in user."""
    session = admin_client.cookies["sessionid"]
    with browser.new_context(base_url=live_server.url) as context:
        context.add_cookies([{"name": session.key, "value": session.value, "url": live_server.url}])
        yield context.new_page()


@pytest.fixture
def long_address() -> None:
    AccessLog.objects.create(
        timestamp=timezone.now(), method="GET", endpoint="/api/v1/" + "9" * 192, response_status=404,
        duration_ms=1, request_id="0123456789abcdef" * 2,
    )  # fmt: skip


@pytest.mark.usefixtures("long_address")
def test_a_long_address_keeps_the_status_visible(page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(reverse("admin:apiauth_accesslog_changelist"))
    status = page.locator("td.field-shown_status").bounding_box()
    assert status["x"] + status["width"] < 1440


@pytest.mark.usefixtures("long_address")
def test_nothing_of_a_request_is_cut_on_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(reverse("admin:apiauth_accesslog_changelist"))
    for name in ("endpoint", "request_id"):
        assert not page.locator(f"td.field-{name}").evaluate(IS_CUT), name


def test_shows_whole_scope_descriptions_on_a_narrow_screen(page: Page) -> None:
    consumer = Consumer.objects.create(name="acme", created_at=timezone.now())
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(reverse("admin:apiauth_consumer_issue_key", args=[consumer.pk]))
    words = page.get_by_text("operate: pauses and resumes matches, starts jobs")
    assert not words.evaluate(IS_CUT)
