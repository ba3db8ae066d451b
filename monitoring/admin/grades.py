"""The grades of the last day as a strip: one piece a grade, as long as it lasted and as high as it is bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from monitoring.models import Grade, GradeChange
from scraping.models import Match

SPAN = timedelta(hours=24)
MOST_PIECES = 400  # of a wild day; what is older than these is told as one piece of the first one's grade
WIDTH, HEIGHT = 1440.0, 28.0
HEIGHTS = {Grade.HEALTHY: 10.0, Grade.RECOVERING: 16.0, Grade.DEGRADED: 22.0, Grade.FAILING: 28.0}


@dataclass(frozen=True)
class Piece:
    grade: Grade
    since: datetime
    until: datetime
    reason: str = ""

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


def pieces(changes: Sequence[tuple[datetime, str, str, str]], *, since: datetime, until: datetime) -> list[Piece]:
    """From changes (when, from, to, why), oldest first, the last before `since` among them if there was one."""
    made: list[Piece] = []
    begin, grade, reason = since, Grade(changes[0][1]) if changes else Grade.HEALTHY, ""
    for at, _, to, why in changes:
        if at > begin:
            made.append(Piece(grade, begin, min(at, until), reason))
        begin, grade, reason = max(at, since), Grade(to), why
    return [*made, Piece(grade, begin, until, reason)] if until > begin else made


def strip(now: datetime) -> dict[str, Any]:
    """What the template draws. Whoever cannot see the picture is told the same in a sentence."""
    since = now - SPAN
    changes = _changes(since, now)
    known = max(since, _known_since(changes, now))
    parts = pieces(changes, since=known, until=now)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "since": since,
        "pieces": [_drawn(piece, since) for piece in parts],
        "summary": summary(parts) + (f"; known since {known:%H:%M} UTC" if parts and known > since else ""),
    }


def _known_since(changes: Sequence[tuple[datetime, str, str, str]], now: datetime) -> datetime:
    """Before there was a match there was nothing to judge, neither well nor badly."""
    first = Match.objects.order_by("pk").values_list("created_at", flat=True).first() or now
    return min(first, changes[0][0]) if changes else first


def summary(parts: Sequence[Piece]) -> str:
    if not parts:
        return "nothing was judged yet"
    whole = sum(piece.seconds for piece in parts) or 1.0
    shares = {grade: sum(piece.seconds for piece in parts if piece.grade == grade) / whole for grade in Grade}
    told = [f"{grade.value} {share:.1%}" for grade, share in shares.items() if share]
    changes = max(0, len(parts) - 1)
    return f"{', '.join(told)}; {changes or 'no'} {'change' if changes == 1 else 'changes'}"


def _changes(since: datetime, now: datetime) -> list[tuple[datetime, str, str, str]]:
    rows = GradeChange.objects.values_list("at", "from_grade", "to_grade", "reason")
    within = list(rows.filter(at__gt=since, at__lte=now).order_by("-at", "-pk")[:MOST_PIECES])
    before = list(rows.filter(at__lte=since).order_by("-at", "-pk")[:1]) if len(within) < MOST_PIECES else []
    return [*before, *reversed(within)]


def _drawn(piece: Piece, since: datetime) -> dict[str, Any]:
    scale = WIDTH / SPAN.total_seconds()
    height = HEIGHTS[piece.grade]
    minutes = piece.seconds / 60
    lasted = f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min" if minutes >= 1 else "under a minute"
    words = f"{piece.grade.value} from {piece.since:%H:%M:%S} to {piece.until:%H:%M:%S} UTC ({lasted})"
    return {
        "grade": piece.grade.value.lower(),
        "x": f"{(piece.since - since).total_seconds() * scale:.2f}",
        "width": f"{max(piece.seconds * scale, 1.5):.2f}",
        "y": f"{HEIGHT - height:.0f}",
        "height": f"{height:.0f}",
        "words": f"{words}: {piece.reason}" if piece.reason else words,
    }
