"""Many processes that write into one database at the same time."""

from __future__ import annotations

import os
import time
import traceback
from typing import Any

from django.db import connection
from django.utils import timezone

from scraping.models import Match
from tests.factories import make_ref, make_unread_match
from tests.scraping.builders import balls, chasing, payload_of, read


def crowd(writers: int, polls: int) -> dict[str, Any]:
    """Returns the number of failed polls, the last sequence of each match, and the duration of the slowest poll."""
    now = timezone.now()
    refs = [make_ref(make_unread_match(now=now), captured_at=None, next_poll_at=now).pk for _ in range(writers)]
    connection.close()
    began = time.monotonic()
    pipes = [_writer(ref, polls) for ref in refs]
    results = [_result(pid, pipe) for pid, pipe in pipes]
    seconds = time.monotonic() - began
    return {
        "failed": sum(failed for failed, _ in results),
        "sequences": list(Match.objects.order_by("pk").values_list("sequence", flat=True)),
        "seconds_worst": max(worst for _, worst in results),
        "rate": writers * polls / seconds,
    }


def _writer(ref_id: int, polls: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    failed, worst = 0, 0.0
    for number in range(1, polls + 1):
        began = time.monotonic()
        try:
            _poll(ref_id, number)
        except Exception:  # noqa: BLE001 - counted and logged
            traceback.print_exc()
            failed += 1
        worst = max(worst, time.monotonic() - began)
    os.write(writing, f"{failed} {worst}".encode())
    os._exit(0)


def _poll(ref_id: int, number: int) -> None:
    from scraping.models import MatchRef

    ref = MatchRef.objects.select_related("source", "match").get(pk=ref_id)
    now = timezone.now()
    read(ref, payload_of(ref, chasing(95 + number), at=now, events=balls(*range(1, number + 1))), at=now)


def _result(pid: int, pipe: int) -> tuple[int, float]:
    with os.fdopen(pipe, "rb") as result:
        failed, worst = result.read().split()
    os.waitpid(pid, 0)
    return int(failed), float(worst)
