"""The older, cricket-only surface: GET /cricket-data/match-info/{id} and /cricket-data/live-matches."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from django.utils import timezone
from pydantic import AwareDatetime, Field
from rest_framework.exceptions import NotFound

from scraping.api.bodies import (
    ADDED,
    Body,
    DataMetadata,
    ListMetadata,
    Values,
    in_payload,
    last_event_of,
    render_match,
)
from scraping.api.fresh_view import (
    ID,
    Answer,
    Asked,
    FreshView,
    MatchReadView,
    describe_read,
    match_etag,
)
from scraping.api.match_lists import list_answer
from scraping.api.params import MaxAgeParams
from scraping.documents.cache import MAX_MATCHES
from scraping.documents.cached_match import CachedMatch
from scraping.documents.filters import MatchFilter
from scraping.documents.freshness import Freshness
from scraping.payloads import Innings, LastEvent, Phase, SideScore, Sport, Status, Team, Toss
from victoryline.lib.http.views import MakeBody


class CricketTeam(Team):
    key: str = Field(description="team_a or team_b, as in `score`.")


def _team_list(match: CachedMatch) -> list[Values]:
    teams = match.payload.get("teams") or {}
    return [{"key": side, **teams[side]} for side in ("team_a", "team_b") if teams.get(side)]


class MatchInfo(Body):
    """A cricket match, in the shape of /cricket-data."""

    matchId: Annotated[int, attrgetter("id")]  # noqa: N815  the names of this older surface
    title: str
    teams: Annotated[list[CricketTeam], _team_list]
    score: Annotated[dict[str, SideScore], in_payload("score", {})]
    status: Status
    phase: Phase
    innings: Annotated[list[Innings], in_payload("innings", [])]
    currentInnings: Annotated[int | None, in_payload("current_innings")]  # noqa: N815
    toss: Annotated[Toss | None, in_payload("toss")]
    venue: Annotated[str, in_payload("venue", "")]
    startTime: Annotated[AwareDatetime | None, attrgetter("start_time")]  # noqa: N815
    lastEvent: Annotated[LastEvent | None, last_event_of]  # noqa: N815
    result: Annotated[str, in_payload("result", "")]
    metadata_: Annotated[DataMetadata, ADDED] = Field(alias="_metadata")


class LiveMatches(Body):
    matches: list[MatchInfo]
    metadata_: ListMetadata = Field(alias="_metadata")


@describe_read(
    "read_match_info",
    "Read a cricket match",
    "The older, cricket-only shape.",
    MatchInfo,
    ID,
    MaxAgeParams,
    tag="cricket-data",
)
class MatchInfoView(MatchReadView):
    def read(self, match: CachedMatch, freshness: Freshness, asked: Asked) -> tuple[str, MakeBody]:
        if match.sport != Sport.CRICKET:
            raise NotFound(f"Match {match.id} is {match.sport}, not cricket. Read it at /api/v1/matches/{match.id}.")
        return match_etag(match), lambda: _info(match, freshness)


@describe_read(
    "list_live_matches",
    "List live cricket matches",
    "Every live cricket match in the older shape.",
    LiveMatches,
    MaxAgeParams,
    tag="cricket-data",
)
class LiveMatchesView(FreshView):
    def find(self, asked: Asked) -> Answer:
        live = MatchFilter(status=Status.LIVE, sport=Sport.CRICKET)
        found = self.page(live, limit=MAX_MATCHES).matches  # all of them: this list has no pages
        return list_answer(found, asked.get("max_age"), timezone.now(), mark="", item=_info)


def _info(match: CachedMatch, freshness: Freshness) -> bytes:
    return render_match(MatchInfo, match, _metadata=DataMetadata.of(match, freshness))
