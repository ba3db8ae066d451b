"""Writes the log of a match that has ended to a file in its folder, VAR_DIR/match_logs/{match id}. Writes MatchArchive.

It has everything about how the match was read, for the time when its rows are deleted: states with their times, every
revision of its events, line-ups and figures, errors, scrapers' counters, tasks. Without secrets, written atomically and
limited in size. After a correction another file is written; the earlier ones stay, with rows that retention has deleted
since. A full disk costs only the log.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet

from scraping.models import (
    Lineup,
    LineupPlayer,
    Match,
    MatchArchive,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    PlayerFigure,
    ScrapeError,
    Scraper,
    ScrapeTask,
    Snapshot,
    Source,
    TaskTransition,
)
from victoryline.lib.redaction import redact
from victoryline.lib.times import as_utc_iso
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

FORMAT = "victoryline.match.v1"
MAX_BYTES = 32 * MEGABYTE  # before compression; further rows are left out, and `cut_off` names their tables


def due(limit: int) -> list[int]:
    """Returns matches that have ended and been checked, and whose log is missing or older than their data."""
    is_old = Q(archive__created_at__lt=F("last_changed_at")) | Q(archive__created_at__lt=F("final_sync_at"))
    for model in (Lineup, PlayerFigure):
        newer = model.objects.filter(match=OuterRef("pk"), captured_at__gt=OuterRef("archive__created_at"))
        is_old |= Q(Exists(newer))
    checked = Match.objects.filter(lifecycle=MatchLifecycle.COMPLETED, final_checks__has_key="checked_at")
    wanting = checked.filter(Q(archive=None) | is_old)
    return list(wanting.order_by("completed_at").values_list("pk", flat=True)[:limit])


def write(match_id: int, *, now: datetime) -> MatchArchive | None:
    """Writes the log of a match as it is now; returns None where the disk does not take it."""
    match = Match.objects.get(pk=match_id)
    name = f"{match.pk}/{now:%Y%m%dT%H%M%S}.json.gz"
    try:
        size, digest = _write_file(Path(settings.MATCH_LOG_DIR) / name, _pieces(match, now))
    except OSError as reason:
        logger.warning(
            "The log of %s could not be written: %s; it is tried again", match, reason,
            extra={"action": "match_log_not_written", "match_id": match.pk},
        )  # fmt: skip
        return None
    values = {"file": name, "size_bytes": size, "sha256": digest, "created_at": now}
    return MatchArchive.objects.update_or_create(match=match, defaults=values)[0]


def _write_file(target: Path, pieces: Iterable[bytes]) -> tuple[int, str]:
    """Writes the file atomically; returns its size and checksum."""
    target.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target.parent).free
    if free < settings.CONFIG.min_free_disk_mb * MEGABYTE:
        raise OSError(f"only {free // MEGABYTE} MB of disk space are left")
    draft = target.with_suffix(".draft")
    try:
        with draft.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            for piece in pieces:
                packed.write(piece)
        content = draft.read_bytes()
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return len(content), hashlib.sha256(content).hexdigest()


def _pieces(match: Match, now: datetime) -> Iterator[bytes]:
    """Yields one JSON object row by row, so that a match of five days is not in memory at once."""
    sources = Source.objects.filter(refs__match=match).order_by("pk").values("id", "key", "name", "precedence_weight")
    head = {"format": FORMAT, "written_at": as_utc_iso(now), "match": _row(match), "sources": list(sources)}
    yield _dump(head)[:-1]
    room, cut = MAX_BYTES, []
    for name, rows in _tables(match):
        yield b',\n"%s":[' % name.encode()
        first = True
        for row in rows.iterator(500):
            piece = _dump(_row(row))
            room -= len(piece)
            if room < 0:
                cut.append(name)
                break
            yield piece if first else b",\n" + piece
            first = False
        yield b"]"
    yield b',\n"cut_off":%s}\n' % _dump(cut)


def _tables(match: Match) -> list[tuple[str, QuerySet[Any]]]:
    """Returns the tables of a match, the longest last. Snapshots have only the delta: the match has the last state."""
    return [
        ("refs", MatchRef.objects.filter(match=match).order_by("pk")),
        ("events", MatchEvent.objects.filter(match=match).order_by("pk")),
        ("lineups", Lineup.objects.filter(match=match).order_by("pk")),
        ("players", LineupPlayer.objects.filter(lineup__match=match).order_by("lineup", "place")),
        ("figures", PlayerFigure.objects.filter(match=match).order_by("pk")),
        ("scrapers", Scraper.objects.filter(ref__match=match).order_by("start_time")),
        ("errors", ScrapeError.objects.filter(match=match).order_by("pk")),
        ("tasks", ScrapeTask.objects.filter(ref__match=match).order_by("pk")),
        ("transitions", TaskTransition.objects.filter(task__ref__match=match).order_by("pk")),
        ("snapshots", Snapshot.objects.filter(match=match).defer("payload", "provenance").order_by("sequence")),
    ]


def _row(row: Model) -> dict[str, Any]:
    """Returns a row's columns without secrets and without deferred ones."""
    deferred = row.get_deferred_fields()
    names = [field.attname for field in row._meta.concrete_fields if field.attname not in deferred]  # noqa: SLF001
    found: dict[str, Any] = redact("", {name: getattr(row, name) for name in names})
    return found


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z)


def content_of(row: MatchArchive) -> bytes | None:
    """Returns the file; None if it is missing or was changed."""
    root = Path(settings.MATCH_LOG_DIR).resolve()
    file = (root / row.file).resolve()
    if not file.is_relative_to(root):
        return None
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == row.sha256 else None


def outdated(now: datetime, limit: int | None) -> list[MatchArchive]:
    before = now - timedelta(days=settings.CONFIG.match_log_retention_days)
    return list(MatchArchive.objects.filter(created_at__lt=before).order_by("created_at")[:limit])


def remove(rows: Sequence[MatchArchive]) -> int:
    if rows:
        with transaction.atomic():
            MatchArchive.objects.filter(pk__in=[row.pk for row in rows]).delete()
            transaction.on_commit(partial(_remove_folders, [row.match_id for row in rows]))
    return len(rows)


def _remove_folders(match_ids: Sequence[int]) -> None:
    for match_id in match_ids:
        folder = Path(settings.MATCH_LOG_DIR) / str(match_id)
        try:
            shutil.rmtree(folder)
        except OSError as reason:
            logger.warning("%s stays on disk: %s", folder, reason, extra={"action": "match_log_not_removed"})
