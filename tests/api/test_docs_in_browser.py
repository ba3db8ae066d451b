"""/api/docs in a real Chromium, under its real content security policy, without requests to other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.fuzzing import Target, target

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with target(tmp_path_factory.mktemp("docs")) as found:
        yield found


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def page(browser: Browser, running: Target, asked: list[str]) -> Iterator[Page]:
    """Fails the test on requests to other hosts, which are aborted, and on errors in the browser's console."""
    complaints: list[str] = []
    context = browser.new_context()
    opened = context.new_page()
    opened.on("request", lambda request: asked.append(_host(request)))
    opened.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    opened.goto(f"{running.url}/api/docs")
    yield opened
    context.close()
    assert set(asked) == {urlsplit(running.url).netloc}
    assert not [each for each in complaints if "favicon" not in each]


def _host(request: Request) -> str:
    parts = urlsplit(request.url)
    return parts.netloc if parts.scheme in {"http", "https"} else urlsplit(request.frame.url).netloc


def test_every_operation_is_on_the_page(page: Page, running: Target) -> None:
    described = [way for ways in running.description()["paths"].values() for way in ways.values()]
    expect(page.locator(".opblock")).to_have_count(len(described), timeout=20_000)
    for tag in running.description()["tags"]:
        expect(page.locator(f"#operations-tag-{tag['name']}")).to_be_visible()


def test_a_reader_can_authorize_and_try_it(page: Page, running: Target) -> None:
    page.locator(".btn.authorize").first.click()
    page.locator(".modal-ux input[type=text], .modal-ux input[type=password]").first.fill(running.token)
    page.locator(".modal-ux .btn.modal-btn.auth.authorize").click()
    page.locator(".modal-ux .btn.modal-btn.auth.btn-done").click()
    block = page.locator("#operations-matches-list_matches")
    block.locator(".opblock-summary").click()
    block.locator(".try-out__btn").click()
    block.locator(".btn.execute").click()
    expect(block.locator(".live-responses-table .response .response-col_status").first).to_contain_text(
        "200", timeout=20_000
    )
    expect(block.locator(".live-responses-table")).to_contain_text("x-data-state")


def test_it_fits_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".opblock").first).to_be_visible(timeout=20_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_follows_the_readers_dark_mode(page: Page) -> None:
    expect(page.locator("html")).not_to_have_class("dark-mode")
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_class("dark-mode")
