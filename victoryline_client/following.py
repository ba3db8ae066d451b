"""Following a match: the whole of it once, then only what changes, until it is over.

Guards a consumer against missing anything: a look that fails changes nothing here and is repeated from where it began;
rows of the feed are counted by their ids, so that each comes exactly once; what is too long ago to be told as a change
(410), or is another match by now, is read whole again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from victoryline_client.answers import Answer, Document, Freshness
from victoryline_client.errors import PASSING, BadRequest, ClientError, Conflict, Gone, Unreachable
from victoryline_client.patience import Patience, after_failure, until_next_look

logger = logging.getLogger("victoryline_client")

ONCE = Patience(attempts=1)  # the loop waits itself, and can tell its caller about the trouble meanwhile
LONGEST_TROUBLE = 900.0  # seconds; a Retry-After beyond it is taken for a mistake
EVENT_PAGE = 100
TIMES_AHEAD = 5
ABOUT_THE_ANSWER = frozenset({"_metadata", "provenance"})  # members of an answer that are not the match


class Reads(Protocol):
    """What following needs of a client."""

    @property
    def chance(self) -> Callable[[], float]: ...

    def match(self, match_id: int | str, *, patience: Patience | None = None) -> Answer: ...

    def delta(self, match_id: int | str, since: int, *, patience: Patience | None = None) -> Answer: ...

    def events(
        self, match_id: int | str, since: int = 0, *, limit: int | None = None, patience: Patience | None = None
    ) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one look brought.

    `changed` has the new values of the fields that changed, `removed` the names of those that are gone, `document` the
    whole match after it. `events` are new rows of the feed: `action` is add, update (a correction) or retract (taken
    back). `is_whole`: the match was read whole, as at the start. `trouble`: why there was no answer; everything else is
    as it was known last then, and its age goes on growing. `next_since` goes into `follow(after=...)` after a restart.
    """

    document: Document
    freshness: Freshness
    sequence: int = 0
    changed: Document
    removed: tuple[str, ...] = ()
    events: tuple[Document, ...] = ()
    next_since: int = 0
    is_whole: bool = False
    trouble: ClientError | None = None

    @property
    def has_news(self) -> bool:
        return bool(self.changed or self.removed or self.events)


