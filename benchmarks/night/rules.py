"""Rules that hold in every night. They check requests and rows, not policies: a policy that is wrong violates them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.night.faults import CALM
from benchmarks.night.site import Request
from monitoring.invariants import CheckContext, check_rules
from monitoring.models import Grade
from scraping.configuration import policies
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle
from scraping.payloads import Status

if TYPE_CHECKING:
    from benchmarks.night.night import Night

MAX_VIOLATIONS = 5  # of one rule: the first ones show the cause
CALM_FRESH_SHARE = 0.99  # NFR-011
NEW_SECONDS = 60.0  # after its start: a match may not be known as live yet


@dataclass(frozen=True)
class Violation:
    t: float
    rule: str
    detail: str


class Rules:
    def __init__(self, night: Night) -> None:
        self._night = night
        self.violations: list[Violation] = []

    def _violated(self, rule: str, detail: str) -> None:
        if sum(violation.rule == rule for violation in self.violations) < MAX_VIOLATIONS:
            self.violations.append(Violation(self._night.clock.seconds, rule, detail))

    def step_failed(self, message: str) -> None:
        self._violated("step failed", message)

    def check_request(self, request: Request) -> None:
        """A source never gets more requests at a time than it allows, and none through an open breaker.

        A probe is sent through a breaker that is half open.
        """
        key, now = request.source_key, self._night.clock.now()
        allowed, in_flight = self._night.world.source_by_key[key].max_concurrency, self._night.in_flight(key)
        if in_flight > allowed:
            self._violated("concurrency", f"{key} has {in_flight} requests at a time, {allowed} are allowed")
        still_open = Breaker.objects.filter(state=BreakerState.OPEN, open_until__gt=now)
        for name, source, event_id, at in still_open.values_list(
            "name", "source__key", "ref__source_event_id", "ref__source__key"
        ):
            is_of_match = request.match is not None and (event_id, at) == (request.match.event_id, key)
            if source == key or is_of_match:
                self._violated("open breaker", f"{name} is open, and a request was sent")

    def check_end(self, figures: dict[str, Any]) -> None:
        if self._night.script.faults == CALM and not self._night.world.faults.all:
            self._check_calm(figures)
        limit = policies.current().staleness_threshold_seconds
        for key, age in self._night.recorder.read_ages().items():
            is_new = self._night.clock.seconds - self._night.world.match_by_id[key].timeline.start < NEW_SECONDS
            if age >= limit and not is_new:
                self._violated("stale", f"match {key} is {age:.0f} s old at the end, {limit} s are allowed")
        for detail in _stuck():
            self._violated("stuck", detail)
        if figures["grade"] != Grade.HEALTHY:
            self._violated("grade", f"{figures['grade']} at the end")
        for result in check_rules(CheckContext(self._night.clock.now())):
            if not result.is_ok:
                self._violated(f"invariant {result.invariant}", f"not true that {result.holds}: {result.broken[0]}")

    def _check_calm(self, figures: dict[str, Any]) -> None:
        if figures["fresh_share"] < CALM_FRESH_SHARE:
            self._violated("fresh", f"{figures['fresh_share']:.2%} in a calm night, not {CALM_FRESH_SHARE:.0%}")
        for name in ("errors", "alerts"):
            if figures[name]:
                self._violated(name, f"{figures[name]} in a calm night")


def _stuck() -> Iterator[str]:
    """Yields breakers and pauses that have not ended by themselves."""
    live = Match.objects.filter(status=Status.LIVE)
    for match in live.filter(lifecycle=MatchLifecycle.PAUSED):
        yield f"{match.title} is paused until {match.pause_until}"
    for match in live.exclude(frozen_at=None):
        yield f"{match.title} is frozen"
    for breaker in Breaker.objects.exclude(state=BreakerState.CLOSED).select_related("ref__match"):
        if breaker.ref is None or breaker.ref.match.status == Status.LIVE:
            yield f"breaker {breaker.name} is {breaker.state}: {breaker.reason}"
