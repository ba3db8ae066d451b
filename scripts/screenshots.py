"""Take the README's pictures of the status page from the running system: `make run` first, then `make screenshots`."""

import json
import os
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright

from victoryline import configuration
from victoryline.lib import chromium

IMAGES = configuration.PROJECT_ROOT / "docs" / "images"


def main() -> int:
    config = configuration.load(os.environ)
    demo = config.var_dir / "demo.json"
    if not demo.is_file():
        print("There is no running system to take pictures of. Start one: make run")
        return 1
    url = json.loads(demo.read_text(encoding="utf-8"))["url"]
    program = chromium.find(chosen=config.chromium_path, var_dir=config.var_dir, environ=os.environ)
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        _take(url, program, scheme, IMAGES / f"status-{scheme}.png")
    return 0


def _take(url: str, program: Path | None, scheme: Literal["light", "dark"], path: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
        page.goto(url)
        page.wait_for_selector("text=/ago|just now/")
        page.screenshot(path=path)
        browser.close()
    print(f"{path.relative_to(configuration.PROJECT_ROOT)} taken")


if __name__ == "__main__":
    sys.exit(main())