class Follower:
    """One match, in step with the server. Not for several threads at once."""

    def __init__(self, client: Reads, match_id: int | str, *, after: int = 0) -> None:
        self._client, self._match_id = client, match_id
        self._after = after  # the last row of the feed that was handed out
        self._document: Document | None = None
        self._freshness = Freshness()
        self._times_ahead = 0

    def look(self) -> Change:
        """Ask once. Raises whatever went wrong; then nothing has changed here."""
        try:
            return self._look()
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise Unreachable("The answer is JSON, but none of VictoryLine's: is its address right?") from error

    def _look(self) -> Change:
        if self._document is None:
            return self._whole()
        try:
            answer = self._client.delta(self._match_id, self._sequence, patience=ONCE)
            if not self._has_turned(answer):
                return self._step(answer)
        except Conflict as error:
            self._wait_for_the_server(error)
        except (Gone, BadRequest) as error:
            logger.info("The match is read whole again: %s", error)
        return self._whole()

    def troubled(self, error: ClientError) -> Change:
        return Change(
            document=self._document or {},
            freshness=self._freshness,
            sequence=self._sequence,
            changed={},
            next_since=self._after,
            trouble=error,
        )

    def _wait_for_the_server(self, refusal: Conflict) -> None:
        """It says that we are ahead of it. One of its processes may be a moment behind the one that told us: to read
        the match whole there would be a step back. What stays so is another history: a backup, or another match."""
        self._times_ahead += 1
        if self._times_ahead < TIMES_AHEAD:
            raise _behind(refusal.detail, refusal.retry_after)

    @property
    def _sequence(self) -> int:
        return int((self._document or {}).get("sequence") or 0)

    def _step(self, answer: Answer) -> Change:
        assert self._document is not None
        told = answer.data
        changed = dict(told.get("changed") or {})
        document = {**self._document, **changed, "sequence": int(told["to_sequence"])}
        rows = [row for row in told.get("events") or () if row["id"] > self._after]
        if told.get("has_more"):
            rows = self._rows(self._match_id, self._after, document["sequence"])
        return self._become(document, answer.freshness, rows, after=self._after, changed=changed)

    def _whole(self) -> Change:
        """The match first, its feed second: whatever comes in between is in the feed, and told again by the delta."""
        answer = self._client.match(self._match_id, patience=ONCE)
        before = self._document or {}
        document = {name: value for name, value in answer.data.items() if name not in ABOUT_THE_ANSWER}
        after, sequence, name = self._after, int(document["sequence"]), self._name_of(document)
        if before and document["id"] != before["id"]:
            logger.info("Match %s is match %s by now: its feed begins anew", before["id"], document["id"])
            after = 0
        elif sequence < self._sequence:
            if self._times_ahead < TIMES_AHEAD:
                raise _behind(f"the match is at {sequence}, and was at {self._sequence}.")
            logger.info("Match %s has another history by now: its feed begins anew", document["id"])
            after = 0  # numbers of rows that are gone may have been given to others
        if name != self._match_id:
            after = 0
        try:
            rows = self._rows(name, after, sequence)
        except (Gone, Conflict) as error:  # `after` is of a match that has become this one, or of what was lost there
            if isinstance(error, Conflict):
                self._wait_for_the_server(error)
            logger.info("The feed begins anew: %s", error)
            after, rows = 0, self._rows(name, 0, sequence)
        self._match_id = name
        return self._become(
            document,
            answer.freshness,
            rows,
            after=after,
            changed={name: value for name, value in document.items() if name not in before or before[name] != value},
            removed=tuple(name for name in before if name not in document),
            is_whole=True,
        )

    def _become(
        self,
        document: Document,
        freshness: Freshness,
        rows: list[Document],
        *,
        after: int,
        changed: Document,
        removed: tuple[str, ...] = (),
        is_whole: bool = False,
    ) -> Change:
        self._document, self._freshness, self._times_ahead = document, freshness, 0
        self._after = max((after, *(row["id"] for row in rows)))
        return Change(
            document=document,
            freshness=freshness,
            sequence=self._sequence,
            changed=changed,
            removed=removed,
            events=tuple(rows),
            next_since=self._after,
            is_whole=is_whole,
        )

    def _name_of(self, document: Document) -> int | str:
        """What to ask for it by from now on. The old number of a match that became another one is good for the whole of
        that one, and for nothing after it (410): neither for a change nor for a second page of its feed."""
        is_old = str(self._match_id).isdecimal() and int(self._match_id) != document["id"]
        return int(document["id"]) if is_old else self._match_id

    def _rows(self, name: int | str, since: int, sequence: int) -> list[Document]:
        """The rest of the feed, as of this sequence at least: a process that is a moment behind lacks rows which no
        later delta would bring."""
        rows: list[Document] = []
        while True:
            page = self._client.events(name, since, limit=EVENT_PAGE, patience=ONCE).data
            if page["_metadata"]["sequence"] < sequence:
                raise _behind(f"the feed is at {page['_metadata']['sequence']}, the match at {sequence}.")
            rows += page["events"]
            if not page["has_more"] or page["next_since"] <= since:
                return rows
            since = page["next_since"]

    def _has_turned(self, answer: Answer) -> bool:
        """Is there more to learn than a delta tells? It speaks of the match's data only.

        Not of its lifecycle, which changes when it is paused, resumed and over. A field that is removed is shown empty
        by the whole match. And two matches that turned out to be one are told under both names from then on, by the
        numbers of one of them.
        """
        assert self._document is not None
        told, states = answer.data, {answer.freshness.state, self._freshness.state}
        is_another = told.get("id", self._document.get("id")) != self._document.get("id")
        is_partial = bool(told.get("removed")) or "status" in (told.get("changed") or {})
        return is_another or is_partial or (len(states) == 2 and "paused" in states)


def _behind(words: str, retry_after: float | None = None) -> Unreachable:
    error = Unreachable(f"The server is behind what it told before: {words}")
    error.retry_after = retry_after or 1.0
    return error


def follow(
    client: Reads,
    match_id: int | str,
    *,
    sleep: Callable[[float], object],
    after: int = 0,
    every_look: bool = False,
    final_wait: float = 60.0,
) -> Iterator[Change]:
    """Every change, once, until the match is final and one more look after `final_wait` seconds has brought nothing.

    The first change is the whole match with the whole feed; with `after` (a change's `next_since`) only the rows since
    then. A state that turns (fresh, stale, ...) is told too. `every_look`: also when there is nothing new, and when
    there is trouble, so that you can show it. Never asks before the server has read its source again. Trouble that
    passes is waited out, however long; anything else is raised.
    """
    follower, failures, was_final, state = Follower(client, match_id, after=after), 0, False, ""
    while True:
        try:
            change = follower.look()
        except PASSING as error:
            failures += 1
            logger.info("Following match %s: %s", match_id, error)
            if every_look:
                yield follower.troubled(error)
            sleep(min(LONGEST_TROUBLE, after_failure(error, failures, client.chance)))
            continue
        failures = 0
        if every_look or change.has_news or change.freshness.state != state:
            yield change
        state = change.freshness.state
        if change.freshness.is_final and was_final and not change.has_news:
            return
        was_final = change.freshness.is_final
        sleep(final_wait if was_final else until_next_look(change.freshness.next_update_in, client.chance))
