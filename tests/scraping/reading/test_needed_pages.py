"""The page of a match that is read directly: fetched again early where the adapter needs a newer one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scraping.reading.caches import VisitRecord
from scraping.reading.read_modes import NEEDED_PAGE_SECONDS, ReadModes
from scraping.reading.targets import Target
from scraping.readings import Document, Reading, ReadMode, Request, Site
from scraping.sources import adapter_for
from tests.scraping.sources import builders as build

REQUEST = Request("live", "http://site.test/api/v3/getSV3?key=9XA")


def page(*, is_early: bool) -> Document:
    early = (
        {"a": "OR.PE", "j": "", "comment1": ""} if is_early else build.live(comment1="PEL won the toss, chose to bowl")
    )
    return build.page(build.state(**{"https://live.test/api/v3/getSV3?key=9XA": early}))


class Source:
    """A source that answers from memory and counts its pages."""

    def __init__(self) -> None:
        self.pages = 0

    async def request(self, site: Site, ref: Any, requests: tuple[Request, ...], **_: Any) -> Reading:
        documents = {"live": build.document("live", build.live())}
        if any(one.name == "page" for one in requests):
            self.pages += 1
            documents["page"] = page(is_early=False)
        return Reading(ref, ReadMode.DIRECT, build.DURING, documents)


@pytest.mark.requirement("SO-12")
@pytest.mark.parametrize(
    ("is_early", "age", "pages"),
    [
        pytest.param(True, NEEDED_PAGE_SECONDS, 1, id="from before the toss"),
        pytest.param(True, NEEDED_PAGE_SECONDS - 1, 0, id="fetched just now"),
        pytest.param(False, NEEDED_PAGE_SECONDS, 0, id="with the toss"),
    ],
)
def test_a_page_without_the_toss_is_fetched_again_once(is_early: bool, age: float, pages: int) -> None:
    source, adapter = Source(), adapter_for("crex")
    modes = ReadModes(source, clock=lambda: 1000.0 + age)  # type: ignore[arg-type]
    target = Target(ref_id=1, site=Site("crex", build.CREX_BASE), adapter=adapter, ref=build.CREX)
    modes.visits.put(1, VisitRecord({"live": REQUEST}, page(is_early=is_early), 1000.0))
    for _ in range(2):
        record = modes.visits.get(1)
        assert record is not None
        reading = asyncio.run(modes._by_record(target, record))
    assert source.pages == pages
    toss = adapter.parse(reading).state.toss
    assert (toss is not None and toss.winner == "Pelican Town") == (pages == 1 or not is_early)
