"""Direct reads request every endpoint at every poll."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.payloads import Payload
from scraping.reading.caches import VisitRecord
from scraping.reading.reader import Reader, Target
from scraping.readings import PAGE, Document, Reading, ReadMode, RefInfo, Request, Site
from scraping.sources.crex.adapter import CrexAdapter
from tests.factories import NOW, cricket_state
from tests.scraping.builders import ball

REF = RefInfo("13KM", "https://crex.test/scoreboard/13KM/live")
RECORD = VisitRecord(
    {name: Request(name, f"https://crex.test/{name}?key=13KM") for name in ("live", "feed")},
    Document(PAGE, REF.url, 200, "text/html", b"<html>"),
    float("inf"),
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.mark.requirement("SO-12")
def test_an_unchanged_live_answer_does_not_hide_a_new_ball(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ball feed may lag behind the score: a poll that skipped it would serve old events as fresh."""
    reader = Reader(
        Sessions(BrowserHost(BrowserOptions(executable=Path("chromium"), owner="w"))), loop.run_until_complete
    )
    monkeypatch.setattr(Sessions, "is_warm", lambda *_: True)
    monkeypatch.setattr(Sessions, "wants_visit", lambda *_: False)
    feed, requested = [b"1"], list[set[str]]()

    async def ask(target: Target, requests: tuple[Request, ...], **_: Any) -> Reading:
        requested.append({request.name for request in requests})
        bodies = {"live": b"150/3", "feed": feed[0]}
        documents = {one.name: Document(one.name, one.url, 200, "", bodies[one.name]) for one in requests}
        return Reading(target.ref, ReadMode.DIRECT, NOW, documents)

    def parse(reading: Reading) -> Payload:
        balls = tuple(ball(number) for number in range(1, int(reading.documents["feed"].body) + 1))
        return Payload(source="crex", captured_at=NOW, source_event_id="13KM", state=cricket_state(), events=balls)

    adapter = CrexAdapter()
    monkeypatch.setattr(adapter, "parse", parse)
    monkeypatch.setattr(reader._modes, "ask", ask)
    reader._modes.visits.put(1, RECORD)
    target = Target(1, Site("crex", "https://crex.test"), REF, adapter)
    first = reader.scorecard(target)[1]
    feed[0] = b"2"
    second = reader.scorecard(target)[1]
    assert [len(first.events), len(second.events)] == [1, 2]
    assert requested == [{"live", "feed"}] * 2
