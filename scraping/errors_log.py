"""Failed attempts as rows, grouped by what they have in common. Sole writer of ScrapeError and ErrorGroup."""

from __future__ import annotations

import hashlib
import re
import traceback
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F

from scraping.errors import ErrorClass, ScrapingError
from scraping.models import ErrorGroup, ScrapeError
from victoryline.lib.redaction import clean

EVIDENCE_LENGTH = 20_000
_VOLATILE = re.compile(r"https?://\S+|0x[0-9a-f]+|\b[0-9A-Z]{3,4}\b|\d+")


@dataclass(frozen=True)
class ErrorReport:
    """One failed attempt and where it happened."""

    source_id: int
    error: BaseException
    operation: str
    attempt: int
    now: datetime
    task_id: int | None = None
    match_id: int | None = None
    scraper_id: UUID | None = None
    url: str = ""


def class_of(error: BaseException) -> ErrorClass:
    return error.error_class if isinstance(error, ScrapingError) else ErrorClass.BUG


def type_of(error: BaseException) -> str:
    return error.error_type if isinstance(error, ScrapingError) else "bug"


def storable(text: str, limit: int | None = None) -> str:
    """Scraped text may hold NUL characters, which PostgreSQL does not take."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")[:limit]


def fingerprint(source_id: int, error: BaseException) -> str:
    """Equal for failures that have the same cause: numbers, keys and addresses in the message do not count."""
    essence = f"{source_id}|{class_of(error)}|{type(error).__name__}|{_VOLATILE.sub('#', str(error))}"
    return hashlib.sha256(essence.encode()).hexdigest()


def record(report: ErrorReport) -> ScrapeError:
    """Write the error's row and count it in its group."""
    error = report.error
    known = error if isinstance(error, ScrapingError) else None
    return ScrapeError.objects.create(
        scraper_id=report.scraper_id,
        task_id=report.task_id,
        match_id=report.match_id,
        group=_grouped(report),
        timestamp=report.now,
        error_class=class_of(error).value,
        error_type=type_of(error),
        error_message=storable(str(error), 2000),
        stack_trace="" if known else storable("".join(traceback.format_exception(error))[-8000:]),
        url=((known.url if known else "") or report.url)[:500],
        operation=report.operation,
        http_status=known.http_status if known else None,
        retry_attempt=report.attempt,
        evidence=storable(clean(known.evidence), EVIDENCE_LENGTH) if known else "",
    )


def _grouped(report: ErrorReport) -> ErrorGroup:
    group, _ = ErrorGroup.objects.get_or_create(
        fingerprint=fingerprint(report.source_id, report.error),
        defaults={
            "source_id": report.source_id,
            "error_class": class_of(report.error).value,
            "error_type": type_of(report.error),
            "sample_message": storable(str(report.error), 500),
            "first_seen_at": report.now,
            "last_seen_at": report.now,
        },
    )
    ErrorGroup.objects.filter(pk=group.pk).update(count=F("count") + 1, last_seen_at=report.now)
    return group


def resolve(match_id: int, *, method: str, now: datetime) -> int:
    """The match was read again: its open errors are history."""
    return ScrapeError.objects.filter(match_id=match_id, resolved=False).update(
        resolved=True, resolution_time=now, resolution_method=method
    )
