"""Earlier states of a match and what has changed since, as the API's description shows them."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from scraping.api import examples
from scraping.api.documents import Document, EventRow, FieldProvenance, FullMetadata, PastMetadata


class MatchDelta(Document):
    """What has changed in a match since it had the number that you say."""

    id: int
    diff_type_: Literal["initial", "update", "none"] = Field(
        alias="_diff_type",
        description="initial: you had nothing, `changed` is the whole state. update: only what differs. none: nothing.",
    )
    sequence_delta_: int = Field(alias="_sequence_delta", description="How many changes that is.")
    from_sequence: int = Field(description="What you said that you have.")
    to_sequence: int = Field(description="What you have once you have applied this. Ask with it as `since` next time.")
    changed: dict[str, Any] = Field(
        description="Fields of the match document that have another value now, each whole, spelled as they are there."
    )
    removed: list[str] = Field(description="Fields that the state has no more.")
    events: list[EventRow] = Field(description="Rows of the feed since then: added, updated, retracted.")
    has_more: bool = Field(description="There are more such rows than fit here.")
    next_since: int | None = Field(description="Where `has_more`: read on at /events with this as `since`.")
    metadata_: FullMetadata = Field(alias="_metadata")


class SnapshotItem(Document):
    """A state that the match had."""

    sequence: int
    captured_at: AwareDatetime = Field(description="When the source was read.")
    created_at: AwareDatetime = Field(description="When we wrote it: from then on it was what we served.")
    checksum: str = Field(description="SHA-256 of the payload; docs/api.md says how to check it.")
    data_source: str = Field(description="How the data came in: scraper, cache or manual.")
    scraper_id: UUID | None
    changed: list[str] = Field(description="The names of the fields in which it differs from the one before.")


class SnapshotList(Document):
    snapshots: list[SnapshotItem] = Field(description="Newest first.")
    next: str | None = Field(description="The address of the next page.")
    metadata_: FullMetadata = Field(alias="_metadata")


class SnapshotDocument(Document):
    """A state that the match had, as it is stored."""

    sequence: int
    captured_at: AwareDatetime
    created_at: AwareDatetime
    checksum: str
    data_source: str
    scraper_id: UUID | None
    payload: dict[str, Any] = Field(description="The state; `checksum` is of this, with sorted keys.")
    provenance: dict[str, FieldProvenance] = Field(description="By field: whose word it was.")
    metadata_: PastMetadata = Field(alias="_metadata")


_THEN = {
    "captured_at": "2025-11-22T15:23:47.120Z",
    "created_at": "2025-11-22T15:23:47.130Z",
    "scraper_id": "0b6f9bd6-65d2-44cc-9d0f-6cbe9c1d8a55",
}
_ROW = {
    "sequence": 212,
    "checksum": "5c1d4e1a5c2b0f7d0a4c6a6a8f5b0b8b6f4d9c0f3f6f7a1f7ce9d2c9b7f4a1e0",
    "data_source": "scraper",
    **_THEN,
}
_STATE = {
    name: value
    for name, value in examples.MATCH.items()
    if name not in {"id", "match_id", "keys", "domain_id", "lifecycle", "sequence", "_metadata"}
}
DELTA_EXAMPLE: dict[str, Any] = {
    "id": 123,
    "_diff_type": "update",
    "_sequence_delta": 1,
    "from_sequence": 211,
    "to_sequence": 212,
    "changed": {"score": examples.SCORE, "innings": examples.INNINGS, "last_event": examples.LAST_EVENT},
    "removed": [],
    "events": [examples.EVENT],
    "has_more": False,
    "next_since": None,
    "_metadata": examples.FULL_METADATA,
}
SNAPSHOTS_EXAMPLE: dict[str, Any] = {
    "snapshots": [{**_ROW, "changed": ["innings", "last_event", "score"]}],
    "next": None,
    "_metadata": examples.FULL_METADATA,
}
SNAPSHOT_EXAMPLE: dict[str, Any] = {
    **_ROW,
    "payload": _STATE,
    "provenance": examples.PROVENANCE,
    "_metadata": examples.PAST_METADATA,
}
