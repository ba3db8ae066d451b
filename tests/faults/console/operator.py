"""An operator at the console of a running system, in a real browser: looks, clicks, answers, and counts the clicks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, Locator

from tests.faults.system import System
from tests.faults.web import Web
from tests.patience import stretched
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

Text = str | re.Pattern[str]

MAX_CLICKS = 3
NAME, PASSWORD = "mara", "an operator of the fault tests"
REASON = "seen on the overview"


class Operator:
    """`overview` begins to count; a fourth click after it fails. Nothing but the overview is opened by its address."""

    def __init__(self, browser: Browser, system: System) -> None:
        self.clicks: list[Text] = []
        subprocess.run(
            python("manage.py", "createsuperuser", "--noinput", "--username", NAME, "--email", f"{NAME}@example.org"),
            cwd=PROJECT_ROOT,
            env={**system.environment(), "DJANGO_SUPERUSER_PASSWORD": PASSWORD},
            check=True,
            capture_output=True,
        )
        address = f"http://127.0.0.1:{Web(system).port}"
        self._context = browser.new_context(base_url=address, viewport={"width": 1440, "height": 1000})
        self._context.set_default_timeout(stretched(8) * 1000)
        self.page = self._context.new_page()
        self.page.goto("/admin/")
        self.page.locator("[name=username]").fill(NAME)
        self.page.locator("[name=password]").fill(PASSWORD)
        self.page.locator("[type=submit]").click()
        self.page.locator("#overview").wait_for()

    def overview(self) -> None:
        self.page.goto("/admin/")
        self.clicks.clear()

    def sees(self, text: Text, *, seconds: float = 8) -> None:
        """Waits until the page shows a text, without a reload."""
        self._text(text).wait_for(timeout=stretched(seconds) * 1000)

    def no_longer_sees(self, text: Text, *, seconds: float = 60) -> None:
        self._text(text).wait_for(state="hidden", timeout=stretched(seconds) * 1000)

    def _text(self, text: Text) -> Locator:
        return self.page.locator("#main").get_by_text(text).filter(visible=True).first

    def follow(self, text: Text) -> None:
        """Clicks a link of the page, or an action in its header; not the menu, which shows no trouble."""
        self._click(self.page.locator("#main").get_by_role("link", name=text), text)

    def confirm(self, button: Text, **answers: str) -> None:
        """Fills in the open form or dialog and sends it."""
        place = self.page.get_by_role("button", name=button).filter(visible=True)
        place.first.wait_for()
        for name, value in {"reason": REASON, **answers}.items():
            field = self.page.locator(f"#main [name={name}], #dialog [name={name}]").filter(visible=True)
            if field.count():
                field.fill(value)
        self._click(place, button)

    def _click(self, place: Locator, text: Text) -> None:
        self.clicks.append(text)
        assert len(self.clicks) <= MAX_CLICKS, f"{len(self.clicks)} clicks after the overview: {self.clicks}"
        place.filter(visible=True).first.click()

    def photograph(self, name: str) -> None:
        """Saves the page for people, if the environment names a folder for it."""
        if folder := os.environ.get("CONSOLE_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    def close(self) -> None:
        self._context.close()
