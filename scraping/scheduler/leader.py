"""One scheduler leads, others stand by: a lease in the database, lost by silence.

Guards against two schedulers doing everything twice. Even that would be harmless (steps are idempotent), only wasteful.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Q

from scraping.models import Lease
from victoryline.lib import identity

LEADER = "scheduler"


def hold(holder: str, *, seconds: float, now: datetime, name: str = LEADER) -> bool:
    """Take or keep the lease; True if it is ours now. A new holder gets a new fence."""
    until = now + timedelta(seconds=seconds)
    if Lease.objects.filter(name=name, holder=holder, expires_at__gte=now).update(expires_at=until):
        return True
    free = Lease.objects.filter(Q(expires_at__lt=now) | Q(holder=holder), name=name)
    if free.update(holder=holder, expires_at=until, fence=F("fence") + 1):
        return True
    if _take_from_the_dead(name, holder, until):
        return True
    Lease.objects.bulk_create([Lease(name=name, holder=holder, fence=1, expires_at=until)], ignore_conflicts=True)
    return Lease.objects.filter(name=name, holder=holder, expires_at__gte=now).exists()


def _take_from_the_dead(name: str, holder: str, until: datetime) -> bool:
    """A holder that ended on this machine is not waited for."""
    lease = Lease.objects.filter(name=name).first()
    if lease is None or not identity.is_gone(lease.holder):
        return False
    ended = Lease.objects.filter(name=name, holder=lease.holder, fence=lease.fence)
    return bool(ended.update(holder=holder, expires_at=until, fence=F("fence") + 1))


def let_go(holder: str, *, now: datetime, name: str = LEADER) -> None:
    """Leave the lease to whoever stands by, without making them wait."""
    Lease.objects.filter(name=name, holder=holder).update(expires_at=now - timedelta(seconds=1))
