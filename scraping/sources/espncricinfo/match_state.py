"""The match state of a page: teams, innings, status, result, and the events of its balls."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scraping.errors import SchemaBreak
from scraping.payloads import (
    Event,
    Innings,
    MatchState,
    Phase,
    Score,
    Side,
    SideScore,
    Sport,
    Status,
    Team,
    Teams,
    Toss,
    score_of,
)
from scraping.sources import cricket, parsing
from scraping.sources.cricket import overs_text
from scraping.sources.espncricinfo import schemas
from scraping.sources.espncricinfo.deliveries import PlayedInnings, deliveries, events_of
from scraping.sources.espncricinfo.schemas import Brief, Inning, Page
from scraping.sources.parsing import note_unrecognized, validated

SIDES: tuple[Side, Side] = ("team_a", "team_b")
_TOTAL = re.compile(r"(?P<runs>\d{1,4})(?:/(?P<wickets>\d{1,2}))?(?P<declared>d?)", re.ASCII)
_OVERS = re.compile(r"(?P<overs>\d{1,3}(?:\.\d)?)(?:/\d{1,3})? ov", re.ASCII)
_CHOICES: dict[int, Any] = {1: "bat", 2: "field"}
_STATES = {"PRE": Status.UPCOMING, "LIVE": Status.LIVE, "POST": Status.COMPLETED}
_ENDED = re.compile(r"result|no result|abandoned|match (?:tied|drawn|abandoned)", re.IGNORECASE)
_PLACEHOLDER = "{{"  # the page's own script writes how long it is until the start


def innings_in(data: Mapping[str, Any], *, schema: str, url: str) -> PlayedInnings:
    """Returns the innings that have begun, super overs last: some pages also list the innings to come."""

    def played(listed: Iterable[Inning] | None) -> list[Inning]:
        begun = (one for one in listed or () if one.is_batted is not False and one.runs is not None)
        return sorted(begun, key=lambda one: one.number)

    page = validated(Page[schemas.Innings], data, schema=schema, url=url, needed=schemas.INNINGS_NEED)
    content = page.content or schemas.Innings()
    regular = played(content.innings)
    numbered = dict(enumerate((*regular, *played(content.super_overs)), start=1))
    return PlayedInnings(numbered, len(regular))


def squads_in(data: Mapping[str, Any], *, schema: str, url: str) -> list[schemas.Squad]:
    content = validated(Page[schemas.Squads], data, schema=schema, url=url).content
    return (content and content.match_players and content.match_players.squads) or []


def events_in(data: Mapping[str, Any], innings: PlayedInnings, *, url: str) -> tuple[tuple[Event, ...], bool]:
    """Returns the balls of the page, and whether it has a list of them: the scorecard has a few, and no list."""
    people = [one.player for squad in squads_in(data, schema=schemas.MATCH, url=url) for one in squad.players or ()]
    for inning in innings.by_number.values():
        people += [card.player for card in (*(inning.batsmen or ()), *(inning.bowlers or ()), *(inning.falls or ()))]
    names = {player.id: parsing.text(player.long_name, 120) for player in people}
    page = validated(Page[schemas.Commentary], data, schema=schemas.COMMENTARY, url=url)
    said = page.content or schemas.Commentary()
    balls = deliveries(innings, said)
    has_list = bool(said.recent) or bool(said.comments) or any(one.is_counted for one in balls)
    return events_of(balls, names, innings.by_number), has_list


def state_of(match: schemas.Match, played: PlayedInnings, events: Sequence[Event]) -> tuple[MatchState, bool]:
    """Returns the state, and whether it is partial: the header has totals where the innings are missing."""
    scored = _innings(match, played)
    totals = _totals(match)
    has_play = parsing.has_play(scored) or bool(totals)
    status, phase, result = status_and_phase(match, has_play=has_play)
    innings = () if status is Status.UPCOMING else scored
    is_partial = not innings and bool(totals) and status is not Status.UPCOMING
    team_a, team_b = (team_of(side.team) for side in match.teams)
    round_name = parsing.text(match.title, 120)
    series = parsing.text(match.series.long_name or match.series.name, 200)
    metadata = {"series": series, "match_type": parsing.text(match.format, 40), "round": round_name}
    state = MatchState(
        sport=Sport.CRICKET,
        title=parsing.text(", ".join(filter(None, (f"{team_a.name} v {team_b.name}", round_name)))),
        status=status,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=Score(**totals) if is_partial else score_of(innings, with_super_overs=True),
        innings=innings,
        current_innings=_current(match, played) if innings else None,
        toss=_toss(match),
        venue=", ".join(filter(None, (parsing.text(match.ground, 200), parsing.text(match.town, 100)))),
        start_time=parsing.iso_moment(match.start_time),
        last_event=cricket.last_event_of(events),
        result=result,
        metadata={name: value for name, value in metadata.items() if value},
    )
    return state, is_partial


def team_of(team: schemas.Team) -> Team:
    return Team(name=parsing.text(team.long_name, 120), short_name=parsing.text(team.abbreviation, 24))


def side_in(match: schemas.Match, team: schemas.TeamReference) -> Side | None:
    """Returns the side of a team by the site's internal number, else by its public one; None for a third team."""
    for name, side in zip(SIDES, match.teams, strict=True):
        if None not in (side.team.id, team.id):
            is_same = side.team.id == team.id
        else:
            is_same = team.object_id is not None and side.team.object_id == team.object_id
        if is_same:
            return name
    return None


