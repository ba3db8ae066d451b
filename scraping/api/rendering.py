"""Bodies as bytes: what everybody gets is made once for each state of a match, the ages are put in each time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scraping.api import answers
from scraping.documents.freshness import Freshness
from scraping.documents.known import Known
from victoryline.lib.http.renderers import OrjsonRenderer

_render = OrjsonRenderer().render


def match_document(match: Known, freshness: Freshness, more: dict[str, Any]) -> bytes:
    state = match.text("document", lambda: _render(answers.match_state(match)))
    return _joined(state, {"_metadata": answers.full_metadata(match, freshness), **more})


def match_list(
    matches: Sequence[Known], freshness: Freshness, now: datetime, *, left_out: int, next_page: str | None
) -> bytes:
    rest = {"next": next_page, "_metadata": answers.list_metadata(matches, freshness, now, left_out)}
    return _listed([_item(match, now) for match in matches], rest)


def info_document(match: Known, freshness: Freshness) -> bytes:
    state = match.text("info", lambda: _render(answers.info_state(match)))
    return _joined(state, {"_metadata": answers.metadata(match, freshness)})


def info_list(matches: Sequence[Known], freshness: Freshness, now: datetime, *, left_out: int) -> bytes:
    rest = {"_metadata": answers.list_metadata(matches, freshness, now, left_out)}
    return _listed([info_document(match, match.freshness(now)) for match in matches], rest)


def _item(match: Known, now: datetime) -> bytes:
    state = match.text("item", lambda: _render(answers.item_state(match)))
    return _joined(state, {"freshness": answers.item_freshness(match.freshness(now))})


def _listed(items: Sequence[bytes], rest: dict[str, Any]) -> bytes:
    return _joined(b'{"matches":[' + b",".join(items) + b"]}", rest)


def _joined(state: bytes, rest: dict[str, Any]) -> bytes:
    """One object of two; neither is empty."""
    return state[:-1] + b"," + _render(rest)[1:]
