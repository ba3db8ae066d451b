"""Following a match: conditional reads of the match, and of its event feed after each change.

Guards a consumer against gaps and duplicates: a poll that fails changes nothing and is repeated from the same place,
and event rows are counted by their ids. Deltas are not used: unlike the match, they lack lifecycle and merges.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import httpx

from victoryline_client.responses import ApiResponse, Document, Freshness, Problem

MAX_TIMES_BEHIND = 5


@dataclass(frozen=True, kw_only=True)
class Change:
    """Result of one poll. `changed` has new values of the document, `events` new rows of the feed. `error`: the poll
    failed, and the rest is the last known state. `next_since` continues the feed after a restart of the consumer."""

    document: Document = field(default_factory=dict)
    freshness: Freshness = field(default_factory=Freshness)
    changed: Document = field(default_factory=dict)
    events: tuple[Document, ...] = ()
    next_since: int = 0
    error: httpx.HTTPError | None = None

    @property
    def has_changes(self) -> bool:
        return bool(self.changed or self.events)


class Follower:
    """State of one followed match; `read` is Client.match. For one thread only."""

    def __init__(self, read: Callable[..., ApiResponse], match_id: int | str, after: int) -> None:
        self._read, self._match_id, self._times_behind = read, str(match_id), 0
        self.last = Change(next_since=after)

    def poll(self) -> Change:
        """Reads the changes once. After an error the state is as before."""
        response = self._read(self._match_id, attempts=1)
        try:
            self.last = self._compare(response)
        except Problem as error:
            raise (self._behind(error.detail) if error.status in (409, 410) else error) from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise httpx.RemoteProtocolError("The response is not a match of VictoryLine: check the address.") from error
        self._times_behind = 0
        return self.last

    def _compare(self, response: ApiResponse) -> Change:
        before, after = self.last.document, self.last.next_since
        document = {name: value for name, value in response.data.items() if name != "_metadata"}
        if document == before:
            return replace(self.last, freshness=response.freshness, changed={}, events=())
        # A match that was merged into another one has no feed of its own: the other one's id and feed are used.
        match_id = str(document["id"]) if self._match_id.isdecimal() else self._match_id
        if match_id != self._match_id or document["id"] != before.get("id", document["id"]):
            after = 0
        elif document["sequence"] < before.get("sequence", 0):
            raise self._behind(f"the match is at {document['sequence']}, it was at {before['sequence']}.")
        rows = self._read_events(match_id, after, document["sequence"])
        self._match_id = match_id
        return Change(
            document=document,
            freshness=response.freshness,
            changed={name: value for name, value in document.items() if name not in before or before[name] != value},
            events=tuple(rows),
            next_since=max((after, *(row["id"] for row in rows))),
        )

    def _behind(self, reason: str) -> httpx.RemoteProtocolError:
        """Returns a temporary error: a process of the server may be late. If the server stays behind, it was restored
        from a backup, where row ids are used again: then the match is read from the start."""
        self._times_behind += 1
        if self._times_behind >= MAX_TIMES_BEHIND:
            self.last = Change()
        return httpx.RemoteProtocolError(f"The server is behind its earlier responses: {reason}")

    def _read_events(self, match_id: str, since: int, sequence: int) -> list[Document]:
        """Reads the feed to its end. A feed that is older than the match lacks rows, which would be lost."""
        rows: list[Document] = []
        has_more = True
        while has_more:
            page = self._read(match_id, "events", since=since, limit=100, attempts=1).data
            if page["_metadata"]["sequence"] < sequence:
                raise httpx.RemoteProtocolError("The server is behind its earlier responses: the feed lacks rows.")
            rows += page["events"]
            has_more, since = page["has_more"] and page["next_since"] > since, page["next_since"]
        return rows
