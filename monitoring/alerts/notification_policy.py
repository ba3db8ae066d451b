"""Decides which alerts are notified now, and in which messages. Pure: rows and a time in, messages out.

Guards against both failures of alerting: no message during an outage, and so many messages that they are not read.
- A critical alert is notified at once. Others of its kind at its source follow in one message within 30 seconds.
- Warnings are batched. A warning that closes before its notification is not notified.
- Open alerts are repeated at an interval until they are acknowledged. The end of a notified alert is notified.
- A flapping alert is notified as such, and its end after ten minutes without a new one.
- An hourly limit holds for each channel. The second half of the messages is spread over the hour, so that a critical
  alert waits for minutes even then; delayed notifications share one message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

HOUR = timedelta(hours=1)
FLAP = timedelta(minutes=10)  # an alert that opens again within this time is flapping
FOLLOW = timedelta(seconds=30)  # batching of a group after its first notification
MIN_DURATION = timedelta(minutes=1)  # a critical alert open for so long is notified even if it has closed
SLACK = 0.1  # share of its interval by which a repetition may come earlier, to join another message


class Event(StrEnum):
    RAISED = "raised"
    AGAIN = "again"  # opened again within ten minutes
    WORSE = "worse"  # a warning has become critical
    REPEATED = "repeated"
    OVER = "over"
    PASSED = "passed"  # opened and closed while messages were delayed


@dataclass(frozen=True)
class AlertState:
    """The columns of an alert that notification needs. `group` is shared by alerts of one kind at one source."""

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
    was_notified_critical: bool = False

    @property
    def needs_end_notice(self) -> bool:
        return self.told_count > 0 and self.told_over_at is None


@dataclass(frozen=True)
class NotificationRules:
    batch: timedelta = timedelta(minutes=5)
    repeat: timedelta = timedelta(hours=1)  # zero: never
    hourly_limit: int = 30


@dataclass(frozen=True)
class Notification:
    """May join another message from `earliest_at`, and needs one of its own from `due_at`."""

    alert: AlertState
    event: Event
    earliest_at: datetime
    due_at: datetime

    def after(self, now: datetime) -> AlertState:
        """Returns the alert after this notification."""
        notified = replace(self.alert, told_at=now, told_count=self.alert.told_count + 1)
        if self.event in (Event.OVER, Event.PASSED):
            return replace(self.alert, told_over_at=now, told_count=max(1, self.alert.told_count))
        return replace(notified, was_notified_critical=notified.was_notified_critical or notified.is_critical)


@dataclass(frozen=True)
class PlannedMessage:
    """One message to every channel. `is_delayed`: the hourly limit has delayed a part of it."""

    is_critical: bool
    is_delayed: bool
    notifications: tuple[Notification, ...]


@dataclass(frozen=True)
class Continuation:
    """An alert that opened again before its end was notified: it takes over the earlier notifications."""

    before: AlertState
    alert: AlertState

    def after(self, now: datetime) -> tuple[AlertState, AlertState]:
        continuation = replace(
            self.alert,
            told_at=self.before.told_at,
            told_count=self.before.told_count,
            was_notified_critical=self.before.was_notified_critical,
            is_acknowledged=self.alert.is_acknowledged or self.before.is_acknowledged,
        )
        return replace(self.before, told_over_at=now), continuation


@dataclass(frozen=True)
class NotificationPlan:
    continuations: tuple[Continuation, ...] = ()
    messages: tuple[PlannedMessage, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.continuations or self.messages)


def plan(
    alerts: Iterable[AlertState], rules: NotificationRules, recent: Sequence[datetime], now: datetime
) -> NotificationPlan:
    """Returns the plan; `recent`: times of the last hour's messages to the channel that got most."""
    rows = {alert.pk: alert for alert in sorted(alerts, key=lambda alert: alert.opened_at)}
    continuations = _continuations(rows.values())
    for continuation in continuations:
        rows |= {alert.pk: alert for alert in continuation.after(now)}
    waiting = _waiting(list(rows.values()), rules, now)
    messages: list[PlannedMessage] = []
    for is_critical in (True, False):
        ready = [each for each in waiting if each.alert.is_critical == is_critical and each.earliest_at <= now]
        is_due = any(each.due_at <= now for each in ready)
        if is_due and has_room([*recent, *(now for _ in messages)], rules, is_critical=is_critical, now=now):
            is_late = any(each.due_at < now - MIN_DURATION for each in ready)
            messages.append(PlannedMessage(is_critical, is_late, tuple(ready)))
    return NotificationPlan(tuple(continuations), tuple(messages))


