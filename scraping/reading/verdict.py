"""What an HTTP status means for the task."""

from __future__ import annotations

from scraping.errors import AuthExpired, Blocked, Drift, Gone, ScrapingError, Transient
from scraping.readings import Document


def error_for(document: Document) -> ScrapingError | None:
    """The error that a document's status stands for; None if it is good."""
    status, where = document.status, f"{document.name} answered {document.status}"
    if status < 300:
        return None
    kinds: dict[int, type[ScrapingError]] = {
        401: AuthExpired, 403: Blocked, 404: Gone, 408: Transient, 410: Gone, 425: Transient, 429: Blocked
    }  # fmt: skip
    kind = kinds.get(status) or (Transient if status >= 500 else Drift)
    return kind(
        where,
        http_status=status,
        url=document.url,
        retry_after_seconds=document.retry_after_seconds,
        evidence=document.text()[:2000],
    )
