"""The bodies of answers about a match's events, history, line-ups and conflicts."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from scraping.api.bodies import (
    ADDED,
    SERVED_AT,
    Body,
    FieldProvenance,
    FullMetadata,
    ListMetadata,
    PastMetadata,
    Provisional,
)
from scraping.documents import queries
from scraping.models import EventAction, Lineup, SnapshotType


class EventRow(Body):
    """One row of a match's feed. A correction is a row of its own: the same event_id, a higher revision."""

    id: Annotated[int, attrgetter("pk")] = Field(description="The id of the row; `since` refers to it.")
    event_id: Annotated[str, attrgetter("known_as")] = Field(
        description="The id of the event. It stays the same if another source's version of the event is served later."
    )
    slot: str = Field(description="Identifies the event across sources: b:1:11:5 is a ball. May be empty.")
    revision: Annotated[int, attrgetter("shown_revision")]
    action: EventAction
    reason: str = Field(description="Why it was corrected or retracted; empty for a new one.")
    sequence: int = Field(description="The match's sequence when the row was written.")
    source: Annotated[str, attrgetter("source.key")] = Field(description="The source of this row.")
    kind: str = Field(
        description="dot, runs, four, six, wide, no_ball, bye, leg_bye, wicket (the delivery), dismissal (the batter), "
        "over_complete; goal, own_goal, yellow_card, red_card, substitution, period ..."
    )
    ordinal: int | None = Field(description="The place in its source's own list; orders one source's events only.")
    innings: int | None
    over: str = Field(description="Cricket, as on a scorecard: a wide has the number of the next ball.")
    minute: str = Field(description="Football: 45+2.")
    runs: int | None = Field(description="With extras.")
    is_critical: bool = Field(
        description="Changes the score or the course of the match: never left out. Commentary is not critical."
    )
    description: str
    detail: dict[str, Any] = Field(description="By kind: score after it, side, player.")
    happened_at: AwareDatetime | None = Field(description="As the source reports it; null if it does not.")
    created_at: AwareDatetime = Field(description="When the row was written.")


class EventFeed(Body):
    events: list[EventRow]
    next_since: int = Field(description="The `since` of the next request.")
    has_more: bool
    metadata_: FullMetadata = Field(alias="_metadata")


class MatchDelta(Body):
    """The changes of a match since the given sequence."""

    id: int
    diff_type_: Literal["initial", "update", "none"] = Field(
        alias="_diff_type",
        description="initial: `since` was 0, `changed` is the whole state. update: the fields that differ. none: no "
        "change.",
    )
    sequence_delta_: int = Field(alias="_sequence_delta", description="The number of changes.")
    from_sequence: int = Field(description="The `since` of the request.")
    to_sequence: int = Field(
        description="The sequence of your document after the changes are applied: the next `since`."
    )
    changed: dict[str, Any] = Field(
        description="Fields of the match document with a new value, each complete, in the same format."
    )
    removed: list[str] = Field(description="Fields that the state no longer has.")
    events: list[EventRow] = Field(description="Rows of the feed since then: added, updated, retracted.")
    has_more: bool = Field(description="There are more rows than fit into this answer.")
    next_since: int | None = Field(description="If `has_more`: continue at /events with this as `since`.")
    metadata_: FullMetadata = Field(alias="_metadata")


class MatchDeltas(Body):
    matches: list[MatchDelta] = Field(
        description="Those that changed, the longest waiting first. Apply each to your document of that match. The "
        "events of a match that is new to you are in its feed, from `next_since` on."
    )
    left: list[int] = Field(description="Matches that the filters do not accept any more: they are followed no longer.")
    ahead: list[int] = Field(
        description="Matches of which this server has an earlier state than you: it is a moment behind. One that stays "
        "here was restored from a backup: read it whole."
    )
    next_since: str = Field(description="The `since` of the next request.")
    has_more: bool = Field(description="There are more changes than fit here: go on at once.")
    metadata_: ListMetadata = Field(alias="_metadata")


