"""Sources that have had no token for too long: said once in the log, and again and again to whoever listens.

Guards against a source that quietly brings less than it should. Told by the heartbeat's thread, since nobody may use
the database on the loop thread; and told repeatedly, so that a listener notices when the worker itself is gone.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from scraping.models import Source
from scraping.reading.tokens import Tokens
from scraping.signals import token_found, token_lost

logger = logging.getLogger(__name__)

TOLD_EVERY = timedelta(seconds=20)


class TokenWatch:
    """Called from one thread."""

    def __init__(self, tokens: Tokens, *, worker_id: str, degraded_seconds: float) -> None:
        self._tokens = tokens
        self._worker_id = worker_id
        self._degraded_seconds = degraded_seconds
        self._told_at: dict[str, datetime] = {}

    def look(self, *, now: datetime) -> None:
        lost = {one.source_key: one for one in self._tokens.without() if one.seconds >= self._degraded_seconds}
        for key, one in lost.items():
            if key not in self._told_at:
                logger.error(
                    "%s has given us no token for %.0f s (%s): only what it tells everybody is read, nothing is lost. "
                    "Check its token service, its token_url and SOURCE_CREDENTIALS; a token ends this by itself",
                    key,
                    one.seconds,
                    one.reason,
                    extra={"action": "source_without_token", "source": key},
                )
            elif now - self._told_at[key] < TOLD_EVERY:
                continue
            self._told_at[key] = now
            token_lost.send_robust(
                sender=Source,
                source_key=key,
                seconds=one.seconds,
                reason=one.reason,
                worker_id=self._worker_id,
                now=now,
            )
        for key in self._told_at.keys() - lost.keys():
            del self._told_at[key]
            logger.info("%s is read as a whole again", key, extra={"action": "source_has_token", "source": key})
            token_found.send_robust(sender=Source, source_key=key, worker_id=self._worker_id, now=now)
