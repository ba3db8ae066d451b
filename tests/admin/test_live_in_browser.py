"""Pages that renew themselves, in a real Chromium under the admin's content security policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from scraping.models import Worker
from scraping.recovery.breakers import Outcomes
from tests.factories import make_source
from tests.monitoring.rows import make_worker

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True, serialized_rollback=False)]
FASTER = "document.querySelectorAll('[data-live]').forEach(part => part.dataset.live = '0.2')"


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, admin_client: Client) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 500})
    session = {"name": settings.SESSION_COOKIE_NAME, "value": admin_client.cookies[settings.SESSION_COOKIE_NAME].value}
    context.add_cookies([{**session, "url": live_server.url}])
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert not complaints


@pytest.mark.requirement("BX-9")
def test_the_overview_renews_itself_and_keeps_scroll_selection_and_focus(live_server: LiveServer, page: Page) -> None:
    worker, then = make_worker("w-1", active_tasks=1), timezone.now() - timedelta(minutes=2)
    counted = Outcomes()
    counted.count(make_source().pk, now=then)
    counted.flush(now=then)
    page.goto(f"{live_server.url}/admin/")
    row = page.locator("#overview tr", has_text="w-1")
    expect(row.locator("td").nth(1)).to_have_text("1")
    expect(page.locator("canvas.chart")).to_have_count(4)
    row.locator("a").focus()
    page.evaluate("""() => {
        scrollTo(0, 200); window.marker = 1;
        getSelection().selectAllChildren(document.querySelector('#overview h2'));
        window.selected = getSelection().toString();
    }""")
    page.evaluate(FASTER)
    Worker.objects.filter(pk=worker.pk).update(active_tasks=7)
    expect(row.locator("td").nth(1)).to_have_text("7", timeout=20_000)
    kept = "[scrollY, window.marker, getSelection().toString() === window.selected, document.activeElement.textContent]"
    assert page.evaluate(kept) == [200, 1, True, "w-1"]


def test_says_so_when_it_could_not_renew(live_server: LiveServer, page: Page) -> None:
    page.goto(f"{live_server.url}/admin/")
    note = page.locator("[data-live-note]")
    expect(note).to_contain_text("Last renewed")
    page.context.set_offline(True)
    expect(note).to_contain_text("the server does not answer", timeout=30_000)
    expect(note).to_have_class("is-late")
    page.context.set_offline(False)
    expect(note).to_contain_text("Last renewed", timeout=30_000)