def _innings(match: schemas.Match, played: PlayedInnings) -> tuple[Innings, ...]:
    """Only the header's score marks declared innings: "421/5d & 130"."""
    found: list[Innings] = []
    printed = {name: parsing.text(side.score, 60).split("&") for name, side in zip(SIDES, match.teams, strict=True)}
    for number, inning in played.by_number.items():
        side = side_in(match, inning.team)
        if side is None:
            stated = f"{inning.team.id} ({inning.team.object_id})"
            message = f"{schemas.MATCH}: content.innings[].team.id is {stated}, none of the match's two"
            raise SchemaBreak(message, selector="content.innings[].team.id")
        own = printed[side].pop(0).strip() if printed[side] else ""
        total = _TOTAL.match(own)
        is_super_over = number > played.regular
        found.append(
            Innings(
                number=number,
                team=side,
                runs=inning.runs or 0,
                wickets=inning.wickets or 0,
                overs=overs_text(inning.overs or 0, inning.per_over),
                is_declared=bool(total and total["declared"]) and not is_super_over,
                is_super_over=is_super_over,
                target=inning.target or None,
            )
        )
    return tuple(found)


def _totals(match: schemas.Match) -> dict[str, SideScore]:
    found: dict[str, SideScore] = {}
    for name, side in zip(SIDES, match.teams, strict=True):
        total = _TOTAL.match(parsing.text(side.score, 60).rpartition("&")[2].strip())
        if total is None:
            continue
        overs = _OVERS.search(parsing.text(side.score_info, 60))
        found[name] = SideScore(
            runs=int(total["runs"]),
            wickets=int(total["wickets"] or cricket.ALL_OUT),
            overs=overs_text(float(overs["overs"])) if overs else None,
        )
    return found


def _current(match: schemas.Match, played: PlayedInnings) -> int:
    """Returns the last super over if there is one, else the stated innings, else the last one."""
    last = len(played.by_number)
    if last > played.regular:
        return last
    stated = [number for number, one in played.by_number.items() if one.number == match.live_inning]
    marked = [number for number, one in played.by_number.items() if one.is_current]
    return (stated or marked or [last])[-1]


def _toss(match: schemas.Match) -> Toss | None:
    if match.toss_winner_id is None:
        return None
    winner = next((side.team for side in match.teams if side.team.id == match.toss_winner_id), None)
    if winner is None:
        note_unrecognized("match.tossWinnerTeamId", match.toss_winner_id)
        return None
    if match.toss_choice is not None and match.toss_choice not in _CHOICES:
        note_unrecognized("match.tossWinnerChoice", match.toss_choice)
    return Toss(winner=parsing.text(winner.long_name, 120), decision=_CHOICES.get(match.toss_choice or 0, ""))


def status_and_phase(match: Brief, *, has_play: bool) -> tuple[Status, Phase, str]:
    status = _STATES.get(match.state.upper())
    if status is None:
        note_unrecognized("match.state", match.state)
        status = Status.LIVE if has_play else Status.UPCOMING
    said, sentence = parsing.plain(match.status_english or match.status), parsing.plain(match.status_text)
    said = "" if _PLACEHOLDER in said else said
    final = "" if _PLACEHOLDER in sentence else sentence
    if match.is_cancelled:
        return Status.ABANDONED, Phase.FINISHED, final or "Match cancelled"
    if not has_play and status is not Status.LIVE and cricket.POSTPONED.search(f"{said} {sentence}"):
        return Status.UPCOMING, Phase.POSTPONED, ""
    is_ended = status is Status.COMPLETED or bool(_ENDED.fullmatch(said))
    if is_ended or cricket.result_in(sentence, is_tie_final=not match.is_super_over):
        is_off = cricket.is_called_off(sentence) or (is_ended and cricket.is_called_off(said))
        return (Status.ABANDONED if is_off else Status.COMPLETED), Phase.FINISHED, final
    phase = cricket.phase_in(said)
    if status is Status.UPCOMING:
        return status, phase or Phase.SCHEDULED, ""
    if phase is None and said.lower() not in ("", "live"):
        note_unrecognized("match.status", said)
    return status, phase or Phase.PLAY, ""
