"""A worker's ear for orders: taken with a heartbeat, carried out on the loop, told when they are done.

The heartbeat thread asks the database, the loop thread owns browser and sessions; neither waits for the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from scraping.browser.care import Cause
from scraping.browser.sessions import Sessions
from scraping.models import OrderKind, WorkerOrder
from scraping.recovery import worker_commands

logger = logging.getLogger(__name__)

OnLoop = Callable[[Callable[[], None]], object]
LONGEST_SECONDS = 50.0  # then it is said to have failed; the scheduler closes it a little later by itself


@dataclass(frozen=True)
class _Recycling:
    order: WorkerOrder
    generation: int  # of the browser that is to go


class Orders:
    """Lives on the heartbeat thread."""

    def __init__(self, sessions: Sessions, *, worker_id: str, on_loop: OnLoop) -> None:
        self._sessions = sessions
        self._worker_id = worker_id
        self._on_loop = on_loop
        self._recycling: _Recycling | None = None

    def look(self, *, now: datetime) -> None:
        """Take what is asked; tell what was done since the last look."""
        self._follow(now)
        for order in worker_commands.take(self._worker_id, now=now):
            logger.info(
                "Order taken: %s (%s, asked for by %s)",
                order.kind.replace("_", " "),
                order.reason,
                order.actor,
                extra={"action": "order_taken", "order_id": order.pk, "kind": order.kind},
            )
            if order.kind == OrderKind.FRESH_SESSION:
                self._on_loop(partial(self._sessions.renew, order.source_key))
                worker_commands.finish(order, outcome="the next visit begins another session", now=now)
            else:
                self._recycle(order, now)

    def _recycle(self, order: WorkerOrder, now: datetime) -> None:
        host = self._sessions.host
        if host.condition is None:
            worker_commands.finish(order, outcome="no browser was running: the next read starts one", now=now)
            return
        self._recycling = _Recycling(order, host.generation)
        self._on_loop(partial(host.recycle, Cause.ORDER, f"{order.reason} (asked for by {order.actor})"))

    def _follow(self, now: datetime) -> None:
        asked = self._recycling
        if asked is None:
            return
        is_replaced = self._sessions.host.generation > asked.generation
        if is_replaced:
            outcome = f"browser {self._sessions.host.generation} took its place"
        elif asked.order.taken_at and (now - asked.order.taken_at).total_seconds() > LONGEST_SECONDS:
            outcome = "the browser was not replaced in time"
        else:
            return
        self._recycling = None
        worker_commands.finish(asked.order, outcome=outcome, now=now, has_failed=not is_replaced)
