"""Which alerts people are told of now, and how. Pure: rows and a time in, messages out.

Guards against the two ways in which alerts fail people: silence while something burns, and a storm that nobody reads.
- A critical alert is told at once. Others of its kind at its source follow together, half a minute later at most.
- Warnings wait for each other. What is over before anybody was told is not told.
- What stands is repeated now and then, unless somebody looks after it. What was told and is over is told once more.
- What comes and goes is told as such, and over when it has been calm for ten minutes; in between nobody is bothered.
- No channel gets more than so many messages in an hour. The second half of them is spread over the hour, so that a
  critical alert waits for minutes even then; whatever has waited comes together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

HOUR = timedelta(hours=1)
FLAP = timedelta(minutes=10)  # back within this time: it comes and goes
FOLLOW = timedelta(seconds=30)  # others of a group that was just told wait for each other
NOTICED = timedelta(minutes=1)  # a critical alert that stood so long is told even if it went meanwhile
SLACK = 0.1  # a repetition may come by so much of its interval earlier, to come together with another


class Event(StrEnum):
    RAISED = "raised"
    AGAIN = "again"  # it was over, and is back within ten minutes
    WORSE = "worse"  # a warning has become critical
    REPEATED = "repeated"
    OVER = "over"
    PASSED = "passed"  # it came and went while messages were held back


@dataclass(frozen=True)
class Known:
    """An alert, as far as telling of it goes. `group`: alerts of one kind at one source share it."""

    pk: int
    key: str
    group: str
    is_critical: bool
    opened_at: datetime
    closed_at: datetime | None = None
    told_at: datetime | None = None
    told_count: int = 0
    told_over_at: datetime | None = None
    muted_until: datetime | None = None
    is_acknowledged: bool = False
    was_told_critical: bool = False

    @property
    def is_owed_an_end(self) -> bool:
        return self.told_count > 0 and self.told_over_at is None


@dataclass(frozen=True)
class Rules:
    batch: timedelta = timedelta(minutes=5)
    repeat: timedelta = timedelta(hours=1)  # zero: never
    hourly_limit: int = 30


@dataclass(frozen=True)
class Telling:
    """May be told with others from `earliest_at` on, and is told for its own sake from `due_at` on."""

    alert: Known
    event: Event
    earliest_at: datetime
    due_at: datetime

    def after(self, now: datetime) -> Known:
        """The alert when this was told."""
        told = replace(self.alert, told_at=now, told_count=self.alert.told_count + 1)
        if self.event in (Event.OVER, Event.PASSED):
            return replace(self.alert, told_over_at=now, told_count=max(1, self.alert.told_count))
        return replace(told, was_told_critical=told.was_told_critical or told.is_critical)


@dataclass(frozen=True)
class Parcel:
    """One message to every channel. `is_held_back`: something in it has waited for its turn."""

    is_critical: bool
    is_held_back: bool
    tellings: tuple[Telling, ...]


@dataclass(frozen=True)
class Heir:
    """An alert that is back before people were told that it was over: they know of it already."""

    before: Known
    alert: Known

    def after(self, now: datetime) -> tuple[Known, Known]:
        heir = replace(
            self.alert,
            told_at=self.before.told_at,
            told_count=self.before.told_count,
            was_told_critical=self.before.was_told_critical,
            is_acknowledged=self.alert.is_acknowledged or self.before.is_acknowledged,
        )
        return replace(self.before, told_over_at=now), heir


@dataclass(frozen=True)
class Plan:
    heirs: tuple[Heir, ...] = ()
    parcels: tuple[Parcel, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.heirs or self.parcels)


def plan(alerts: Iterable[Known], rules: Rules, recent: Sequence[datetime], now: datetime) -> Plan:
    """`recent`: when messages were written in the last hour, to the channel that got most."""
    rows = {alert.pk: alert for alert in sorted(alerts, key=lambda alert: alert.opened_at)}
    heirs = _heirs(rows.values())
    for heir in heirs:
        rows |= {alert.pk: alert for alert in heir.after(now)}
    waiting = _waiting(list(rows.values()), rules, now)
    parcels: list[Parcel] = []
    for is_critical in (True, False):
        ready = [each for each in waiting if each.alert.is_critical == is_critical and each.earliest_at <= now]
        is_due = any(each.due_at <= now for each in ready)
        if is_due and has_room([*recent, *(now for _ in parcels)], rules, is_critical=is_critical, now=now):
            is_late = any(each.due_at < now - NOTICED for each in ready)
            parcels.append(Parcel(is_critical, is_late, tuple(ready)))
    return Plan(tuple(heirs), tuple(parcels))


def has_room(recent: Sequence[datetime], rules: Rules, *, is_critical: bool, now: datetime) -> bool:
    """Whether one more message may go out. Half of an hour's messages go at once, the others spread over it."""
    limit, used = rules.hourly_limit, sum(now - HOUR < at <= now for at in recent)
    if used >= limit or (not is_critical and used > 0 and used >= limit * 2 // 3):
        return False
    if used < limit / 2:
        return True
    return now - max(recent) >= HOUR / (limit - limit // 2)


def _heirs(rows: Iterable[Known]) -> list[Heir]:
    """Rows come in the order they were opened."""
    owing: dict[str, Known] = {}
    found: list[Heir] = []
    for alert in rows:
        before = owing.get(alert.key)
        if before and alert.closed_at is None and not alert.told_count:
            found.append(Heir(before, alert))
        if alert.closed_at is not None and alert.is_owed_an_end:
            owing[alert.key] = alert
    return found


def _waiting(rows: list[Known], rules: Rules, now: datetime) -> list[Telling]:
    told = _told_by_group(rows)
    closed: dict[str, Known] = {}
    waiting: list[Telling] = []
    for alert in rows:
        last = next((at for at, pk in told[alert.group] if pk != alert.pk), None)
        telling = _telling(alert, closed.get(alert.key), last, rules, now)
        if telling is not None:
            waiting.append(_unmuted(telling))
        if alert.closed_at is not None:
            closed[alert.key] = alert
    return waiting


def _told_by_group(rows: list[Known]) -> dict[str, list[tuple[datetime, int]]]:
    """When alerts of each group were told of, newest first."""
    found: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for alert in rows:
        found[alert.group] += [(at, alert.pk) for at in (alert.told_at, alert.told_over_at) if at]
    for moments in found.values():
        moments.sort(reverse=True)
    return found


def _telling(
    alert: Known, before: Known | None, group_told_at: datetime | None, rules: Rules, now: datetime
) -> Telling | None:
    is_flapping = before is not None and before.closed_at is not None and alert.opened_at - before.closed_at <= FLAP
    if alert.closed_at is not None:
        return _ending(alert, alert.closed_at, is_flapping, group_told_at, rules)
    if alert.told_count == 0:
        is_back = is_flapping and before is not None and before.told_count > 0
        due = _due(alert, alert.opened_at, group_told_at, rules)
        return Telling(alert, Event.AGAIN if is_back else Event.RAISED, alert.opened_at, due)
    if alert.is_critical and not alert.was_told_critical:
        return Telling(alert, Event.WORSE, now, now)
    if alert.told_at and rules.repeat and not alert.is_acknowledged:
        due = alert.told_at + rules.repeat
        return Telling(alert, Event.REPEATED, due - rules.repeat * SLACK, due)
    return None


def _ending(
    alert: Known, closed_at: datetime, is_flapping: bool, group_told_at: datetime | None, rules: Rules
) -> Telling | None:
    if alert.is_owed_an_end:
        if is_flapping:
            return Telling(alert, Event.OVER, closed_at + FLAP, closed_at + FLAP)
        return Telling(alert, Event.OVER, closed_at, _due(alert, closed_at, group_told_at, rules))
    is_news = alert.told_count == 0 and not alert.is_acknowledged and alert.muted_until is None
    if is_news and alert.is_critical and closed_at - alert.opened_at >= NOTICED:
        return Telling(alert, Event.PASSED, closed_at, closed_at)
    return None


def _due(alert: Known, since: datetime, group_told_at: datetime | None, rules: Rules) -> datetime:
    if not alert.is_critical:
        return since + rules.batch
    return max(since, group_told_at + min(FOLLOW, rules.batch)) if group_told_at else since


def _unmuted(telling: Telling) -> Telling:
    until = telling.alert.muted_until
    if until is None:
        return telling
    return replace(telling, earliest_at=max(telling.earliest_at, until), due_at=max(telling.due_at, until))
