"""How each source's endpoints are requested, as learned from its refusals: directly, in a page of the browser, or only
by visits.

Guards against a refused request and a visit at every poll: some sites refuse every client whose connection is not a
browser's, even with the cookies of a visit. After a refusal direct requests are tried again at growing intervals only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from scraping.readings import ReadMode

logger = logging.getLogger(__name__)

# The first pause of direct requests, where the browser's requests are accepted; and where they are refused too, which
# is more often a temporary block than a check of the client. Each pause is twice as long as the one before.
FIRST_PAUSE_SECONDS = {ReadMode.IN_PAGE: 600.0, ReadMode.VISIT: 60.0}
LONGEST_PAUSE_SECONDS = 6 * 3600.0
MAX_REASON = 200


@dataclass(frozen=True)
class LearnedMode:
    """A source whose endpoints are not requested directly."""

    mode: ReadMode  # IN_PAGE or VISIT
    reason: str
    since: datetime
    direct_again_at: datetime
    pause_seconds: float


def after_refusal(before: LearnedMode | None, *, mode: ReadMode, reason: str, now: datetime) -> LearnedMode:
    """Returns what a refused direct request teaches; `mode` is what the source accepts instead."""
    if before is None or before.mode is not mode:
        seconds, since = FIRST_PAUSE_SECONDS[mode], now
    else:
        seconds, since = min(before.pause_seconds * 2, LONGEST_PAUSE_SECONDS), before.since
    return LearnedMode(mode, reason[:MAX_REASON], since, now + timedelta(seconds=seconds), seconds)


class RequestModes:
    """The learned modes of a worker, by source. Changed on the loop thread; other threads may read."""

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._learned: dict[str, LearnedMode] = {}
        self._changed: set[str] = set()  # sources whose rows have to be written
        self._doubted: dict[str, str] = {}  # by source: the session in which every request was refused
        self.refusing: frozenset[str] = frozenset()  # all others are requested directly

    def learned(self, source: str) -> LearnedMode | None:
        """Returns what is known of a source (by its key); None: it is requested directly."""
        return self._learned.get(source)

    def reason(self, source: str) -> str:
        learned = self._learned.get(source)
        return learned.reason if learned else ""

    def is_visited_only(self, source: str) -> bool:
        """Returns whether the source is to be visited now: it refuses requests, and they are not yet tried again."""
        learned = self._learned.get(source)
        return learned is not None and learned.mode is ReadMode.VISIT and self._clock() < learned.direct_again_at

    def next_mode(self, source: str) -> tuple[ReadMode, bool]:
        """Returns the mode of the next request, and whether that is the trial of a direct one: one caller gets it."""
        learned, now = self._learned.get(source), self._clock()
        if learned is None:
            return ReadMode.DIRECT, False
        if now < learned.direct_again_at:
            return ReadMode.IN_PAGE, False
        self._learned[source] = after_refusal(learned, mode=learned.mode, reason=learned.reason, now=now)
        self._changed.add(source)
        return ReadMode.DIRECT, True

    def is_doubted(self, source: str, session_id: str) -> bool:
        """Returns whether this session was refused in every mode, so that trying it again is of no use."""
        return self._doubted.get(source) == session_id

    def refused_in_all(self, source: str, session_id: str, *, reason: str) -> None:
        """Records that requests were refused in every mode. In a second session that is not about the session."""
        if self._doubted.setdefault(source, session_id) != session_id:
            self.refused(source, accepted=ReadMode.VISIT, reason=reason)
        self._count_refusing()

    def refused(self, source: str, *, accepted: ReadMode, reason: str) -> None:
        """Records that requests in a mode were refused, and which mode the source accepts."""
        before = self._learned.get(source)
        self._doubted.pop(source, None)
        if before is not None and before.mode is accepted:  # known: `next_mode` has set the time of the next trial
            return
        learned = self._learned[source] = after_refusal(before, mode=accepted, reason=reason, now=self._clock())
        self._changed.add(source)
        self._count_refusing()
        logger.warning(
            "%s refuses direct requests (%s): its matches are read by %s. Direct requests are tried again in %d min",
            source,
            learned.reason,
            "requests inside a page" if accepted is ReadMode.IN_PAGE else "visits",
            learned.pause_seconds / 60,
            extra={"action": "request_mode_learned", "source": source, "read_mode": accepted.value},
        )

    def accepted(self, source: str, mode: ReadMode) -> None:
        """Records that a request was accepted; a direct one ends what was learned."""
        self._doubted.pop(source, None)
        ended = self._learned.pop(source, None) if mode is ReadMode.DIRECT else None
        self._count_refusing()
        if ended is not None:
            self._changed.add(source)
            logger.info(
                "%s accepts direct requests again",
                source,
                extra={"action": "request_mode_learned", "source": source, "read_mode": mode.value},
            )

    def changes(self) -> dict[str, LearnedMode | None]:
        """Returns what was learned since the last `restore`, by source; None: it is requested directly."""
        return {source: self._learned.get(source) for source in tuple(self._changed)}

    def restore(self, stored: Mapping[str, LearnedMode], *, written: Mapping[str, LearnedMode | None]) -> None:
        """Takes over the stored modes of all workers. `written`: the changes that are among them."""
        self._changed -= {source for source, learned in written.items() if self._learned.get(source) is learned}
        changed = {source: self._learned.get(source) for source in tuple(self._changed)}
        self._learned = {source: learned for source, learned in {**stored, **changed}.items() if learned is not None}
        self._count_refusing()

    def _count_refusing(self) -> None:
        self.refusing = frozenset(self._learned) | frozenset(self._doubted)
