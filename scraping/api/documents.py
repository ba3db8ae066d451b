"""The bodies of our answers, as the API's description shows them. `answers` builds them as plain dicts, for speed;
the tests hold the two together."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from scraping.documents.freshness import DataState
from scraping.models import EventAction, MatchLifecycle
from scraping.payloads import Innings, LastEvent, Phase, Score, SideScore, Sport, Status, Team, Teams, Toss


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DataMetadata(Document):
    """Where the data comes from and how old it is."""

    scraped_at: AwareDatetime | None = Field(description="When the source was last read successfully.")
    data_age_seconds: int | None
    scraper_id: UUID | None
    source: str = Field(description="How the data came in: scraper, cache or manual.")
    state: DataState
    next_update_in_seconds: float | None


class FullMetadata(DataMetadata):
    sequence: int


class PastMetadata(FullMetadata):
    """Of a state that a match had. `scraped_at` and the age are of that state; its `state` is final."""

    as_of: AwareDatetime | None = Field(description="What was asked for; null where it was asked for by its number.")
    captured_at: AwareDatetime = Field(description="When the source was read that brought this state.")
    created_at: AwareDatetime = Field(description="When we wrote it: from then on it was what we served.")


class Provisional(Document):
    """A score that went down. What is served stays as it was until this is confirmed, or told otherwise."""

    source: str = Field(description="Who says so.")
    since: AwareDatetime = Field(description="When we read it first.")
    readings: int = Field(description="How often in a row.")
    status: Status | None
    score: Score | None = Field(description="The score that is not believed yet.")


class ItemFreshness(Document):
    state: DataState
    age_seconds: int | None
    scraped_at: AwareDatetime | None
    next_update_in: float | None


class MatchItem(Document):
    id: int
    keys: list[str] = Field(description="The match's names at its sources, such as crex_13KM; each works as an id.")
    sport: Sport
    title: str
    status: Status
    phase: Phase
    lifecycle: MatchLifecycle
    teams: Teams | None
    score: Score | None
    start_time: AwareDatetime | None
    sequence: int
    freshness: ItemFreshness


class ListMetadata(Document):
    generated_at: AwareDatetime
    count: int
    left_out: int = Field(description="Sent in to us by somebody else, and older than your `max_age`.")
    state: DataState
    scraped_at: AwareDatetime | None
    data_age_seconds: int | None = Field(description="Of the oldest live match in the answer.")
    next_update_in_seconds: float | None = Field(description="Until the first of them is read again.")


class MatchList(Document):
    matches: list[MatchItem]
    next: str | None = Field(description="The address of the next page.")
    metadata_: ListMetadata = Field(alias="_metadata")


class OtherWord(Document):
    """What another source says of a field."""

    source: str
    value: Any = Field(description="A number as it is, anything else in a few words.")
    confidence: float
    timestamp: AwareDatetime


class FieldProvenance(Document):
    """Who said what is served, and when."""

    source: str
    confidence: float = Field(
        description="0 to 1. A source that falls behind a live match loses it; below 0.5 it is out."
    )
    timestamp: AwareDatetime = Field(description="When that source was read.")
    others: list[OtherWord] = Field(default=[], description="Sources that say something else.")
    keys: dict[str, str] = Field(default={}, description="Of metadata: which source told which key.")


class MatchDocument(Document):
    """A match in the unified schema, the same for every sport and source."""

    id: int
    match_id: str = Field(description="The first of `keys`: its name at the source that is believed most.")
    keys: list[str] = Field(description="The match's names at its sources, such as crex_13KM; each works as an id.")
    domain_id: str = Field(description="The key of the source that `match_id` is from.")
    sport: Sport
    title: str
    status: Status
    phase: Phase
    lifecycle: MatchLifecycle | None = Field(
        description="What we do with it now; null in a read of the past, which knows no such history."
    )
    teams: Teams | None
    score: Score | None
    innings: list[Innings]
    current_innings: int | None
    clock: str = Field(description="Football: the minute.")
    toss: Toss | None = Field(description="Cricket. The winner as the source names it.")
    venue: str
    start_time: AwareDatetime | None
    last_event: LastEvent | None
    result: str = Field(description="The source's sentence; empty until the match is over.")
    metadata: dict[str, Any] = Field(description="What else a source tells: series, round, match_type, season.")
    sequence: int = Field(description="Grows by one with every change of the match.")
    provenance: dict[str, FieldProvenance] = Field(default={}, description="By field; with include=provenance only.")
    provisional: Provisional | None = Field(
        default=None, description="A score that went down and is not believed yet; with include=provisional only."
    )
    metadata_: FullMetadata | PastMetadata = Field(alias="_metadata")


class EventRow(Document):
    """One row of a match's feed. A correction is a row of its own: the same event_id, a higher revision."""

    id: int = Field(description="Of the row; `since` counts these.")
    event_id: str = Field(description="Of the happening. It stays, also when another source tells it better.")
    slot: str = Field(description="Names the happening whichever source tells it: b:1:11:5 is a ball. May be empty.")
    revision: int
    action: EventAction
    reason: str = Field(description="Why it was corrected or taken back; empty for a new one.")
    sequence: int = Field(description="That the match had when this was written.")
    source: str = Field(description="Whose word this is.")
    kind: str = Field(
        description="dot, runs, four, six, wide, no_ball, bye, leg_bye, wicket (the delivery), dismissal (who is out), "
        "over_complete; goal, own_goal, yellow_card, red_card, substitution, period ..."
    )
    ordinal: int | None = Field(description="The place in its source's own list; orders one source's events only.")
    innings: int | None
    over: str = Field(description="Cricket, as scorecards have it: a wide repeats the number of the ball to come.")
    minute: str = Field(description="Football: 45+2.")
    runs: int | None = Field(description="With extras.")
    is_critical: bool = Field(
        description="Counts for the score or the course of the match: never left out. Talk is not."
    )
    description: str
    detail: dict[str, Any] = Field(description="By kind: score after it, side, player.")
    happened_at: AwareDatetime | None = Field(description="As the source tells it; null where it does not.")
    created_at: AwareDatetime = Field(description="When we wrote it.")


class EventFeed(Document):
    events: list[EventRow]
    next_since: int = Field(description="Ask for `since` this to go on.")
    has_more: bool
    metadata_: FullMetadata = Field(alias="_metadata")


class CricketTeam(Team):
    key: str = Field(description="team_a or team_b, as in `score`.")


class MatchInfo(Document):
    """A cricket match, in the shape of /cricket-data."""

    matchId: int  # noqa: N815  the names of this older surface
    title: str
    teams: list[CricketTeam]
    score: dict[str, SideScore]
    status: Status
    phase: Phase
    innings: list[Innings]
    currentInnings: int | None  # noqa: N815
    toss: Toss | None
    venue: str
    startTime: AwareDatetime | None  # noqa: N815
    lastEvent: LastEvent | None  # noqa: N815
    result: str
    metadata_: DataMetadata = Field(alias="_metadata")


class LiveMatches(Document):
    matches: list[MatchInfo]
    metadata_: ListMetadata = Field(alias="_metadata")


class LifecycleAnswer(Document):
    id: int
    title: str
    lifecycle: MatchLifecycle
    pause_until: AwareDatetime | None
    pause_reason: str
