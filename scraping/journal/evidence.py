"""What failed attempts saw, as files under MEDIA. Sole writer of Evidence rows and of their files.

Guards against a dead letter that nobody can explain, without becoming a trouble of its own: redacted, capped one by one
and in all, one set for the same trouble of a match in ten minutes, and only ever stored and shown as text. The files
are written before the failure's transaction and their rows in it; a file whose row was never committed is swept up
later. A disk that is full or a folder that cannot be written costs the evidence and nothing else.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import QuerySet, Sum

from scraping.errors import ERROR_RULES, ScrapingError
from scraping.models import Evidence, EvidenceKind, ScrapeError
from scraping.readings import PAGE, AttemptEvidence, Document, evidence_of
from victoryline.lib.redaction import clean_document

logger = logging.getLogger(__name__)

FOLDER = "evidence"
ONCE_IN = timedelta(minutes=10)
MOST_DOCUMENTS = 6
MARGIN_BYTES = 4096  # read beyond the cap, so that a secret across it is seen whole, hidden, and then cut off
SETTLED = timedelta(hours=1)  # a file without a row is no orphan before: its transaction may still be under way
MOST_REMOVED_AT_ONCE = 200
MEGABYTE = 1024 * 1024
MAX_FILE_BYTES = 512 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class StoredFile:
    """A file that waits for its row."""

    kind: EvidenceKind
    path: str
    size_bytes: int
    is_truncated: bool


@dataclass(frozen=True)
class Trouble:
    """Which failure the evidence is of: its group, its match, and what to call it in the file's name."""

    fingerprint: str
    match_id: int | None
    name: str


def is_wanted(error: BaseException, *, is_final: bool) -> bool:
    """What was seen explains a changed page, a challenge, a bug, and whatever a task dies of; nothing else."""
    if is_final or not isinstance(error, ScrapingError):
        return True
    if error.http_status == 429:  # the answer to a request that came too soon shows nothing
        return False
    return ERROR_RULES[error.error_class].keeps_evidence


def store(error: BaseException, trouble: Trouble, *, is_final: bool, now: datetime) -> tuple[StoredFile, ...]:
    """Write what the error carries into files; empty where there is nothing, enough already, or no place for it."""
    sight = evidence_of(error)
    if not sight or not is_wanted(error, is_final=is_final) or not _is_news(sight, trouble, now):
        return ()
    try:
        return _written(sight, trouble, now)
    except (DatabaseError, InterfaceError):
        raise
    except Exception as reason:  # noqa: BLE001 - the failure itself must be written down, whatever becomes of its evidence
        logger.warning(
            "The evidence of a failure of %s could not be kept: %s; the failure itself is written down",
            trouble.name,
            reason,
            extra={"action": "evidence_not_kept"},
        )
        return ()


def attach(files: Sequence[StoredFile], error: ScrapeError, trouble: Trouble, *, now: datetime) -> None:
    """Write the rows, in the failure's transaction. A set with a picture takes the place of one without."""
    if not files:
        return
    _forget(list(_recent(trouble, now)))
    Evidence.objects.bulk_create(
        Evidence(
            error=error,
            kind=file.kind,
            path=file.path,
            size_bytes=file.size_bytes,
            is_truncated=file.is_truncated,
            created_at=now,
        )
        for file in files
    )


def _recent(trouble: Trouble, now: datetime) -> QuerySet[Evidence]:
    of_group = Evidence.objects.filter(created_at__gt=now - ONCE_IN, error__group__fingerprint=trouble.fingerprint)
    if trouble.match_id is None:
        return of_group.filter(error__match__isnull=True)
    return of_group.filter(error__match_id=trouble.match_id)


def _is_news(sight: AttemptEvidence, trouble: Trouble, now: datetime) -> bool:
    known = set(_recent(trouble, now).values_list("kind", flat=True))
    return not known or (bool(sight.screenshot) and EvidenceKind.SCREENSHOT not in known)


