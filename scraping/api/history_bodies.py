"""The bodies of answers about a match's events, history, line-ups and conflicts."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from scraping.api.bodies import ADDED, Body, FieldProvenance, FullMetadata, PastMetadata, Provisional
from scraping.documents import queries
from scraping.models import EventAction, Lineup, SnapshotType


class EventRow(Body):
    """One row of a match's feed. A correction is a row of its own: the same event_id, a higher revision."""

    id: Annotated[int, attrgetter("pk")] = Field(description="Of the row; `since` counts these.")
    event_id: Annotated[str, attrgetter("known_as")] = Field(
        description="Of the event. It stays, also if another source reports the event better."
    )
    slot: str = Field(description="Names the event whichever source reports it: b:1:11:5 is a ball. May be empty.")
    revision: Annotated[int, attrgetter("shown_revision")]
    action: EventAction
    reason: str = Field(description="Why it was corrected or retracted; empty for a new one.")
    sequence: int = Field(description="That the match had when this was written.")
    source: Annotated[str, attrgetter("source.key")] = Field(description="The source of this row.")
    kind: str = Field(
        description="dot, runs, four, six, wide, no_ball, bye, leg_bye, wicket (the delivery), dismissal (the batter), "
        "over_complete; goal, own_goal, yellow_card, red_card, substitution, period ..."
    )
    ordinal: int | None = Field(description="The place in its source's own list; orders one source's events only.")
    innings: int | None
    over: str = Field(description="Cricket, as scorecards have it: a wide repeats the number of the ball to come.")
    minute: str = Field(description="Football: 45+2.")
    runs: int | None = Field(description="With extras.")
    is_critical: bool = Field(
        description="Counts for the score or the course of the match: never left out. Commentary is not critical."
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
        description="initial: you had nothing, `changed` is the whole state. update: only what differs. none: nothing.",
    )
    sequence_delta_: int = Field(alias="_sequence_delta", description="The number of changes.")
    from_sequence: int = Field(description="The `since` of the request.")
    to_sequence: int = Field(description="The sequence of your document once this is applied: the next `since`.")
    changed: dict[str, Any] = Field(
        description="Fields of the match document that have another value now, each whole, spelled as they are there."
    )
    removed: list[str] = Field(description="Fields that the state no longer has.")
    events: list[EventRow] = Field(description="Rows of the feed since then: added, updated, retracted.")
    has_more: bool = Field(description="There are more such rows than fit here.")
    next_since: int | None = Field(description="If `has_more`: read on at /events with this as `since`.")
    metadata_: FullMetadata = Field(alias="_metadata")


# Fields of the match document that no delta names: they have no history, or are no part of the state.
NOT_IN_DELTA = frozenset(
    {
        "id",
        "match_id",
        "keys",
        "domain_id",
        "lifecycle",
        "sequence",
        "provenance",
        "provisional",
        "_metadata",
    }
)


class SnapshotItem(Body):
    """An earlier state of the match."""

    sequence: int
    captured_at: AwareDatetime = Field(description="When the source was read.")
    created_at: AwareDatetime = Field(description="When the state was written: it was served from then on.")
    checksum: str = Field(description="SHA-256 of the payload; docs/api.md says how to check it.")
    data_source: str = Field(description="How the data came in: scraper, cache or manual.")
    scraper_id: UUID | None
    changed: Annotated[list[str], queries.changed_fields] = Field(
        description="The names of the fields in which it differs from the state before."
    )


class SnapshotList(Body):
    snapshots: list[SnapshotItem] = Field(description="Newest first.")
    next: str | None = Field(description="The address of the next page.")
    metadata_: FullMetadata = Field(alias="_metadata")


class SnapshotDocument(Body):
    """An earlier state of the match, as it is stored."""

    sequence: int
    captured_at: AwareDatetime
    created_at: AwareDatetime
    checksum: str
    data_source: str
    scraper_id: UUID | None
    payload: dict[str, Any] = Field(description="The state; `checksum` is of this, with sorted keys.")
    provenance: dict[str, FieldProvenance] = Field(description="The source of each field.")
    metadata_: Annotated[PastMetadata, ADDED] = Field(alias="_metadata")


class LineupPlayerDocument(Body):
    player_id: Annotated[str, attrgetter("player_id_ext")] = Field(description="The player's id at the source.")
    name: str
    position: str = Field(description="As the source has it: G, D, M, F; BAT, BOWL, AR, WK.")
    shirt: str = Field(description="The number; empty if there is none.")
    is_starter: bool
    is_captain: bool
    rating: float | None = Field(description="The source's, if it gives one; after the match only.")
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
        description="Of the answer that it was read from: sofascore.lineups.v1."
    )
    formation: str = Field(description="Football: 4-3-3; else empty.")
    is_confirmed: bool = Field(description="The source says that this is final.")
    xi_missing: bool = Field(description="Fewer than eleven starters are known.")
    kickoff: AwareDatetime = Field(description="The start of the match as it was known at the reading.")
    captured_at: AwareDatetime = Field(description="Of a pre_match one always before the kick-off.")
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
    difference_percent: float | None = Field(description="Of the larger number; null if it is no number.")
    times_seen: int = Field(description="Readings at which they differed.")
    first_seen_at: AwareDatetime
    last_seen_at: AwareDatetime
    resolved_at: AwareDatetime | None = Field(description="When they agreed again; null while they do not.")


class MatchConflicts(Body):
    conflicts: list[ConflictRow] = Field(description="The latest first.")
    provisional: Provisional | None = Field(description="A lower score that is not confirmed yet.")
    metadata_: FullMetadata = Field(alias="_metadata")
