"""Earlier states of a match. Each is a snapshot, written once and kept for KEEP_SNAPSHOTS_HOURS.

Reads over snapshots, and the difference between two states for consumers that have one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from scraping.models import Snapshot

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Difference:
    """Fields on the first level: changed ones with their new values, and removed ones."""

    changed: dict[str, Any]
    removed: list[str]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    changed = {name: value for name, value in after.items() if name not in before or not _is_same(before[name], value)}
    return Difference(changed, [name for name in before if name not in after])


def _is_same(one: Any, other: Any) -> bool:
    """Compares as JSON: to Python 1, 1.0 and True are equal."""
    return one == other and orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


def at_sequence(match_id: int, sequence: int) -> Snapshot | None:
    """Returns the state that the match had at this sequence."""
    return Snapshot.objects.filter(match=match_id, sequence__lte=sequence).order_by("-sequence").first()


def at_time(match_id: int, moment: datetime) -> Snapshot | None:
    """Returns the state that was served at this time: the time of writing counts, not that of the poll.

    To the millisecond, as in all answers: a request for the time of a state returns that state. The clocks of workers
    differ a little, so a state may have an earlier time than the one before it: then the earlier sequence counts.
    """
    after = moment.replace(microsecond=moment.microsecond // 1000 * 1000) + MILLISECOND
    rows = Snapshot.objects.filter(match=match_id)
    later = rows.filter(created_at__gte=after).order_by("sequence").values_list("sequence", flat=True).first()
    before = rows.filter(created_at__lt=after)
    return (before if later is None else before.filter(sequence__lt=later)).order_by("-sequence").first()


def oldest_kept(match_id: int) -> tuple[int, datetime] | None:
    """Returns the sequence of the oldest kept state, and when it was written."""
    rows = Snapshot.objects.filter(match=match_id).order_by("sequence")
    return rows.values_list("sequence", "created_at").first()


def page_of_snapshots(match_id: int, *, before: int | None, limit: int) -> tuple[list[Snapshot], bool]:
    """Returns snapshots without payloads, newest first, and whether there are more."""
    rows = Snapshot.objects.filter(match=match_id).defer("payload", "provenance").order_by("-sequence")
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    found = list(rows[: limit + 1])
    return found[:limit], len(found) > limit


def changed_fields(snapshot: Snapshot) -> list[str]:
    """Returns the names of the fields in which it differs from the snapshot before."""
    return sorted(name for name in snapshot.delta if not name.startswith("_"))
