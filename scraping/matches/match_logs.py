"""Writes the log of a match that has ended to a file in STORAGE_DIR/match_logs/{match_id}. Writes MatchArchive.

It has everything about how the match was read, for the time when its rows are deleted. Without secrets, written
atomically and limited in size. After a correction another file is written; the earlier ones stay, with rows that
retention has deleted since.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet
from django.db.models.signals import post_delete
from django.dispatch import receiver

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
from victoryline.lib.files import atomic_file, read_below, require_free_space, safe_name
from victoryline.lib.redaction import redact
from victoryline.lib.times import as_utc_iso
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

FORMAT = "victoryline.match.v1"
MAX_BYTES = 32 * MEGABYTE  # before compression; further rows are left out, and `cut_off` names their tables


def _root() -> Path:
    return Path(settings.STORAGE_DIR) / "match_logs"


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
    earlier = MatchArchive.objects.filter(match=match).values_list("file", flat=True).first()
    folder = Path(earlier).parent.name if earlier else safe_name(match.key)  # all of a match are in one folder
    name = f"{folder}/{now:%Y%m%dT%H%M%S}.json.gz"
    try:
        size, digest = _write_file(_root() / name, _pieces(match, now))
    except OSError as reason:
        logger.warning(
            "The log of %s could not be written: %s; it is tried again", match, reason,
            extra={"action": "match_log_not_written", "match_id": match.key},
        )  # fmt: skip
        return None
    values = {"file": name, "size_bytes": size, "sha256": digest, "created_at": now}
    return MatchArchive.objects.update_or_create(match=match, defaults=values)[0]


def _write_file(target: Path, pieces: Iterable[bytes]) -> tuple[int, str]:
    """Writes the file atomically; returns its size and checksum."""
    with atomic_file(target) as draft:
        require_free_space(target.parent)
        with draft.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            for piece in pieces:
                packed.write(piece)
        content = draft.read_bytes()
    return len(content), hashlib.sha256(content).hexdigest()


def _pieces(match: Match, now: datetime) -> Iterator[bytes]:
    """Yields one JSON object row by row, so that a match of five days is not in memory at once."""
    key = match.key
    sources = Source.objects.filter(refs__match=match).order_by("pk").values("id", "key", "name", "precedence_weight")
    head = {"format": FORMAT, "written_at": as_utc_iso(now), "match": _row(match, key), "sources": list(sources)}
    yield _dump(head)[:-1]
    room, cut = MAX_BYTES, []
    for name, rows in _tables(match):
        yield b',\n"%s":[' % name.encode()
        first = True
        for row in rows.iterator(500):
            piece = _dump(_row(row, key))
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


def _row(row: Model, key: str) -> dict[str, Any]:
    """Returns a row's columns without secrets and without deferred ones, with the match by its public name."""
    deferred = row.get_deferred_fields()
    names = [field.attname for field in row._meta.concrete_fields if field.attname not in deferred]  # noqa: SLF001
    found: dict[str, Any] = redact("", {name: getattr(row, name) for name in names})
    return found | {"match_id": key} if "match_id" in found else found


def _dump(value: Any) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z)


def content_of(row: MatchArchive) -> bytes | None:
    """Returns the file; None if it is missing or was changed."""
    root = _root()
    content = read_below(root, root / row.file)
    return content if content is not None and hashlib.sha256(content).hexdigest() == row.sha256 else None


@receiver(post_delete, sender=MatchArchive)
def remove_folder(sender: object, *, instance: MatchArchive, **_: object) -> None:
    """Removes all log files of the match after the commit."""
    folder = Path(instance.file).parent.name
    if folder and safe_name(folder) == folder:
        transaction.on_commit(partial(_remove_tree, _root() / folder))


def _remove_tree(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as reason:
        logger.warning("%s stays on disk: %s", folder, reason, extra={"action": "match_log_not_removed"})
