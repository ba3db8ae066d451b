"""Operator overrides of a breaker: force it open or closed until a time, reset it, or probe it now.

Guards against an override that is forgotten: a forced state has an end and the operator's name and reason, and every
change is audited; after it the breaker follows the calls again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scraping import journal
from scraping.matches import poll_times
from scraping.models import Breaker, MatchRef, Source
from scraping.policies import breaker as machine
from scraping.policies.breaker import BreakerView
from scraping.recovery.breakers.rows import Change, row_of_ref, row_of_source, swap
from scraping.signals import breaker_operated
from victoryline.lib.operators import OperationRefused

LONGEST_MINUTES = 1440


class BreakerOperationRefused(OperationRefused):
    """The override cannot be applied to this breaker; the message is shown to the operator."""


def find(name: str, *, now: datetime) -> Breaker:
    """Returns the breaker by its own name, by a source's key or by a match's key at a source."""
    known = Breaker.objects.filter(name=name).first()
    if known is not None:
        return known
    source = Source.objects.filter(key=name).first()
    if source is not None:
        return row_of_source(source, now=now)
    key, _, event_id = name.partition("_")
    ref = MatchRef.objects.select_related("source").filter(source__key=key, source_event_id=event_id).first()
    if ref is not None:
        return row_of_ref(ref)
    raise BreakerOperationRefused(
        f"there is no breaker, source or match named {name}; `breaker list` shows all of them"
    )


def force_open(row: Breaker, *, minutes: float, reason: str, actor: str, now: datetime) -> BreakerView:
    """Blocks every request until the end of the override; afterwards probes decide."""
    until = _checked_end(minutes, reason, now)
    forced = machine.forced_open(until, f"{reason.strip()} (by {actor})")
    return _operate(row, "breaker_force_open", lambda _: forced, actor, now, reason=reason, until=until)


def force_closed(row: Breaker, *, minutes: float, reason: str, actor: str, now: datetime) -> BreakerView:
    """Lets every request through until the end of the override; afterwards counting starts from zero."""
    until = _checked_end(minutes, reason, now)
    forced = machine.forced_closed(until, f"{reason.strip()} (by {actor})")
    return _operate(row, "breaker_force_closed", lambda _: forced, actor, now, reason=reason, until=until)


def reset(row: Breaker, *, actor: str, now: datetime) -> BreakerView:
    """Closes the breaker, clears its failure count and ends any override."""
    return _operate(row, "breaker_reset", lambda _: machine.closed(f"reset by {actor}"), actor, now)


def probe_now(row: Breaker, *, actor: str, now: datetime) -> BreakerView:
    """Half-opens an open breaker at once, so that its probes run now."""

    def change(view: BreakerView) -> BreakerView:
        if view.state == machine.CLOSED:
            raise BreakerOperationRefused(f"{row.name} is closed: every request passes, so there is nothing to probe")
        return view if view.state == machine.HALF_OPEN else machine.half_opened(f"probes requested by {actor}")

    return _operate(row, "breaker_probe", change, actor, now)


def _checked_end(minutes: float, reason: str, now: datetime) -> datetime:
    if not reason.strip():
        raise BreakerOperationRefused("a reason is required: it is shown to the next operator")
    if not 0 < minutes <= LONGEST_MINUTES:
        raise BreakerOperationRefused(f"an override must end: give 1 to {LONGEST_MINUTES} minutes, not {minutes:g}")
    return now + timedelta(minutes=minutes)


def _operate(
    row: Breaker,
    action: str,
    change: Change,
    actor: str,
    now: datetime,
    *,
    reason: str = "requested by an operator",
    until: datetime | None = None,
) -> BreakerView:
    forced = {"forced_reason": reason[:200], "forced_by": actor[:150]} if until else {}
    view = swap(row, change, now=now, actor=actor, **forced)
    if row.ref_id is not None and action != "breaker_force_open":
        # Its next poll was postponed to the end of the open state.
        poll_times.make_due(MatchRef.objects.filter(pk=row.ref_id, next_poll_at__isnull=False), now)
        journal.make_tasks_due([row.ref_id], now=now)
    breaker_operated.send_robust(sender=Breaker, name=row.name, action=action, until=until, reason=reason, actor=actor)
    return view
