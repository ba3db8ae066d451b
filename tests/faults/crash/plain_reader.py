"""A reader without a browser: sends the requests of the stadium's page scripts; the real adapters parse the responses.

A browser takes half a second to start, and a process that is killed during a transaction needs none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import requests

from scraping.payloads import Payload
from scraping.reading.reader import GONE, Target
from scraping.readings import PAGE, Document, Reading, ReadMode, RefInfo, Request, Site
from scraping.sources.base import ListPlan
from stadium.access import fnv1a
from tests.scraping.builders import ReaderInTurn

NONCES = {"crex": ("cx-n", "cxjs"), "sofascore": ("sf-n", "sfclr")}


class PlainReader(ReaderInTurn):
    def __init__(self, stadium_url: str) -> None:
        self._http = requests.Session()
        self._base = stadium_url

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        page = self._open(target.site.key, target.ref.url)
        reading = self._reading(target.ref, page, *map(self._ask, self._wanted(target)))
        return reading, target.adapter.parse(reading)

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool], **_: Any) -> list[Payload]:
        page = self._open(target.site.key, target.ref.url)
        state, request = self._wanted(target)
        payloads: list[Payload] = []
        older: Request | None = request
        while older is not None:
            reading = self._reading(target.ref, page, self._ask(state), self._ask(older))
            payloads.append(target.adapter.parse(reading))
            if is_enough(payloads[-1]):
                break
            older = target.adapter.older_events(reading, older)
        return payloads

    def match_list(self, site: Site, adapter: Any, **_: Any) -> Reading:
        page = self._open(site.key, adapter.list_plan(site.base_url).url)
        lists = map(self._ask, self._lists(site.base_url)) if site.key == "sofascore" else ()
        return self._reading(RefInfo("", site.base_url), page, *lists)

    def planned_list(self, site: Site, plan: ListPlan, **_: Any) -> Reading:
        if plan.url:
            self._open(site.key, plan.url)
        return self._reading(RefInfo("", plan.url), *map(self._ask, plan.requests))

    def extra_documents(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        self._open(target.site.key, target.ref.url)
        return self._reading(target.ref, *(one for one in map(self._ask, requests) if one.status not in GONE))

    def _lists(self, base_url: str) -> tuple[Request, Request]:
        """Returns the lists of live matches and of today's matches, by the stadium's clock."""
        at = self._ask(Request("health", f"{self._base}/control/health")).json()["simulated_time"]
        football = f"{base_url}/api/v1/sport/football"
        day = datetime.fromtimestamp(at, UTC).date().isoformat()
        return Request("live_list", f"{football}/events/live"), Request(
            "scheduled", f"{football}/scheduled-events/{day}"
        )

    def _wanted(self, target: Target) -> tuple[Request, Request]:
        """Returns the requests for the state of the match and its newest events."""
        key = target.ref.source_event_id
        if target.site.key == "crex":
            body = {"matchKey": key, "lastDocId": "", "filters": [], "lang": "en"}
            feed = f"{self._base}/crex/commentary/v2/getBallFeeds"
            live = Request("live", f"{self._base}/crex/api/v3/getSV3?key={key}")
            return live, Request("feed", feed, "POST", json.dumps(body).encode())
        url = f"{self._base}/sofascore/api/v1/event/{key}"
        return Request("event", url), Request("incidents", f"{url}/incidents")

    def _open(self, site: str, url: str) -> Document:
        """Loads a page and sets the cookie that its script would set."""
        page = self._ask(Request(PAGE, url))
        meta, cookie = NONCES[site]
        if found := re.search(rf'<meta name="{meta}" content="([^"]+)"', page.text()):
            self._http.cookies.set(cookie, f"{found[1]}.{fnv1a(found[1])}")
        return page

    def _ask(self, request: Request) -> Document:
        answer = self._http.request(request.method, request.url, data=request.body, timeout=10)
        kind = answer.headers.get("Content-Type", "")
        return Document(request.name, request.url, answer.status_code, kind, answer.content)

    @staticmethod
    def _reading(ref: RefInfo, *documents: Document) -> Reading:
        return Reading(ref, ReadMode.VISIT, datetime.now(UTC), {document.name: document for document in documents})