def has_room(recent: Sequence[datetime], rules: NotificationRules, *, is_critical: bool, now: datetime) -> bool:
    """Returns whether one more message may be sent: half of an hour's messages at once, the others spread over it."""
    limit, used = rules.hourly_limit, sum(now - HOUR < at <= now for at in recent)
    if used >= limit or (not is_critical and used > 0 and used >= limit * 2 // 3):
        return False
    if used < limit / 2:
        return True
    return now - max(recent) >= HOUR / (limit - limit // 2)


def _continuations(rows: Iterable[AlertState]) -> list[Continuation]:
    """Expects rows in the order they were opened."""
    unended: dict[str, AlertState] = {}
    found: list[Continuation] = []
    for alert in rows:
        before = unended.get(alert.key)
        if before and alert.closed_at is None and not alert.told_count:
            found.append(Continuation(before, alert))
        if alert.closed_at is not None and alert.needs_end_notice:
            unended[alert.key] = alert
    return found


def _waiting(rows: list[AlertState], rules: NotificationRules, now: datetime) -> list[Notification]:
    notified = _notified_by_group(rows)
    closed: dict[str, AlertState] = {}
    waiting: list[Notification] = []
    for alert in rows:
        last = next((at for at, pk in notified[alert.group] if pk != alert.pk), None)
        notification = _notification(alert, closed.get(alert.key), last, rules, now)
        if notification is not None:
            waiting.append(_unmuted(notification))
        if alert.closed_at is not None:
            closed[alert.key] = alert
    return waiting


def _notified_by_group(rows: list[AlertState]) -> dict[str, list[tuple[datetime, int]]]:
    """Returns the notification times of each group, newest first."""
    found: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for alert in rows:
        found[alert.group] += [(at, alert.pk) for at in (alert.told_at, alert.told_over_at) if at]
    for moments in found.values():
        moments.sort(reverse=True)
    return found


def _notification(
    alert: AlertState,
    before: AlertState | None,
    group_notified_at: datetime | None,
    rules: NotificationRules,
    now: datetime,
) -> Notification | None:
    is_flapping = before is not None and before.closed_at is not None and alert.opened_at - before.closed_at <= FLAP
    if alert.closed_at is not None:
        return _ending(alert, alert.closed_at, is_flapping, group_notified_at, rules)
    if alert.told_count == 0:
        is_back = is_flapping and before is not None and before.told_count > 0
        due = _due(alert, alert.opened_at, group_notified_at, rules)
        return Notification(alert, Event.AGAIN if is_back else Event.RAISED, alert.opened_at, due)
    if alert.is_critical and not alert.was_notified_critical:
        return Notification(alert, Event.WORSE, now, now)
    if alert.told_at and rules.repeat and not alert.is_acknowledged:
        due = alert.told_at + rules.repeat
        return Notification(alert, Event.REPEATED, due - rules.repeat * SLACK, due)
    return None


def _ending(
    alert: AlertState,
    closed_at: datetime,
    is_flapping: bool,
    group_notified_at: datetime | None,
    rules: NotificationRules,
) -> Notification | None:
    if alert.needs_end_notice:
        if is_flapping:
            return Notification(alert, Event.OVER, closed_at + FLAP, closed_at + FLAP)
        return Notification(alert, Event.OVER, closed_at, _due(alert, closed_at, group_notified_at, rules))
    is_unnoticed = alert.told_count == 0 and not alert.is_acknowledged and alert.muted_until is None
    if is_unnoticed and alert.is_critical and closed_at - alert.opened_at >= MIN_DURATION:
        return Notification(alert, Event.PASSED, closed_at, closed_at)
    return None


def _due(alert: AlertState, since: datetime, group_notified_at: datetime | None, rules: NotificationRules) -> datetime:
    if not alert.is_critical:
        return since + rules.batch
    return max(since, group_notified_at + min(FOLLOW, rules.batch)) if group_notified_at else since


def _unmuted(notification: Notification) -> Notification:
    until = notification.alert.muted_until
    if until is None:
        return notification
    return replace(
        notification, earliest_at=max(notification.earliest_at, until), due_at=max(notification.due_at, until)
    )
