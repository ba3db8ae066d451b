"""Dialogs of actions in a real Chromium: one that is refused or fails stays open and says why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from monitoring.alerts.registry import raise_alert
from monitoring.models import Alert, Severity

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("BX-11"),
    pytest.mark.django_db(transaction=True, serialized_rollback=False),
]


@pytest.fixture
def operator() -> User:
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("view_alert", "change_alert")))
    return user


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, client: Client, operator: User) -> Iterator[Page]:
    """The page of an open alert."""
    raise_alert("trouble", Severity.WARNING, "trouble", {}, timezone.now())
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    session = client.cookies["sessionid"]
    with browser.new_context(base_url=live_server.url) as context:
        context.add_cookies([{"name": session.key, "value": session.value, "url": live_server.url}])
        opened = context.new_page()
        opened.goto(reverse("admin:monitoring_alert_change", args=[Alert.objects.get().pk]))
        yield opened


def test_a_dialog_says_why_nothing_was_done(
    page: Page, operator: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = page.locator("#modal-content")

    def submit_and_read(text: str) -> None:
        dialog.get_by_role("button", name="Acknowledge").click()
        expect(dialog).to_contain_text(text)
        expect(dialog).to_be_visible()

    page.get_by_role("link", name="Acknowledge").click()
    page.context.set_offline(True)
    submit_and_read("does not answer")
    page.context.set_offline(False)
    monkeypatch.setattr("monitoring.admin.alerts.acknowledge", lambda *_, **__: 1 / 0)
    submit_and_read("The server failed (500")
    monkeypatch.undo()
    Alert.objects.update(closed_at=timezone.now())
    submit_and_read("1 refused: trouble is closed")
    Alert.objects.update(closed_at=None)
    operator.user_permissions.clear()
    submit_and_read("Not permitted")
    client.logout()
    submit_and_read("Your session has ended")
    assert Alert.objects.get().acknowledged_at is None


def test_a_dialog_that_cannot_be_opened_says_why(page: Page, operator: User) -> None:
    operator.user_permissions.clear()
    page.get_by_role("link", name="Acknowledge").click()
    expect(page.locator("#modal-content")).to_contain_text("Not permitted")
