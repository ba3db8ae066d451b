"""Caches of a worker, shared by its threads: requests learned from visits, payloads of answers parsed before."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cachetools import LRUCache

from scraping.payloads import Payload, Sport, Status
from scraping.readings import Document, Endpoint, Reading, RefInfo, Request

MAX_MATCHES = 500
REFERER = "referer"


@dataclass(frozen=True)
class VisitRecord:
    """Result of one visit: how the page requests its endpoints, and the page itself."""

    requests: Mapping[str, Request]
    page: Document | None  # None: the requests are derived from another match, this page was never fetched
    page_at: float  # monotonic seconds


class VisitCache:
    """Visit records by match, and the newest one of each source as the example for its other matches."""

    def __init__(self) -> None:
        self.examples: dict[str, tuple[RefInfo, VisitRecord]] = {}  # by source
        self._records: LRUCache[int, VisitRecord] = LRUCache(MAX_MATCHES)
        self._lock = threading.Lock()

    def get(self, ref_id: int) -> VisitRecord | None:
        with self._lock:
            return self._records.get(ref_id)

    def put(self, ref_id: int, record: VisitRecord) -> None:
        with self._lock:
            self._records[ref_id] = record

    def forget(self, ref_id: int) -> None:
        with self._lock:
            self._records.pop(ref_id, None)


def derive_requests(
    ref: RefInfo, endpoints: tuple[Endpoint, ...], *, example_ref: RefInfo, example: Mapping[str, Request]
) -> dict[str, Request] | None:
    """Returns the requests of one match, derived from those of another by its id; None if impossible."""
    example_id, own_id = (
        re.compile(rf"(?<![A-Za-z0-9]){re.escape(one.source_event_id)}(?![A-Za-z0-9])") for one in (example_ref, ref)
    )
    patterns = {endpoint.name: endpoint.pattern for endpoint in endpoints}
    derived: dict[str, Request] = {}
    for name, request in example.items():
        url, body = (
            example_id.sub(lambda _: ref.source_event_id, text)
            for text in (request.url, (request.body or b"").decode("utf-8", "surrogateescape"))
        )
        fits = name in patterns and patterns[name].search(url) and (own_id.search(url) or own_id.search(body))
        if not fits:
            return None
        headers = {
            header: ref.url if header == REFERER and value == example_ref.url else value
            for header, value in request.headers.items()
        }
        sent = None if request.body is None else body.encode("utf-8", "surrogateescape")
        derived[name] = replace(request, url=url, body=sent, headers=headers)
    required = {endpoint.name for endpoint in endpoints if endpoint.is_required}
    return derived if required <= derived.keys() else None


class PayloadCache:
    """The payload of each match's last requested answers, which are not parsed again (a tenth of a second).

    Only cricket: the payload of a football match depends on the time as well.
    """

    def __init__(self, max_matches: int = MAX_MATCHES) -> None:
        self._payloads: LRUCache[int, tuple[bytes, Payload]] = LRUCache(max_matches)
        self._lock = threading.Lock()

    def get(self, ref_id: int, reading: Reading) -> Payload | None:
        """Returns the payload of the same answers with the time of this reading; None for other answers."""
        with self._lock:
            cached = self._payloads.get(ref_id)
        if cached is None or not reading.mode.is_requested or cached[0] != _digest(reading):
            return None
        return cached[1].model_copy(update={"captured_at": reading.captured_at})

    def put(self, ref_id: int, reading: Reading, payload: Payload) -> None:
        state = payload.state
        is_timeless = state.sport is Sport.CRICKET and state.status is Status.LIVE and not payload.is_partial_state
        with self._lock:
            self._payloads.pop(ref_id, None)
        if not is_timeless or not reading.mode.is_requested:
            return
        digest = _digest(reading)
        with self._lock:
            self._payloads[ref_id] = digest, payload


def _digest(reading: Reading) -> bytes:
    """Covers all that an adapter may use."""
    digest = hashlib.blake2b(reading.ref.source_event_id.encode(), digest_size=20)
    for name, document in sorted(reading.documents.items()):
        head = f"\n{name} {document.status} {document.content_type} {document.url} {len(document.body)}\n"
        digest.update(head.encode())
        digest.update(document.body)
    return digest.digest()
