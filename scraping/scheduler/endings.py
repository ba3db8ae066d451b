"""Matches that have ended: read as a whole once more, judged, and their record written."""

from __future__ import annotations

from datetime import datetime

from scraping import endings, match_logs

RECORDS_AT_ONCE = 2  # writing one takes a moment, and the scheduler has other things to do


def settle_ended_matches(now: datetime) -> int:
    return len(endings.settle_ended(now))


def write_match_logs(now: datetime) -> int:
    """Of matches that were judged, again where something was corrected since, and twice a day of long ones."""
    written = 0
    for match_id in match_logs.due(RECORDS_AT_ONCE):
        endings.look_again(match_id, now)
        written += match_logs.write(match_id, now=now) is not None
    for match_id in match_logs.long_running(now, RECORDS_AT_ONCE):
        written += match_logs.write(match_id, now=now) is not None
    return written
