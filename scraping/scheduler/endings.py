"""Matches that have ended: read as a whole once more, judged, and their record written."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from scraping.matches import endings, match_logs
from victoryline.lib.store import STORE_AWAY

logger = logging.getLogger(__name__)

RECORDS_AT_ONCE = 2  # writing one takes a moment, and the scheduler has other things to do
LOOKED_AT = 10  # so that a few that cannot be written leave a turn to the others


def settle_ended_matches(now: datetime) -> int:
    return len(endings.settle_ended(now))


def write_match_logs(now: datetime) -> int:
    """Of matches that were judged, again where something was corrected since, and twice a day of long ones."""
    ended = _written(match_logs.due(LOOKED_AT), now, are_ended=True)
    return ended + _written(match_logs.long_running(now, LOOKED_AT), now, are_ended=False)


def _written(match_ids: Sequence[int], now: datetime, *, are_ended: bool) -> int:
    """A few of these. One that cannot be written does not keep the others from their turn; a full disk does."""
    written = 0
    for match_id in match_ids:
        try:
            if are_ended:
                endings.look_again(match_id, now)
            is_written = match_logs.write(match_id, now=now) is not None
        except STORE_AWAY:
            raise
        except Exception:
            extra = {"action": "match_log_failed", "match_id": match_id}
            logger.exception("The record of match %s could not be made", match_id, extra=extra)
            continue
        written += is_written
        if not is_written or written >= RECORDS_AT_ONCE:
            break
    return written
