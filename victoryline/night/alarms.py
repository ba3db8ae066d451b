"""The alerts of a night: one open alert a cause, and their messages by the real notification policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from monitoring.alerts import notification_policy
from monitoring.alerts.notification_policy import AlertState
from victoryline.night.moments import moment, seconds_of

REMEMBERED = timedelta(minutes=15)  # longer than anything that comes and goes is waited for


@dataclass(frozen=True)
class Message:
    at: float
    is_critical: bool
    alerts: tuple[str, ...]


class Alarms:
    def __init__(self) -> None:
        self.rules = notification_policy.NotificationRules()
        self.messages: list[Message] = []
        self.all: dict[int, AlertState] = {}
        self._open: dict[str, int] = {}
        self._fresh: dict[int, None] = {}  # those that notification has to look at

    def opened(self, key: str, t: float, *, is_critical: bool, source: str = "") -> bool:
        """True when it is new; a cause that lasts is one alert, seen again. `source`: where its match is read."""
        pk = self._open.get(key)
        if pk is not None:
            known = self.all[pk]
            if is_critical and not known.is_critical:
                self.all[pk] = replace(known, is_critical=True)
            return False
        pk = len(self.all) + 1
        group = f"{key.partition(':')[0]}@{source}" if source else key  # as the outbox groups them
        self.all[pk] = AlertState(pk=pk, key=key, group=group, is_critical=is_critical, opened_at=moment(t))
        self._open[key] = pk
        self._fresh[pk] = None
        return True

    def closed(self, key: str, t: float) -> bool:
        pk = self._open.pop(key, None)
        if pk is None:
            return False
        self.all[pk] = replace(self.all[pk], closed_at=moment(t))
        return True

    def stand(self, key: str, t: float, *, if_: bool, source: str = "") -> None:
        """Critical, open while the cause stands, over when it does not."""
        if if_:
            self.opened(key, t, is_critical=True, source=source)
        elif key in self._open:
            self.closed(key, t)

    @property
    def open_keys(self) -> list[str]:
        return list(self._open)

    def tell(self, now: datetime) -> None:
        if not self._fresh:
            return
        rows = [self.all[pk] for pk in self._fresh]
        recent = [moment(one.at) for one in self.messages if now - moment(one.at) < notification_policy.HOUR]
        plan = notification_policy.plan(rows, self.rules, recent, now)
        for continuation in plan.continuations:
            self.all |= {alert.pk: alert for alert in continuation.after(now)}
        for message in plan.messages:
            keys = tuple(f"{each.event}: {each.alert.key}" for each in message.notifications)
            self.messages.append(Message(seconds_of(now), message.is_critical, keys))
            for each in message.notifications:
                self.all[each.alert.pk] = replace(each, alert=self.all[each.alert.pk]).after(now)
        self._forget(now)

    def busiest_hour(self) -> int:
        """The most messages that came within any hour."""
        times = [one.at for one in self.messages]
        return max((sum(at - 3600.0 < other <= at for other in times) for at in times), default=0)

    def _forget(self, now: datetime) -> None:
        for pk in [pk for pk in self._fresh if self._is_done(self.all[pk], now)]:
            del self._fresh[pk]

    @staticmethod
    def _is_done(alert: AlertState, now: datetime) -> bool:
        is_old = alert.closed_at is not None and now - alert.closed_at > REMEMBERED
        return is_old and not alert.needs_end_notice
