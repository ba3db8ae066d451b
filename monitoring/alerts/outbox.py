"""The sole writer of messages, and of what an alert knows about having been told.

Guards against alerts that are lost between being seen and being sent: a message is a row before anybody sends it. A
sender claims it by a conditional UPDATE, for two minutes; one that dies with it in hand leaves it to the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from monitoring.alerts.advice import advice, family
from monitoring.alerts.channels import Outgoing, wants
from monitoring.alerts.telling import FOLLOW, HOUR, Known, Parcel, Plan, Rules, plan
from monitoring.alerts.wording import Told, document
from monitoring.models import Alert, AlertMessage, Channel, Severity
from scraping.models import MatchRef

REMEMBERED = timedelta(hours=3)
HELD = timedelta(seconds=120)  # longer than any channel takes
DELAYS_SECONDS = (5, 15, 45, 120, 300, 600, 900, 1200)  # between attempts: given up after about an hour
OWED = Q(told_count__gt=0, told_over_at__isnull=True)
UNSENT = Q(sent_at__isnull=True, given_up_at__isnull=True)


@dataclass(frozen=True)
class Claimed:
    pk: int
    attempt: int
    message: Outgoing


def queue_due(channels: Collection[Channel], rules: Rules, *, base_url: str, now: datetime) -> int:
    """Write the messages that are due; how many. Twice at a time is once: the second waits, and finds it done."""
    if not channels or not _may_be_told(now).exists() or not _plan(channels, rules, now):  # no lock for nothing
        return 0
    with transaction.atomic():
        rows = _rows(now, is_locked=True)
        sources = _sources(rows.values())
        made = _plan(channels, rules, now, rows, sources)
        _inherit(made, rows, now)
        written = 0
        for parcel in made.parcels:
            wanting = [channel for channel in channels if wants(channel, {each.event for each in parcel.tellings})]
            _write(parcel, rows, sources, channels=wanting, base_url=base_url, now=now)
            written += len(wanting)
        return written


def _may_be_told(now: datetime) -> QuerySet[Alert]:
    """Those that stand, or whose end is owed, or that came and went. The others only say how these are told."""
    unseen = Q(told_count=0, severity=Severity.CRITICAL, closed_at__gt=now - REMEMBERED)
    return Alert.objects.filter(Q(closed_at__isnull=True) | OWED | unseen)


def _plan(
    channels: Collection[Channel],
    rules: Rules,
    now: datetime,
    rows: dict[int, Alert] | None = None,
    sources: Mapping[int, str] | None = None,
) -> Plan:
    rows = _rows(now) if rows is None else rows
    if not rows:
        return Plan()
    sources = _sources(rows.values()) if sources is None else sources
    critical = _told_critical(rows.values())
    known = [_known(row, sources.get(row.pk, ""), row.pk in critical, now) for row in rows.values()]
    return plan(known, rules, _recent(channels, now), now)


def _rows(now: datetime, *, is_locked: bool = False) -> dict[int, Alert]:
    wanted = Q(closed_at__isnull=True) | Q(closed_at__gt=now - REMEMBERED)
    alerts = Alert.objects.filter(wanted | OWED).order_by("pk")
    return {alert.pk: alert for alert in (alerts.select_for_update() if is_locked else alerts)}


def _known(alert: Alert, source: str, was_told_critical: bool, now: datetime) -> Known:
    """By our clock: what another one wrote, that was set back since, keeps nobody waiting for an hour."""
    opened_at, closed_at, told_at, told_over_at = (
        at if at is None or at <= now else now - FOLLOW
        for at in (alert.opened_at, alert.closed_at, alert.told_at, alert.told_over_at)
    )
    return Known(
        pk=alert.pk,
        key=alert.key,
        group=_group(alert, source),
        is_critical=alert.severity == Severity.CRITICAL,
        opened_at=opened_at or now,
        closed_at=closed_at,
        told_at=told_at,
        told_count=alert.told_count,
        told_over_at=told_over_at,
        muted_until=alert.muted_until,
        is_acknowledged=alert.acknowledged_at is not None,
        was_told_critical=was_told_critical,
    )


def _group(alert: Alert, source: str) -> str:
    """Alerts of one kind about matches of one source belong together."""
    is_of_match = bool(advice(alert.key).many and alert.detail.get("match_id"))
    return f"{family(alert.key)}@{source}" if is_of_match else alert.key


def _sources(alerts: Iterable[Alert]) -> dict[int, str]:
    """Where the match of each alert is read."""
    matches = {alert.pk: match_id for alert in alerts if (match_id := alert.detail.get("match_id"))}
    if not matches:
        return {}
    refs = MatchRef.objects.filter(match_id__in=set(matches.values()), is_watched=True).order_by("-source__name")
    names = dict(refs.values_list("match_id", "source__name"))
    return {pk: names[match_id] for pk, match_id in matches.items() if match_id in names}


def _told_critical(alerts: Iterable[Alert]) -> set[int]:
    """A message holds alerts of one severity only: its own."""
    keys = [alert.pk for alert in alerts if alert.told_count and alert.severity == Severity.CRITICAL]
    if not keys:
        return set()
    links = AlertMessage.alerts.through.objects.filter(alert_id__in=keys)
    return set(links.filter(alertmessage__severity=Severity.CRITICAL).values_list("alert_id", flat=True))


def _recent(channels: Collection[Channel], now: datetime) -> list[datetime]:
    """Of the channel that got most."""
    found: dict[str, list[datetime]] = {channel.value: [] for channel in channels}
    within = AlertMessage.objects.filter(created_at__gt=now - HOUR, created_at__lte=now)
    for channel, at in within.values_list("channel", "created_at"):
        found.setdefault(channel, []).append(at)
    return max(found.values(), key=len)


def _inherit(made: Plan, rows: dict[int, Alert], now: datetime) -> None:
    for heir in made.heirs:
        before, known = heir.after(now)
        old, alert = rows[before.pk], rows[known.pk]
        old.told_over_at = before.told_over_at
        alert.told_at, alert.told_count = known.told_at, known.told_count
        if old.acknowledged_at and not alert.acknowledged_at:
            alert.acknowledged_at, alert.acknowledged_by = old.acknowledged_at, old.acknowledged_by
        old.save(update_fields=("told_over_at",))
        alert.save(update_fields=("told_at", "told_count", "acknowledged_at", "acknowledged_by"))
        for message in old.messages.order_by("-severity", "-pk")[:1]:
            message.alerts.add(alert)


def _write(
    parcel: Parcel,
    rows: dict[int, Alert],
    sources: Mapping[int, str],
    *,
    channels: Collection[Channel],
    base_url: str,
    now: datetime,
) -> None:
    alerts = [rows[telling.alert.pk] for telling in parcel.tellings]
    times = _times([alert.key for alert in alerts], now)
    told = [
        Told(alert, telling.event, telling.alert.group, sources.get(alert.pk, ""), times.get(alert.key, 1))
        for alert, telling in zip(alerts, parcel.tellings, strict=True)
    ]
    severity = Severity.CRITICAL if parcel.is_critical else Severity.WARNING
    body = document(told, severity=severity, is_digest=parcel.is_held_back, base_url=base_url, now=now)
    for channel in channels:
        _add(channel, severity, body, alerts, now)
    for alert, telling in zip(alerts, parcel.tellings, strict=True):
        after = telling.after(now)
        alert.told_at, alert.told_count, alert.told_over_at = after.told_at, after.told_count, after.told_over_at
    Alert.objects.bulk_update(alerts, ("told_at", "told_count", "told_over_at"), batch_size=200)


def _add(channel: Channel, severity: Severity, body: dict[str, Any], alerts: list[Alert], now: datetime) -> None:
    message = AlertMessage.objects.create(
        channel=channel,
        severity=severity,
        subject=body["subject"][:300],
        document=body,
        created_at=now,
        next_attempt_at=now,
    )
    message.alerts.set(alerts)


def _times(keys: Collection[str], now: datetime) -> dict[str, int]:
    """How often each came within a day."""
    rows = Alert.objects.filter(key__in=keys, opened_at__gt=now - timedelta(days=1)).values_list("key")
    return dict(rows.annotate(number=Count("pk")).order_by())


def claim_next(channel: Channel, now: datetime) -> Claimed | None:
    """The oldest message to a channel that is due, if nobody else was faster."""
    is_due = Q(next_attempt_at__lte=now) | Q(attempts=0, created_at__gt=now)  # or the clock was set back since
    waiting = AlertMessage.objects.filter(UNSENT, is_due, channel=channel)
    row = waiting.order_by("pk").first()
    if row is None:
        return None
    mine = AlertMessage.objects.filter(UNSENT, pk=row.pk, attempts=row.attempts, next_attempt_at=row.next_attempt_at)
    if not mine.update(attempts=F("attempts") + 1, next_attempt_at=now + HELD):
        return None
    thread = _thread(row) if channel == Channel.EMAIL else []
    return Claimed(row.pk, row.attempts + 1, Outgoing(row.document, row.created_at, thread))


def _thread(row: AlertMessage) -> list[str]:
    earlier = AlertMessage.objects.filter(channel=row.channel, pk__lt=row.pk, alerts__in=row.alerts.all())
    documents = earlier.distinct().order_by("pk").values_list("document", flat=True)
    return [document["id"] for document in documents]


def note_sent(claimed: Claimed, now: datetime) -> None:
    AlertMessage.objects.filter(UNSENT, pk=claimed.pk).update(sent_at=now, error="")


def note_failed(claimed: Claimed, reason: str, *, now: datetime, again_after: float | None, is_final: bool) -> bool:
    """True when it is given up."""
    mine: QuerySet[AlertMessage] = AlertMessage.objects.filter(UNSENT, pk=claimed.pk, attempts=claimed.attempt)
    if is_final or claimed.attempt > len(DELAYS_SECONDS):
        mine.update(given_up_at=now, error=reason[:300])
        return True
    pause = max(DELAYS_SECONDS[claimed.attempt - 1], again_after or 0.0)
    mine.update(next_attempt_at=now + timedelta(seconds=pause), error=reason[:300])
    return False


def send_again(keys: Collection[int], now: datetime) -> int:
    """Give messages that did not get through all of their attempts once more. What was sent is left alone."""
    unsent = AlertMessage.objects.filter(pk__in=keys, sent_at__isnull=True)
    return unsent.update(given_up_at=None, attempts=0, next_attempt_at=now, error="")
