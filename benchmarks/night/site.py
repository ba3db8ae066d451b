"""The simulated side of a read: response times and errors of the sources, behind the worker's own reader interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from benchmarks.night.faults import FaultKind
from benchmarks.night.world import BEGIN, SimulatedMatch, World, payload_of
from scraping import errors
from scraping.payloads import DiscoveredMatch, Payload, Sport
from scraping.policies.timeouts import Timeouts
from scraping.reading.reader import Reader
from scraping.reading.targets import BatchResult, Target
from scraping.readings import Reading, ReadMode, RefInfo, Site
from scraping.sources.base import Adapter

if TYPE_CHECKING:
    from benchmarks.night.night import Night

SPREAD = 0.45  # of the logarithm of a response time
BATCH_SECONDS = 0.1  # responses that arrive within this time are committed together
HANGS_SECONDS = Timeouts.request_seconds
RETRY_AFTER_SECONDS = 30.0
BREAKS_PARSER = 0.5  # strength from which a failing match breaks our parser instead of the source


@dataclass(frozen=True)
class Response:
    seconds: float  # from the request to the response
    error: Exception | None = None


@dataclass(frozen=True, eq=False)
class Request:
    source_key: str
    match: SimulatedMatch | None  # None: the list of matches
    response: Response


class SimulatedAdapter(Adapter):
    """The part of an adapter that workers and scheduler use in addition to the reader."""

    key, sport, payload_schema, events_endpoint = "simulated", Sport.CRICKET, "simulated.v1", ""

    def __init__(self, world: World) -> None:
        self._world = world

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        return list(self._world.listed(base_url, (reading.captured_at - BEGIN).total_seconds()))


class SimulatedReader(Reader):
    """Reads from the simulated sources for one worker. Waiting for a response gives control back to the night."""

    def __init__(self, night: Night) -> None:
        self._night = night
        self.in_flight: set[Request] = set()
        self.renewed_at: dict[str, float] = {}  # by source: since when its session is a fresh one

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        request = self._send(target.site.key, target)
        self._night.sleep(request.response.seconds)
        return self._receive(request, target)

    def batches(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[BatchResult]]:
        sent = [(self._send(target.site.key, target), number) for number, target in enumerate(targets)]
        sent.sort(key=lambda one: (one[0].response.seconds, one[1]))
        elapsed = 0.0
        for batch, some in groupby(sent, key=lambda one: int(one[0].response.seconds / BATCH_SECONDS) + 1):
            self._night.sleep(batch * BATCH_SECONDS - elapsed)
            elapsed = batch * BATCH_SECONDS
            yield [self._result(request, number, targets[number]) for request, number in some]

    def _result(self, request: Request, number: int, target: Target) -> BatchResult:
        try:
            reading, payload = self._receive(request, target)
        except Exception as error:  # noqa: BLE001 - the caller handles the error of each match
            return BatchResult(number, None, None, error)
        return BatchResult(number, reading, payload, None)

    def match_list(
        self,
        site: Site,
        adapter: Adapter,
        *,
        is_suspect: bool = False,
        timeout_factor: float = 1.0,
        visits_from: datetime | None = None,
    ) -> Reading:
        request = self._send(site.key, None)
        self._night.sleep(request.response.seconds)
        self._end(request)
        return Reading(RefInfo("", site.base_url), ReadMode.DIRECT, self._night.clock.now(), documents={})

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        return []  # the simulated sources list no events

    def _send(self, source_key: str, target: Target | None) -> Request:
        match = self._night.world.match_by_id[target.ref.source_event_id] if target else None
        request = Request(source_key, match, self._respond(source_key, match))
        self.in_flight.add(request)
        self._night.sent(request, target)
        return request

    def _end(self, request: Request) -> None:
        self.in_flight.discard(request)
        if request.response.error is not None:
            raise request.response.error

    def _receive(self, request: Request, target: Target) -> tuple[Reading, Payload]:
        self._end(request)
        assert request.match is not None
        payload = payload_of(request.match, request.source_key, self._night.clock.seconds)
        return Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={}), payload

    def _respond(self, source_key: str, match: SimulatedMatch | None) -> Response:
        """Draws the response to a request that is sent now."""
        source, rng = self._night.world.source_by_key[source_key], self._night.rng
        seconds = source.latency * rng.lognormvariate(0.0, SPREAD)
        chance, share = rng.random(), rng.random()  # always drawn: a fault changes no other response
        on = self._active(source.number)
        if FaultKind.NETWORK_CUT in on:
            return Response(share, errors.Transient("no network"))
        if FaultKind.OUTAGE in on:
            return Response(seconds, errors.Transient("HTTP 503"))
        if FaultKind.HANGS in on:
            return Response(HANGS_SECONDS, errors.ReadTimeout("no response in time"))
        if match is not None and (failed := self._match_response(source_key, match, seconds)):
            return failed
        if chance < on.get(FaultKind.RATE_LIMITED, 0.0):
            return Response(seconds, errors.Blocked("HTTP 429", retry_after_seconds=RETRY_AFTER_SECONDS))
        if chance < on.get(FaultKind.ERRORS, 0.0):
            return Response(seconds, errors.Transient("HTTP 502"))
        return Response(seconds * on.get(FaultKind.SLOW, 1.0))

    def _active(self, source: int) -> Mapping[FaultKind, float]:
        """Returns the strength of each fault that concerns a source now."""
        seconds = self._night.clock.seconds
        return {
            fault.kind: fault.strength
            for fault in self._night.world.faults.all
            if fault.begin <= seconds < fault.end and (fault.target == source or fault.kind is FaultKind.NETWORK_CUT)
        }

    def _match_response(self, source_key: str, match: SimulatedMatch, seconds: float) -> Response | None:
        faults, now = self._night.world.faults, self._night.clock.seconds
        if fails := faults.active(FaultKind.MATCH_FAILS, now, match.number):
            is_ours = fails.strength >= BREAKS_PARSER
            error = RuntimeError("parser failed") if is_ours else errors.Transient("HTTP 500 for this match")
            return Response(seconds, error)
        hangs = faults.active(FaultKind.SESSION_HANGS, now, match.number)
        if hangs and self.renewed_at.get(source_key, 0.0) < hangs.begin:
            return Response(HANGS_SECONDS, errors.ReadTimeout("the page hangs in this session"))
        return None
