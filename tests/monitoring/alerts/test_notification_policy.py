"""The notification policy: a table of cases, and simulated days of trouble."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from monitoring.alerts.notification_policy import (
    FLAP,
    HOUR,
    MIN_DURATION,
    AlertState,
    Event,
    NotificationPlan,
    NotificationRules,
    has_room,
    plan,
)
from tests.factories import NOW

RULES = NotificationRules(batch=timedelta(seconds=60), repeat=timedelta(minutes=60), hourly_limit=30)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def alert(
    opened: float,
    closed: float | None = None,
    *,
    pk: int = 1,
    notified: float | None = None,
    key: str = "stale:1",
    group: str | None = None,
    warning: bool = False,
    over: float | None = None,
    muted: float | None = None,
    **fields: bool,
) -> AlertState:
    """Times are seconds ago; `muted` is seconds from now."""
    return AlertState(
        pk=pk,
        key=key,
        group=group or key,
        is_critical=not warning,
        opened_at=ago(opened),
        closed_at=None if closed is None else ago(closed),
        told_at=None if notified is None else ago(notified),
        told_count=0 if notified is None else 1,
        told_over_at=None if over is None else ago(over),
        muted_until=None if muted is None else NOW + timedelta(seconds=muted),
        **{"was_notified_critical": notified is not None and not warning} | fields,
    )


def planned(given: NotificationPlan) -> list[list[tuple[int, str]]]:
    return [[(each.alert.pk, each.event.value) for each in message.notifications] for message in given.messages]


W = "traffic:crex"
CASES: dict[str, tuple[list[AlertState], list[list[tuple[int, str]]]]] = {
    "no alert is open": ([], []),
    "critical: at once": ([alert(0)], [[(1, "raised")]]),
    "a warning waits for others": ([alert(59, warning=True)], []),
    "warnings go together when the oldest has waited": (
        [alert(60, warning=True, key=W), alert(5, pk=2, warning=True, key="w")],
        [[(1, "raised"), (2, "raised")]],
    ),
    "critical alerts and warnings are two messages": (
        [alert(60, warning=True, key=W), alert(1, pk=2)],
        [[(2, "raised")], [(1, "raised")]],
    ),
    "notified once": ([alert(300, notified=300)], []),
    "repeated after the interval": ([alert(3600, notified=3600)], [[(1, "repeated")]]),
    "repetitions go together": (
        [
            alert(3600, notified=3600),
            alert(3300, notified=3300, pk=2, key="b"),
            alert(1000, notified=1000, pk=3, key="c"),
        ],
        [[(1, "repeated"), (2, "repeated")]],
    ),
    "not repeated while acknowledged": ([alert(7200, notified=7200, is_acknowledged=True)], []),
    "not repeated while muted": ([alert(7200, notified=7200, muted=60)], []),
    "muted before its notification: none": ([alert(100, muted=1)], []),
    "notified when the mute ends": ([alert(100, muted=0)], [[(1, "raised")]]),
    "a warning that became critical: at once": (
        [alert(50, notified=10, was_notified_critical=False)],
        [[(1, "worse")]],
    ),
    "also when the warning is acknowledged": (
        [alert(50, notified=10, was_notified_critical=False, is_acknowledged=True)],
        [[(1, "worse")]],
    ),
    "over: notified at once when it was critical": ([alert(90, 0, notified=90)], [[(1, "over")]]),
    "over: notified although acknowledged": ([alert(90, 0, notified=90, is_acknowledged=True)], [[(1, "over")]]),
    "over: warnings wait for each other": ([alert(90, 59, notified=90, warning=True)], []),
    "over: warnings": ([alert(90, 60, notified=90, warning=True)], [[(1, "over")]]),
    "over: notified once": ([alert(90, 30, notified=90, over=30)], []),
    "over before its notification: none": ([alert(30, 2, warning=True), alert(5, 2, pk=2, key="b")], []),
    "came and went while messages were held back": ([alert(90, 2)], [[(1, "passed")]]),
    "came and went while muted": ([alert(90, 2, muted=-1)], []),
    "others of a notified group wait": (
        [alert(20, notified=20, group="stale@crex"), alert(5, pk=2, key="stale:2", group="stale@crex")],
        [],
    ),
    "and follow together": (
        [
            alert(31, notified=30, group="stale@crex"),
            *(alert(5, pk=pk, key=f"stale:{pk}", group="stale@crex") for pk in (2, 3)),
        ],
        [[(2, "raised"), (3, "raised")]],
    ),
    "another group does not wait": (
        [alert(20, notified=20, group="stale@crex"), alert(0, pk=2, key="stale:2", group="stale@espn")],
        [[(2, "raised")]],
    ),
    "back within ten minutes: again": (
        [alert(900, 300, notified=900, over=300), alert(0, pk=2)],
        [[(2, "again")]],
    ),
    "back after ten minutes: as new": (
        [alert(900, 601, notified=900, over=601), alert(0, pk=2)],
        [[(2, "raised")]],
    ),
    "what comes and goes is over after ten calm minutes, not before": (
        [alert(900, 500, notified=900, over=500), alert(400, 599, notified=400, pk=2)],
        [],
    ),
    "what came and went is over": (
        [alert(1900, 1500, notified=1900, over=1500), alert(1400, 600, notified=1400, pk=2)],
        [[(2, "over")]],
    ),
    "a warning that reopens before its end notice: none": (
        [alert(100, 20, notified=40, warning=True), alert(70, warning=True, pk=2)],
        [],
    ),
}


@pytest.mark.parametrize(("alerts", "expected"), CASES.values(), ids=CASES.keys())
def test_planned_messages(alerts: list[AlertState], expected: list[list[tuple[int, str]]]) -> None:
    assert planned(plan(alerts, RULES, [], NOW)) == expected


def test_a_reopened_alert_takes_over_its_notifications() -> None:
    made = plan([alert(100, 20, notified=40, is_acknowledged=True), alert(10, pk=2)], RULES, [], NOW)
    before, continuation = made.continuations[0].after(NOW)
    assert (before.pk, before.told_over_at) == (1, NOW)
    assert (continuation.pk, continuation.told_at, continuation.told_count, continuation.is_acknowledged) == (
        2,
        ago(40),
        1,
        True,
    )
    assert not made.messages


def test_a_zero_interval_means_no_repetition() -> None:
    assert not plan([alert(90_000, notified=90_000)], replace(RULES, repeat=timedelta()), [], NOW)


@pytest.mark.parametrize(
    ("used", "last", "is_critical", "expected"),
    [
        pytest.param(0, 0, True, True, id="nothing was sent"),
        pytest.param(14, 0, True, True, id="the first half: at once"),
        pytest.param(15, 239, True, False, id="the second half: spread"),
        pytest.param(15, 240, True, True, id="the second half: its time has come"),
        pytest.param(30, 3000, True, False, id="the limit"),
        pytest.param(19, 240, False, True, id="warnings: two thirds"),
        pytest.param(20, 240, False, False, id="warnings: the rest is for critical alerts"),
    ],
)
def test_room_in_an_hour(used: int, last: float, is_critical: bool, expected: bool) -> None:
    recent = [ago(last)] * used
    assert has_room(recent, RULES, is_critical=is_critical, now=NOW) is expected


def test_delayed_notifications_share_one_message() -> None:
    alerts = [alert(200 - pk, pk=pk, key=f"k{pk}") for pk in range(1, 9)]
    assert not plan(alerts, RULES, [ago(100)] * 15, NOW).messages
    (message,) = plan(alerts, RULES, [ago(240)] * 15, NOW).messages
    assert (message.is_delayed, len(message.notifications)) == (True, 8)


STEP = timedelta(seconds=30)


@dataclass
class Day:
    """A day of trouble: causes come and go by chance, in bursts too; some are muted or acknowledged."""

    rules: NotificationRules
    luck: random.Random
    trouble: float
    rows: dict[int, AlertState] = field(default_factory=dict)
    sent: list[datetime] = field(default_factory=list)
    told_first: dict[int, datetime] = field(default_factory=dict)

    def live(self) -> None:
        now = NOW
        while now < NOW + timedelta(hours=16):
            if now < NOW + timedelta(hours=11):  # then calm: all ends are notified
                self._happen(now)
            else:
                self._calm(now)
            self._tell(now)
            now += STEP

    def open_rows(self) -> Iterator[AlertState]:
        return (row for row in self.rows.values() if row.closed_at is None)

    def _happen(self, now: datetime) -> None:
        is_burst = self.luck.random() < 0.002
        for _ in range(20 if is_burst else self.luck.random() < self.trouble):
            number = self.luck.randrange(40)
            key, pk = f"k{number}", len(self.rows) + 1
            if any(row.key == key for row in self.open_rows()):
                continue
            group = f"g{number % 5}" if number < 20 else key
            self.rows[pk] = AlertState(pk, key, group, self.luck.random() < 0.5, now)
        for row in list(self.open_rows()):
            chance = self.luck.random()
            if chance < 0.05 and now > row.opened_at:
                self.rows[row.pk] = replace(row, closed_at=now)
            elif chance < 0.053:
                self.rows[row.pk] = replace(row, is_acknowledged=True)
            elif chance < 0.056:
                self.rows[row.pk] = replace(row, is_critical=True)

    def _calm(self, now: datetime) -> None:
        for row in list(self.open_rows()):
            self.rows[row.pk] = replace(row, closed_at=now)

    def _tell(self, now: datetime) -> None:
        recent = [at for at in self.sent if now - HOUR < at]
        seen = [
            row
            for row in self.rows.values()
            if row.closed_at is None or row.needs_end_notice or row.closed_at > now - timedelta(hours=3)
        ]
        made = plan(seen, self.rules, recent, now)
        for continuation in made.continuations:
            for row in continuation.after(now):
                self.rows[row.pk] = row
                self.told_first.setdefault(row.pk, now)
        for message in made.messages:
            self.sent.append(now)
            for notification in message.notifications:
                assert notification.alert.is_critical == message.is_critical
                self.rows[notification.alert.pk] = notification.after(now)
                self.told_first.setdefault(notification.alert.pk, now)


@pytest.mark.parametrize(
    ("seed", "limit", "trouble"),
    [(1, 1, 0.01), (2, 2, 0.05), (3, 6, 0.02), (4, 30, 0.1), (5, 200, 0.05)],
)
def test_a_day_of_trouble_keeps_the_limit_and_loses_nothing(seed: int, limit: int, trouble: float) -> None:
    rules = NotificationRules(batch=timedelta(seconds=60), repeat=timedelta(minutes=60), hourly_limit=limit)
    day = Day(rules, random.Random(seed), trouble)
    day.live()
    for first, last in zip(day.sent, day.sent[limit:], strict=False):
        assert last - first >= HOUR, "more messages in an hour than allowed"
    spread = HOUR / (limit - limit // 2)
    for row in day.rows.values():
        stood = (row.closed_at or NOW) - row.opened_at
        if row.is_critical and stood > MIN_DURATION and not row.is_acknowledged:
            assert row.told_count, f"no notification of {row}"
            waited = day.told_first[row.pk] - row.opened_at
            assert waited <= max(spread, MIN_DURATION) + stood + MIN_DURATION, f"notified too late: {row}"
        assert not row.needs_end_notice, f"no end notice of {row}"


def test_a_flapping_alert_gives_few_messages() -> None:
    day = Day(RULES, random.Random(1), 0)
    now, closed = NOW, None
    for turn in range(60):  # two minutes there, two minutes away, for four hours
        day.rows[turn] = AlertState(turn, "stale:1", "stale:1", True, now)
        for _ in range(4):
            day._tell(now)
            now += STEP
        closed = now
        day.rows[turn] = replace(day.rows[turn], closed_at=closed)
        for _ in range(4):
            day._tell(now)
            now += STEP
    for _ in range(60):
        day._tell(now)
        now += STEP
    assert len(day.sent) <= 8  # raised, over, again, one an hour, over
    assert closed is not None
    assert day.rows[59].told_over_at is not None
    assert day.rows[59].told_over_at >= closed + FLAP
    assert Event.AGAIN.value == "again"
