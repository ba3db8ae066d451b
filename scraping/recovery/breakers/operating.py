"""What an operator may do to a breaker: open it, keep it closed, both until a time; leave it to itself; try it now."""

from __future__ import annotations

from datetime import datetime, timedelta

from scraping import journal
from scraping.models import Breaker, MatchRef, Source
from scraping.policies import breaker as machine
from scraping.policies.breaker import BreakerView
from scraping.recovery.breakers.rows import Operator, row_of_ref, row_of_source, swap
from scraping.signals import breaker_operated

LONGEST_MINUTES = 1440


class NotPossible(Exception):  # noqa: N818 - reads as what it says at every `except`
    """The breaker is in a state that this cannot be done in; the message is for people."""


def find(name: str, *, now: datetime) -> Breaker:
    """By its own name, or by the key of a source or of a match at a source."""
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
    raise NotPossible(f"there is no breaker, source or match called {name}; `breaker list` shows what there is")


def force_open(row: Breaker, *, minutes: float, reason: str, actor: str, now: datetime) -> BreakerView:
    """Make no request until then; after that probes decide."""
    until, why = _decided(minutes, reason, actor, now)
    operator = Operator(name=actor, reason=reason)
    view = swap(row, lambda _: machine.forced_open(until, why), now=now, operator=operator)
    return _told(row, view, "breaker_force_open", operator, until)


def force_closed(row: Breaker, *, minutes: float, reason: str, actor: str, now: datetime) -> BreakerView:
    """Let every request through until then, whatever fails; after that it is judged afresh."""
    until, why = _decided(minutes, reason, actor, now)
    operator = Operator(name=actor, reason=reason)
    view = swap(row, lambda _: machine.forced_closed(until, why), now=now, operator=operator)
    _let_go(row, now)
    return _told(row, view, "breaker_force_closed", operator, until)


def reset(row: Breaker, *, actor: str, now: datetime, reason: str = "asked for by a person") -> BreakerView:
    """Closed, its failures forgotten, and left to itself."""
    operator = Operator(name=actor, reason=reason)
    view = swap(row, lambda _: machine.closed(f"reset by {actor}"), now=now, operator=operator)
    _let_go(row, now)
    return _told(row, view, "breaker_reset", operator)


def probe_now(row: Breaker, *, actor: str, now: datetime, reason: str = "asked for by a person") -> BreakerView:
    """Do not wait any longer: let the probes through."""
    operator = Operator(name=actor, reason=reason)

    def change(view: BreakerView) -> BreakerView:
        if view.state == machine.CLOSED:
            raise NotPossible(f"{row.name} is closed: every request goes through, so there is nothing to probe")
        return view if view.state == machine.HALF_OPEN else machine.half_opened(f"probes asked for by {actor}")

    view = swap(row, change, now=now, operator=operator)
    _let_go(row, now)
    return _told(row, view, "breaker_probe", operator)


def _decided(minutes: float, reason: str, actor: str, now: datetime) -> tuple[datetime, str]:
    if not reason.strip():
        raise NotPossible("a reason is needed: whoever looks next must know why it does not act by itself")
    if not 0 < minutes <= LONGEST_MINUTES:
        raise NotPossible(f"it must end: 1 to {LONGEST_MINUTES} minutes, not {minutes:g}")
    return now + timedelta(minutes=minutes), f"{reason.strip()} (by {actor})"


def _let_go(row: Breaker, now: datetime) -> None:
    """The match's next poll was put off until the breaker would be over."""
    if row.ref_id is not None:
        MatchRef.objects.filter(pk=row.ref_id, next_poll_at__gt=now).update(next_poll_at=now)
        journal.hasten(row.ref_id, now=now)


def _told(
    row: Breaker, view: BreakerView, action: str, operator: Operator, until: datetime | None = None
) -> BreakerView:
    breaker_operated.send_robust(
        sender=Breaker, name=row.name, action=action, until=until, reason=operator.reason, actor=operator.name
    )
    return view
