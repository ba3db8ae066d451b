"""The grades of the last 24 hours as a timeline: one bar a period, the higher the worse.

Drawn as SVG: the admin's chart and tracker components have bars of equal width, and periods last from seconds to hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from monitoring.models import Grade, GradeChange
from scraping.models import Match

SPAN = timedelta(hours=24)
MAX_PERIODS = 400  # the time before them is shown as one period of the first one's grade
WIDTH, HEIGHT = 1440.0, 28.0
HEIGHTS = {Grade.HEALTHY: 10.0, Grade.RECOVERING: 16.0, Grade.DEGRADED: 22.0, Grade.FAILING: 28.0}


@dataclass(frozen=True)
class GradePeriod:
    grade: Grade
    since: datetime
    until: datetime
    reason: str = ""

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


def grade_periods(
    changes: Sequence[tuple[datetime, str, str, str]], *, since: datetime, until: datetime
) -> list[GradePeriod]:
    """Returns periods from changes (at, from, to, reason), oldest first, with the last change before `since`."""
    periods: list[GradePeriod] = []
    begin, grade, reason = since, Grade(changes[0][1]) if changes else Grade.HEALTHY, ""
    for at, _, to, why in changes:
        if at > begin:
            periods.append(GradePeriod(grade, begin, min(at, until), reason))
        begin, grade, reason = max(at, since), Grade(to), why
    return [*periods, GradePeriod(grade, begin, until, reason)] if until > begin else periods


def grade_chart(now: datetime) -> dict[str, Any]:
    """Returns the bars for the template, and the same as a sentence for screen readers."""
    since = now - SPAN
    rows = GradeChange.objects.values_list("at", "from_grade", "to_grade", "reason").order_by("-at", "-pk")
    changes = list(rows.filter(at__gt=since, at__lte=now)[:MAX_PERIODS])[::-1]
    if len(changes) < MAX_PERIODS:
        changes = [*rows.filter(at__lte=since)[:1], *changes]
    # There was no grade before the first match or grade change.
    known = Match.objects.order_by("pk").values_list("created_at", flat=True).first() or now
    known = max(since, min(known, changes[0][0]) if changes else known)
    periods = grade_periods(changes, since=known, until=now)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "since": since,
        "bars": [_bar(period, since) for period in periods],
        "summary": summary(periods) + (f"; known since {known:%H:%M} UTC" if periods and known > since else ""),
    }


def summary(periods: Sequence[GradePeriod]) -> str:
    if not periods:
        return "no grade yet"
    whole = sum(period.seconds for period in periods) or 1.0
    shares = {grade: sum(period.seconds for period in periods if period.grade == grade) / whole for grade in Grade}
    shares_text = [f"{grade.value} {share:.1%}" for grade, share in shares.items() if share]
    changes = max(0, len(periods) - 1)
    return f"{', '.join(shares_text)}; {changes or 'no'} {'change' if changes == 1 else 'changes'}"


def _bar(period: GradePeriod, since: datetime) -> dict[str, Any]:
    scale = WIDTH / SPAN.total_seconds()
    height = HEIGHTS[period.grade]
    minutes = period.seconds / 60
    lasted = f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min" if minutes >= 1 else "under a minute"
    text = f"{period.grade.value} from {period.since:%H:%M:%S} to {period.until:%H:%M:%S} UTC ({lasted})"
    return {
        "grade": period.grade.value.lower(),
        "x": f"{(period.since - since).total_seconds() * scale:.2f}",
        "width": f"{max(period.seconds * scale, 1.5):.2f}",
        "y": f"{HEIGHT - height:.0f}",
        "height": f"{height:.0f}",
        "text": f"{text}: {period.reason}" if period.reason else text,
    }