def _written(sight: AttemptEvidence, trouble: Trouble, now: datetime) -> tuple[StoredFile, ...]:
    limit = MAX_FILE_BYTES
    stem = f"{FOLDER}/{now:%Y-%m-%d}/{now:%H%M%S}_{_UNSAFE.sub('-', trouble.name)[:60]}_{secrets.token_hex(4)}"
    texts = [(document, _as_text(document, limit)) for document in sight.documents[:MOST_DOCUMENTS]]
    picture = sight.screenshot if len(sight.screenshot) <= limit else b""  # half a picture is none
    _make_room(sum(len(text) for _, text in texts) + len(picture))
    files = [
        StoredFile(
            EvidenceKind.PAGE if document.name == PAGE else EvidenceKind.ANSWER,
            _write(f"{stem}_{_UNSAFE.sub('-', document.name)[:30]}.txt", text),
            len(text),
            is_truncated=len(document.body) > limit,
        )
        for document, text in texts
    ]
    if picture:
        files.append(
            StoredFile(
                EvidenceKind.SCREENSHOT, _write(f"{stem}_screenshot.jpg", picture), len(picture), is_truncated=False
            )
        )
    return tuple(files)


def _as_text(document: Document, limit: int) -> bytes:
    """Where it came from and what came, without secrets, at most `limit` bytes."""
    body = document.body[: limit + MARGIN_BYTES].decode("utf-8", errors="replace")
    text = clean_document(f"{document.url}\n{document.status} {document.content_type}\n\n{body}")
    return text.encode()[:limit]


def _write(path: str, content: bytes) -> str:
    """All of it under its name, or nothing."""
    target = Path(settings.MEDIA_ROOT) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return path


def _make_room(size: int) -> None:
    """The oldest evidence goes first; a disk that is nearly full takes no more of it."""
    root = Path(settings.MEDIA_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    if free - size < settings.CONFIG.min_free_disk_mb * MEGABYTE:
        raise OSError(f"only {free // MEGABYTE} MB of disk space are left")
    remove(over_the_total(adding=size))


def over_the_total(*, adding: int = 0, at_most: int | None = MOST_REMOVED_AT_ONCE) -> list[Evidence]:
    """The oldest files that have to go, so that all of them together keep to the limit."""
    limit = settings.CONFIG.evidence_total_mb * MEGABYTE
    excess = (Evidence.objects.aggregate(total=Sum("size_bytes"))["total"] or 0) + adding - limit
    chosen: list[Evidence] = []
    if excess <= 0:
        return chosen
    for one in Evidence.objects.order_by("created_at", "pk")[:at_most]:
        if excess <= 0:
            break
        chosen.append(one)
        excess -= one.size_bytes
    return chosen


def remove(rows: Sequence[Evidence]) -> int:
    """Rows first, then their files: what stays behind after a crash in between is an orphan, and swept up."""
    if not rows:
        return 0
    with transaction.atomic():
        _forget(rows)
    return len(rows)


def _forget(rows: Sequence[Evidence]) -> None:
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
    """What the file holds; None when it is gone, or is not one of ours."""
    root = (Path(settings.MEDIA_ROOT) / FOLDER).resolve()
    file = (Path(settings.MEDIA_ROOT) / row.path).resolve()
    if not file.is_relative_to(root):
        return None
    try:
        return file.read_bytes()
    except OSError:
        return None


def orphan_files(now: datetime) -> Iterator[Path]:
    """Files that no row names, and have not for an hour."""
    root = Path(settings.MEDIA_ROOT)
    known = set(Evidence.objects.values_list("path", flat=True))
    for file in sorted((root / FOLDER).glob("*/*")):
        try:
            written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        except OSError:
            continue  # somebody else removed it just now
        if written < now - SETTLED and file.relative_to(root).as_posix() not in known:
            yield file


def remove_empty_folders() -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"  # somebody may be about to write into today's
    for folder in (Path(settings.MEDIA_ROOT) / FOLDER).glob("*"):
        if folder.is_dir() and folder.name < today and not any(folder.iterdir()):
            folder.rmdir()
