"""Evidence: the documents and screenshots of failed attempts, as files under MEDIA. Sole writer of both.

Guards against a dead letter without an explanation, and against its own cost: redacted, limited per file and in total,
one set for the same failure of a match in ten minutes, and only ever stored and shown as text. Files are written before
the failure's transaction and their rows in it; a file without a row is removed later. A full disk or a folder that is
not writable costs the evidence and nothing else.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import QuerySet, Sum

from scraping.errors import ERROR_RULES, ScrapingError
from scraping.journal.error_log import ErrorReport
from scraping.models import Evidence, EvidenceKind, ScrapeError
from scraping.readings import PAGE, AttemptEvidence, Document, evidence_of
from victoryline.lib.redaction import clean_document
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

FOLDER = "evidence"
ONCE_IN = timedelta(minutes=10)
MOST_DOCUMENTS = 6
MARGIN_BYTES = 4096  # read beyond the limit, so that a secret across it is recognised, redacted and then cut off
SETTLED = timedelta(hours=1)  # a younger file without a row is no orphan: its transaction may still be open
MOST_REMOVED_AT_ONCE = 200
MAX_FILE_BYTES = 512 * 1024
TOTAL_MB = 200  # the oldest evidence is deleted first
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def store(report: ErrorReport, *, name: str, is_final: bool) -> list[Evidence]:
    """Writes the error's evidence to files, named by `name`, and returns their rows, which `attach` saves.

    For a task that dies, a bug, and error classes that say so; none where there is enough already, or no room.
    """
    error = report.error
    seen = evidence_of(error)
    is_wanted = is_final or not isinstance(error, ScrapingError)
    if isinstance(error, ScrapingError) and error.http_status != 429:  # that one was only asked for too soon
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
        _delete(list(_recent(report)))
        for file in files:
            file.error = error
        Evidence.objects.bulk_create(files)


def _recent(report: ErrorReport) -> QuerySet[Evidence]:
    recent = Evidence.objects.filter(created_at__gt=report.now - ONCE_IN, error__match=report.match_id)
    return recent.filter(error__group__fingerprint=report.fingerprint)


def _written(seen: AttemptEvidence, name: str, now: datetime) -> list[Evidence]:
    stem = f"{FOLDER}/{now:%Y-%m-%d}/{now:%H%M%S}_{_UNSAFE.sub('-', name)[:60]}_{secrets.token_hex(4)}"
    files = [
        (
            EvidenceKind.PAGE if document.name == PAGE else EvidenceKind.ANSWER,
            f"{stem}_{_UNSAFE.sub('-', document.name)[:30]}.txt",
            _as_text(document),
            len(document.body) > MAX_FILE_BYTES,
        )
        for document in seen.documents[:MOST_DOCUMENTS]
    ]
    if 0 < len(seen.screenshot) <= MAX_FILE_BYTES:  # half a screenshot is useless
        files.append((EvidenceKind.SCREENSHOT, f"{stem}_screenshot.jpg", seen.screenshot, False))
    size, root = sum(len(content) for _, _, content, _ in files), Path(settings.MEDIA_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free - size < settings.CONFIG.min_free_disk_mb * MEGABYTE:
        raise OSError(f"only {free // MEGABYTE} MB of disk space are left")
    remove(over_the_total(adding=size))
    for _, path, content, _ in files:
        _write(path, content)
    return [
        Evidence(kind=kind, path=path, size_bytes=len(content), is_truncated=is_truncated, created_at=now)
        for kind, path, content, is_truncated in files
    ]


def _as_text(document: Document) -> bytes:
    """Returns address, status and body, redacted and truncated."""
    body = document.body[: MAX_FILE_BYTES + MARGIN_BYTES].decode("utf-8", errors="replace")
    text = clean_document(f"{document.url}\n{document.status} {document.content_type}\n\n{body}")
    return text.encode()[:MAX_FILE_BYTES]


def _write(path: str, content: bytes) -> None:
    """Writes the whole file or nothing."""
    target = Path(settings.MEDIA_ROOT) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def over_the_total(*, adding: int = 0, at_most: int | None = MOST_REMOVED_AT_ONCE) -> list[Evidence]:
    limit = TOTAL_MB * MEGABYTE
    excess = (Evidence.objects.aggregate(total=Sum("size_bytes"))["total"] or 0) + adding - limit
    chosen: list[Evidence] = []
    for one in Evidence.objects.order_by("created_at", "pk")[:at_most] if excess > 0 else ():
        if excess > 0:
            chosen.append(one)
            excess -= one.size_bytes
    return chosen


def remove(rows: Sequence[Evidence]) -> int:
    """Deletes rows, then their files: after a crash in between, retention removes the files."""
    if not rows:
        return 0
    with transaction.atomic():
        _delete(rows)
    return len(rows)


def _delete(rows: Sequence[Evidence]) -> None:
    if rows:
        Evidence.objects.filter(pk__in=[row.pk for row in rows]).delete()
        transaction.on_commit(partial(_unlink, [row.path for row in rows]))


def _unlink(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            (Path(settings.MEDIA_ROOT) / path).unlink(missing_ok=True)
        except OSError as reason:
            logger.warning("%s stays on disk: %s", path, reason, extra={"action": "evidence_not_removed"})


def content_of(row: Evidence) -> bytes | None:
    """Returns the content of the file; None when it is missing, or outside the folder."""
    root = (Path(settings.MEDIA_ROOT) / FOLDER).resolve()
    file = (Path(settings.MEDIA_ROOT) / row.path).resolve()
    if not file.is_relative_to(root):
        return None
    try:
        return file.read_bytes()
    except OSError:
        return None


def orphan_files(now: datetime) -> Iterator[Path]:
    root = Path(settings.MEDIA_ROOT)
    known = set(Evidence.objects.values_list("path", flat=True))
    for file in sorted((root / FOLDER).glob("*/*")):
        try:
            written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        except OSError:
            continue  # removed just now by another process
        if written < now - SETTLED and file.relative_to(root).as_posix() not in known:
            yield file


def remove_empty_folders() -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"  # another process may be about to write into today's
    for folder in (Path(settings.MEDIA_ROOT) / FOLDER).glob("*"):
        if folder.is_dir() and folder.name < today and not any(folder.iterdir()):
            folder.rmdir()
