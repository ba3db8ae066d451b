"""Lists of matches: the current ones, and those of a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from pydantic import ValidationError

from scraping.errors import LayoutChanged
from scraping.payloads import DiscoveredMatch, Sport
from scraping.sources import parsing
from scraping.sources.base import ListPlan, Reading, Request
from scraping.sources.espncricinfo import schemas, site
from scraping.sources.espncricinfo.match_state import status_and_phase, team_of
from scraping.sources.espncricinfo.site import data_of
from scraping.sources.parsing import note_unrecognized, path_of

PAGE_TYPES = "text/html,application/xhtml+xml"
_DAY = "live-cricket-match-schedule-fixtures"


def plan(base_url: str) -> ListPlan:
    return ListPlan(url=f"{base_url.rstrip('/')}/{site.LIVE}", endpoints=())


def day_plan(base_url: str, day: date) -> ListPlan:
    """Requests a day's list as the stadium has it; the site's own request is not recorded."""
    request = page_request(f"{base_url.rstrip('/')}/{_DAY}?date={day.isoformat()}")
    return ListPlan(url="", endpoints=(), requests=(request,))


def page_request(url: str, name: str = "page") -> Request:
    return Request(name, url, headers={"accept": PAGE_TYPES})


def matches_of(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """Returns each match once; counts and skips invalid ones; raises LayoutChanged where there is no list."""
    data = data_of(reading.document("page"), base_url)
    listed = parsing.mapping(data.get("content")).get("matches")
    if not isinstance(listed, list):
        raise LayoutChanged(f"{schemas.LIST}: content.matches (missing)", url=base_url, evidence=str(data)[:2000])
    found = [one for row in parsing.rows(listed) if (one := _match(row, base_url)) is not None]
    if listed and not found:
        raise LayoutChanged(f"{schemas.LIST}: none of {len(listed)} matches can be read", url=base_url)
    return list({one.source_event_id: one for one in found}.values())


def _match(row: Mapping[str, Any], base_url: str) -> DiscoveredMatch | None:
    try:
        match = schemas.Brief.model_validate(row)
    except ValidationError as broken:
        note_unrecognized(schemas.LIST, path_of(broken.errors()[0]["loc"]))
        return None
    has_play = any(side.score for side in match.teams)
    status, _, _ = status_and_phase(match, has_play=has_play)
    teams = tuple(team_of(side.team) for side in match.teams if parsing.text(side.team.long_name))
    names = " v ".join(team.name for team in teams)
    return DiscoveredMatch(
        source_event_id=str(match.object_id),
        url=site.match_url(
            base_url,
            series_slug=match.series.slug,
            series_id=match.series.object_id,
            slug=match.slug,
            match_id=match.object_id,
        ),
        title=parsing.text(", ".join(filter(None, (names, parsing.text(match.title, 120))))),
        sport=Sport.CRICKET,
        status=status,
        start_time=parsing.iso_moment(match.start_time),
        teams=teams if len(teams) == 2 else (),
        series=parsing.text(match.series.long_name or match.series.name),
    )
