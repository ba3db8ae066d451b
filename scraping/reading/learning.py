"""From one match's visit to the requests of another: the endpoints of a source differ in the match's id only.

Every match of a source would else cost a visit before it can be asked directly, after each start of a worker again.
What is worked out here is only tried: it must fit the adapter's endpoints, and what comes back must be the right match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from scraping.readings import Endpoint, RefInfo, Request

REFERER = "referer"


def requests_for(
    ref: RefInfo,
    endpoints: tuple[Endpoint, ...],
    *,
    like: RefInfo,
    asked: Mapping[str, Request],
) -> dict[str, Request] | None:
    """How `ref` would be asked, after the way in which `like` was; None where that cannot be told."""
    known = _whole(like.source_event_id)
    derived = {name: _moved(request, known, ref, like) for name, request in asked.items()}
    patterns = {endpoint.name: endpoint for endpoint in endpoints}
    required = {endpoint.name for endpoint in endpoints if endpoint.is_required}
    fits = all(name in patterns and patterns[name].pattern.search(request.url) for name, request in derived.items())
    is_about_it = all(_mentions(request, _whole(ref.source_event_id)) for request in derived.values())
    return derived if fits and is_about_it and required <= derived.keys() else None


def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")


def _moved(request: Request, known: re.Pattern[str], ref: RefInfo, like: RefInfo) -> Request:
    def move(text: str) -> str:
        return known.sub(lambda _: ref.source_event_id, text)

    headers = {
        name: ref.url if name == REFERER and value == like.url else value for name, value in request.headers.items()
    }
    body = None if request.body is None else move(request.body.decode("utf-8", "surrogateescape"))
    return replace(
        request,
        url=move(request.url),
        body=None if body is None else body.encode("utf-8", "surrogateescape"),
        headers=headers,
    )


def _mentions(request: Request, word: re.Pattern[str]) -> bool:
    body = "" if request.body is None else request.body.decode("utf-8", "replace")
    return bool(word.search(request.url) or word.search(body))
