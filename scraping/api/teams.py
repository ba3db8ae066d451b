"""Teams with stable ids: GET /api/v1/teams and /api/v1/teams/{id}. All are read at once and kept for some seconds."""

from __future__ import annotations

import hashlib
import time

from drf_spectacular.utils import OpenApiParameter, extend_schema_view
from pydantic import Field
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from scraping.api import params
from scraping.api.bodies import Body, Values
from scraping.api.fresh_view import IF_NONE_MATCH, address, needing_cache
from scraping.documents import queries
from scraping.documents.cache import documents
from scraping.names import plain
from scraping.payloads import Sport
from victoryline.lib import availability
from victoryline.lib.http.openapi import describe
from victoryline.lib.http.views import ConditionalView, MakeBody, read_params

KEPT_SECONDS = 10  # a change of the aliases shows within this time


class TeamDocument(Body):
    id: int = Field(description="Stays, whatever sources call the team.")
    sport: Sport
    name: str
    aliases: list[str] = Field(description="Other names that mean this team.")
    former_ids: list[int] = Field(description="Ids of teams that turned out to be this one; they lead here.")


class TeamList(Body):
    teams: list[TeamDocument] = Field(description="By id.")
    next: str | None = Field(description="The address of the next page.")


class TeamsView(ConditionalView):
    def find(self, request: Request) -> Values:
        raise NotImplementedError

    def prepare(self, request: Request) -> tuple[dict[str, str], MakeBody]:
        found = needing_cache(lambda: self.find(request))()
        etag = hashlib.sha256(repr(found).encode(errors="backslashreplace")).hexdigest()[:32]
        headers = {"ETag": f'"{etag}"', "Cache-Control": f"private, max-age={KEPT_SECONDS}"}
        if availability.database.is_away():
            headers["X-Data-Source"] = "cache"
        return headers, lambda: found


@extend_schema_view(
    get=describe(
        "list_teams",
        "List teams",
        "Teams of all matches that are listed, with an id that stays and the other names that mean them. A match has "
        "their ids in `team_a_id` and `team_b_id`.",
        TeamList,
        tag="matches",
        answers={304: None},
        problems=(400,),
        parameters=[params.TeamParams, IF_NONE_MATCH],
    )
)
class TeamListView(TeamsView):
    def find(self, request: Request) -> Values:
        asked = read_params(params.TeamParams, request)
        after = params.read_cursor(asked.get("cursor"))
        wanted, limit = plain(asked.get("name", "")), asked["limit"]
        teams = [
            team
            for team in _teams()
            if (after is None or team["id"] > after[0])
            and asked.get("sport") in {None, team["sport"]}
            and ("ids" not in asked or str(team["id"]) in asked["ids"])
            and any(wanted in plain(name) for name in (team["name"], *team["aliases"]))
        ]
        last = teams[limit - 1]["id"] if len(teams) > limit else 0
        next_page = address(request, cursor=params.make_cursor((last, -last))) if last else None
        return TeamList.render(teams=teams[:limit], next=next_page)


@extend_schema_view(
    get=describe(
        "read_team",
        "Read a team",
        "Its name and the other names that mean it. An id of a team that turned out to be another one answers with "
        "that one, under its id.",
        TeamDocument,
        tag="matches",
        answers={304: None},
        problems=(404,),
        parameters=[
            OpenApiParameter(
                "team_id", {"type": "integer", "minimum": 1}, OpenApiParameter.PATH, description="Its id."
            ),
            IF_NONE_MATCH,
        ],
    )
)
class TeamView(TeamsView):
    def find(self, request: Request) -> Values:
        team_id: int = self.kwargs["team_id"]
        for team in _teams():
            if team_id == team["id"] or team_id in team["former_ids"]:
                return team
        raise NotFound(f"No team has the id {team_id}. GET /api/v1/teams lists those that are known.")


def _teams() -> list[Values]:
    def load() -> list[Values]:
        return [TeamDocument.render(None, **row) for row in queries.teams()]

    return documents.derived(("teams",), int(time.monotonic() / KEPT_SECONDS), load, what="the teams")
