"""Leader election: one scheduler leads, the others stand by. The lease is a row in the database, lost by silence.

Guards against two schedulers doing everything twice. Even that would be harmless (steps are idempotent), only wasteful.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError
from django.db.models import F, Q
from django.utils import timezone

from scraping.models import Lease
from victoryline.lib import identity

logger = logging.getLogger(__name__)

LEADER = "scheduler"
STANDBY_RETRY_SECONDS = 1.0


class Leadership:
    """The lease as one scheduler process holds it: renewed when a third of it has passed."""

    def __init__(self, holder: str, *, lease_seconds: float) -> None:
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._renew_at = 0.0  # monotonic
        self.is_held = False

    def hold(self, now: datetime) -> bool:
        """Takes or renews the lease if it is time to; returns whether this process leads."""
        if time.monotonic() < self._renew_at:
            return self.is_held
        was_held = self.is_held
        self.is_held = hold(self._holder, seconds=self._lease_seconds, now=now)
        self._renew_at = time.monotonic() + (self._lease_seconds / 3 if self.is_held else STANDBY_RETRY_SECONDS)
        if self.is_held != was_held:
            state = "leads" if self.is_held else "stands by"
            logger.info("Scheduler %s %s", self._holder, state, extra={"action": "leadership_changed"})
        return self.is_held

    def check_at_once(self) -> None:
        """Makes the next `hold` ask the database: after an error the lease may be gone."""
        self._renew_at = 0.0

    def release(self) -> None:
        if not self.is_held:
            return
        try:
            release(self._holder, now=timezone.now())
        except (DatabaseError, InterfaceError):
            logger.warning("The scheduler's lease was not released; it expires", extra={"action": "lease_kept"})


def hold(holder: str, *, seconds: float, now: datetime) -> bool:
    """Takes or renews the lease; returns whether it is the holder's now. A new holder gets a new fence."""
    until = now + timedelta(seconds=seconds)
    leases = Lease.objects.filter(name=LEADER)
    held = leases.filter(holder=holder, expires_at__gte=now)
    if held.update(expires_at=until):
        return True
    taken = {"holder": holder, "expires_at": until, "fence": F("fence") + 1}
    if leases.filter(Q(expires_at__lt=now) | Q(holder=holder)).update(**taken):
        return True
    lease = leases.first()
    if lease is not None and identity.is_gone(lease.holder):  # known to have ended on this machine: need not be awaited
        return bool(leases.filter(holder=lease.holder, fence=lease.fence).update(**taken))
    Lease.objects.bulk_create([Lease(name=LEADER, holder=holder, fence=1, expires_at=until)], ignore_conflicts=True)
    return held.exists()


def release(holder: str, *, now: datetime) -> None:
    """Ends the lease at once, so that a standby need not wait for it to expire."""
    Lease.objects.filter(name=LEADER, holder=holder).update(expires_at=now - timedelta(seconds=1))
