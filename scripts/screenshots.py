"""Takes the README's pictures of the status page and the admin: `make run` first, then `make screenshots`."""

import json
import os
import sys
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from victoryline import configuration
from victoryline.lib import chromium

IMAGES = configuration.PROJECT_ROOT / "docs" / "images"
SIZE: ViewportSize = {"width": 1280, "height": 800}


def main() -> int:
    config = configuration.load(os.environ)
    demo = config.var_dir / "demo.json"
    if not demo.is_file():
        print("No system is running. Start one: make run")
        return 1
    access = json.loads(demo.read_text(encoding="utf-8"))
    program = chromium.find(chosen=config.chromium_path, var_dir=config.var_dir, environ=os.environ)
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        for scheme in schemes:
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(access["url"])
            page.wait_for_selector("text=/ago|just now/")
            _take(page, f"status-{scheme}.png")
        _take(_signed_in(browser, access), "console.png")
        browser.close()
    return 0


def _signed_in(browser: Browser, access: dict[str, str]) -> Page:
    page = browser.new_page(viewport=SIZE, color_scheme="light")
    page.goto(f"{access['url']}/admin/")
    page.fill("input[name=username]", access["admin_user"])
    page.fill("input[name=password]", access["admin_password"])
    page.click("button[type=submit]")
    page.wait_for_load_state("networkidle")
    return page


def _take(page: Page, name: str) -> None:
    page.screenshot(path=IMAGES / name)
    print(f"docs/images/{name} taken")


if __name__ == "__main__":
    sys.exit(main())