class SnapshotFacts(Body):
    sequence: int
    captured_at: AwareDatetime = Field(description="When the source was read.")
    created_at: AwareDatetime = Field(description="When the state was written.")
    served_at: Annotated[AwareDatetime, queries.served_at] = Field(description=SERVED_AT)
    checksum: str = Field(description="SHA-256 of the payload; docs/api.md says how to check it.")
    data_source: str = Field(description="How the data came in: scraper, cache or manual.")
    scraper_id: UUID | None


class SnapshotItem(SnapshotFacts):
    """An earlier state of the match."""

    changed: Annotated[list[str], queries.changed_fields] = Field(
        description="The names of the fields in which it differs from the state before."
    )


class SnapshotList(Body):
    snapshots: list[SnapshotItem] = Field(description="Newest first.")
    next: str | None = Field(description="The address of the next page.")
    metadata_: FullMetadata = Field(alias="_metadata")


class SnapshotDocument(SnapshotFacts):
    """An earlier state of the match, as it is stored."""

    payload: dict[str, Any] = Field(description="The state; `checksum` is of this, with sorted keys.")
    provenance: dict[str, FieldProvenance] = Field(description="The source of each field.")
    metadata_: Annotated[PastMetadata, ADDED] = Field(alias="_metadata")


class LineupPlayerDocument(Body):
    player_id: Annotated[str, attrgetter("player_id_ext")] = Field(description="The player's id at the source.")
    name: str
    position: str = Field(description="As the source has it: G, D, M, F; BAT, BOWL, AR, WK.")
    shirt: str = Field(description="The shirt number; empty if there is none.")
    is_starter: bool
    is_captain: bool
    rating: float | None = Field(description="The source's rating, if it has one; only after the match.")
    minutes: int | None


def _players(lineup: Lineup) -> list[dict[str, Any]]:
    return [LineupPlayerDocument.render(player) for player in lineup.players.all()]


class LineupDocument(Body):
    """One side as one source reported it, before the start or after the end. The two never mix."""

    side: str = Field(description="team_a or team_b, as in `score`.")
    team: Annotated[str, ADDED]
    source: Annotated[str, attrgetter("source.key")]
    snapshot_type: SnapshotType
    schema_version: Annotated[str, attrgetter("payload_schema")] = Field(
        description="Of the source's answer: sofascore.lineups.v1."
    )
    formation: str = Field(description="Football: 4-3-3; else empty.")
    is_confirmed: bool = Field(description="The source says that this is final.")
    xi_missing: bool = Field(description="Fewer than eleven starters are known.")
    kickoff: AwareDatetime = Field(description="The start of the match as it was known at the reading.")
    captured_at: AwareDatetime = Field(description="Always before the kick-off if `snapshot_type` is pre_match.")
    players: Annotated[list[LineupPlayerDocument], _players]


class XiMissing(Body):
    team_a: bool
    team_b: bool


class MatchLineups(Body):
    lineups: list[LineupDocument]
    xi_missing: XiMissing = Field(
        description="Whether no source has reported eleven starters of a side before the start."
    )
    metadata_: FullMetadata = Field(alias="_metadata")


class ConflictRow(Body):
    """Two sources report the same field differently, by more than a delay would explain."""

    id: Annotated[int, attrgetter("pk")]
    field: str = Field(description="innings.1.runs, score.team_a.goals, status, teams.team_b, toss.winner, start_time.")
    chosen_source: str = Field(description="The source whose value is served.")
    chosen_value: Any
    other_source: str
    other_value: Any
    difference_percent: float | None = Field(
        description="The difference as a share of the larger number; null if the value is not a number."
    )
    times_seen: int = Field(description="Readings at which they differed.")
    first_seen_at: AwareDatetime
    last_seen_at: AwareDatetime
    resolved_at: AwareDatetime | None = Field(description="When the sources agreed again; null while they disagree.")


class MatchConflicts(Body):
    conflicts: list[ConflictRow] = Field(description="The latest first.")
    provisional: Provisional | None = Field(description="A lower score that is not confirmed yet.")
    metadata_: FullMetadata = Field(alias="_metadata")
