"""Evidence: the documents and screenshots of failed attempts, as files under STORAGE_DIR. Sole writer of both.

error_pages/{timestamp}_{match_id}.html   the page, redacted; other responses beside it as .txt
errors/{timestamp}_{match_id}.png         the picture of the page

Guards against a dead letter without an explanation, and against its own cost: redacted, limited per file and in total,
one set for the same failure of a match in ten minutes, and only ever stored and shown as text. Files are written before
the failure's transaction and their rows in it; a file without a row is removed later. A full disk or a folder that is
not writable costs the evidence and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import QuerySet, Sum
from django.db.models.signals import post_delete
from django.dispatch import receiver

from scraping.errors import ERROR_RULES, ScrapingError
from scraping.journal.error_log import ErrorReport
from scraping.models import Evidence, EvidenceKind, ScrapeError
from scraping.readings import PAGE, AttemptEvidence, Document, evidence_of
from victoryline.lib.files import atomic_file, read_below, require_free_space, safe_name
from victoryline.lib.redaction import clean_document
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

PAGES, PICTURES = "error_pages", "errors"
ONCE_IN = timedelta(minutes=10)
MOST_DOCUMENTS = 6
MARGIN_BYTES = 4096  # read beyond the limit, so that a secret across it is recognised, redacted and then cut off
SETTLED = timedelta(hours=1)  # a younger file without a row is no orphan: its transaction may still be open
MOST_REMOVED_AT_ONCE = 200
MAX_FILE_BYTES = 512 * 1024
MAX_PICTURE_BYTES = 2 * MEGABYTE
TOTAL_MB = 200  # the oldest evidence is deleted first


def store(report: ErrorReport, *, name: str, is_final: bool) -> list[Evidence]:
    """Writes the error's evidence to files, named by `name`, and returns their rows, which `attach` saves.

    For a task that dies, a bug, and error classes that say so; none where there is enough already, or no room.
    """
    error = report.error
    seen = evidence_of(error)
    is_wanted = is_final or not isinstance(error, ScrapingError)
    if isinstance(error, ScrapingError) and error.http_status != 429:  # 429: only too early, the page is not at fault
        is_wanted |= ERROR_RULES[error.error_class].keeps_evidence
    if not seen or not is_wanted:
        return []
    known = set(_recent(report).values_list("kind", flat=True))
    if known and (not seen.screenshot or EvidenceKind.SCREENSHOT in known):
        return []
    try:
        return _written(seen, name, report.now)
    except (DatabaseError, InterfaceError):
        raise
    except Exception as reason:  # noqa: BLE001 - the failure itself must be written, even without its evidence
        logger.warning(
            "The evidence of a failure of %s could not be kept: %s; the failure itself is written",
            name,
            reason,
            extra={"action": "evidence_not_kept"},
        )
        return []


def attach(files: Sequence[Evidence], error: ScrapeError, report: ErrorReport) -> None:
    """Writes the rows in the failure's transaction. A set with a screenshot replaces one without."""
    if files:
        _recent(report).delete()
        for file in files:
            file.error = error
        Evidence.objects.bulk_create(files)


def _recent(report: ErrorReport) -> QuerySet[Evidence]:
    recent = Evidence.objects.filter(created_at__gt=report.now - ONCE_IN, error__match=report.match_id)
    return recent.filter(error__group__fingerprint=report.fingerprint)


def _written(seen: AttemptEvidence, name: str, now: datetime) -> list[Evidence]:
    stem = f"{now:%Y%m%dT%H%M%S%f}_{safe_name(name)}"
    files = [
        (
            EvidenceKind.PAGE if document.name == PAGE else EvidenceKind.ANSWER,
            f"{PAGES}/{stem}.html" if document.name == PAGE else f"{PAGES}/{stem}_{safe_name(document.name)[:30]}.txt",
            _as_text(document),
            len(document.body) > MAX_FILE_BYTES,
        )
        for document in seen.documents[:MOST_DOCUMENTS]
    ]
    if 0 < len(seen.screenshot) <= MAX_PICTURE_BYTES:  # half a screenshot is useless
        files.append((EvidenceKind.SCREENSHOT, f"{PICTURES}/{stem}.png", seen.screenshot, False))
    size, root = sum(len(content) for _, _, content, _ in files), Path(settings.STORAGE_DIR)
    root.mkdir(parents=True, exist_ok=True)
    require_free_space(root, size)
    Evidence.objects.filter(pk__in=over_the_total(adding=size, at_most=MOST_REMOVED_AT_ONCE)).delete()
    for _, path, content, _ in files:
        with atomic_file(root / path) as draft:
            draft.write_bytes(content)
    return [
        Evidence(kind=kind, path=path, size_bytes=len(content), is_truncated=is_truncated, created_at=now)
        for kind, path, content, is_truncated in files
    ]


def _as_text(document: Document) -> bytes:
    """Returns address, status and body, redacted and truncated."""
    body = document.body[: MAX_FILE_BYTES + MARGIN_BYTES].decode("utf-8", errors="replace")
    head = f"{document.url}\n{document.status} {document.content_type}"
    if document.name == PAGE:
        head = f"<!-- {head.replace('--', '- -')} -->"
    return clean_document(f"{head}\n\n{body}").encode()[:MAX_FILE_BYTES]


def over_the_total(*, adding: int = 0, at_most: int | None = None) -> list[int]:
    """Returns the ids of the oldest rows that must go so that all files and `adding` bytes are within the limit."""
    excess = (Evidence.objects.aggregate(total=Sum("size_bytes"))["total"] or 0) + adding - TOTAL_MB * MEGABYTE
    oldest = Evidence.objects.order_by("created_at", "pk").values_list("pk", "size_bytes")
    chosen: list[int] = []
    for pk, size in oldest[:at_most] if excess > 0 else ():
        if excess > 0:
            chosen.append(pk)
            excess -= size
    return chosen


@receiver(post_delete, sender=Evidence)
def remove_file(sender: object, *, instance: Evidence, **_: object) -> None:
    """Removes the file of a deleted row after the commit; after a crash in between, retention removes it."""
    transaction.on_commit(partial(_unlink, instance.path))


def _unlink(path: str) -> None:
    try:
        (Path(settings.STORAGE_DIR) / path).unlink(missing_ok=True)
    except OSError as reason:
        logger.warning("%s stays on disk: %s", path, reason, extra={"action": "evidence_not_removed"})


def content_of(row: Evidence) -> bytes | None:
    """Returns the content of the file; None when it is missing, or outside the folders of evidence."""
    root = Path(settings.STORAGE_DIR)
    found = (read_below(root / folder, root / row.path) for folder in (PAGES, PICTURES))
    return next((content for content in found if content is not None), None)


def files() -> Iterator[Path]:
    """Yields every file of evidence on this machine."""
    for folder in (PAGES, PICTURES):
        yield from sorted((Path(settings.STORAGE_DIR) / folder).glob("*"))


def orphan_files(now: datetime) -> Iterator[Path]:
    known = set(Evidence.objects.values_list("path", flat=True))
    for file in files():
        try:
            written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        except OSError:
            continue  # removed just now by another process
        if written < now - SETTLED and file.relative_to(settings.STORAGE_DIR).as_posix() not in known:
            yield file
