"""Log lines of requests to sources, one for each request that the level (SOURCE_TRACE) selects, without secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

from scraping.readings import Document
from victoryline.lib.redaction import clean_document, printable

logger = logging.getLogger(__name__)

SLOW_SECONDS = 2.0
MAX_URL = 500
TraceLevel = Literal["none", "failed", "slow", "all"]


def is_traced(level: TraceLevel, *, is_failed: bool, seconds: float) -> bool:
    """Returns whether a request gets a line at this level."""
    if level == "none":
        return False
    return is_failed or level == "all" or (level == "slow" and seconds >= SLOW_SECONDS)


def trace_failure(level: TraceLevel, source: str, method: str, url: str, *, seconds: float, error: Exception) -> None:
    if is_traced(level, is_failed=True, seconds=seconds):
        facts = {"source": source, "method": method, "exception_type": type(error).__name__}
        _write(url, seconds, f"failed: {error}", facts)


def trace_responses(
    level: TraceLevel, source: str, method: str, documents: Iterable[Document], *, seconds: float
) -> None:
    for one in documents:
        if is_traced(level, is_failed=one.status >= 400, seconds=seconds):
            size = one.wire_bytes or len(one.body)
            facts = {"document": one.name, "status": one.status, "bytes": size, "content_type": one.content_type}
            text = f"was answered with {one.status}, {size} bytes"
            _write(one.url, seconds, text, {"source": source, "method": method, **facts})


def _write(url: str, seconds: float, outcome: str, facts: Mapping[str, object]) -> None:
    shown, ms = printable(clean_document(url), MAX_URL), round(seconds * 1000)
    extra = {"action": "source_request", "url": shown, "ms": ms, **facts}
    logger.info("%s %s %s in %d ms", facts["method"], shown, outcome, ms, extra=extra)
