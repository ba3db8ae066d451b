"""What a match's last answers meant: the same answers again are not taken apart again.

A long match's list of balls takes a tenth of a second to parse, and says the same at most polls. Only cricket: what a
football match's answers mean depends on the time as well, for they tell when the half began and not the minute.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from scraping.payloads import Payload, Sport, Status
from scraping.readings import Reading, ReadMode

REMEMBERED = 500


class Parsed:
    """Bounded, and shared by the task threads: the matches that were not read for the longest time go first."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._known: OrderedDict[int, tuple[bytes, Payload]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, ref_id: int, reading: Reading) -> Payload | None:
        """The payload of these very answers, as of now; None where they are others than the last ones."""
        with self._lock:
            told, payload = self._known.get(ref_id, (b"", None))
        if payload is None or reading.mode is not ReadMode.DIRECT or told != _digest(reading):
            return None
        return payload.model_copy(update={"captured_at": reading.captured_at})

    def remember(self, ref_id: int, reading: Reading, payload: Payload) -> None:
        state = payload.state
        is_timeless = state.sport is Sport.CRICKET and state.status is Status.LIVE and not payload.is_partial_state
        with self._lock:
            self._known.pop(ref_id, None)
        if not is_timeless or reading.mode is not ReadMode.DIRECT:
            return
        digest = _digest(reading)
        with self._lock:
            self._known[ref_id] = digest, payload
            while len(self._known) > self._limit:
                self._known.popitem(last=False)


def _digest(reading: Reading) -> bytes:
    """Of all that an adapter may look at."""
    digest = hashlib.blake2b(reading.ref.source_event_id.encode(), digest_size=20)
    for name, document in sorted(reading.documents.items()):
        head = f"\n{name} {document.status} {document.content_type} {document.url} {len(document.body)}\n"
        digest.update(head.encode())
        digest.update(document.body)
    return digest.digest()
