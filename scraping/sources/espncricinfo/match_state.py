"""The match state of a page: teams, innings, status, result, and the events of its balls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from scraping.sources import parsing
from scraping.sources.espncricinfo import schemas
from scraping.sources.espncricinfo.deliveries import Names, Numbering, deliveries, events_of, last_event_of, numbering
from scraping.sources.espncricinfo.schemas import Brief
from scraping.sources.parsing import note_unrecognized, validated

SIDES: tuple[Side, Side] = ("team_a", "team_b")
_TOTAL = re.compile(r"(?P<runs>\d{1,4})(?:/(?P<wickets>\d{1,2}))?(?P<declared>d?)", re.ASCII)
_OVERS = re.compile(r"(?P<overs>\d{1,3}(?:\.\d)?)(?:/\d{1,3})? ov", re.ASCII)
_CHOICES: dict[int, Any] = {1: "bat", 2: "field"}
_ALL_OUT = 10
_STATES = {"PRE": Status.UPCOMING, "LIVE": Status.LIVE, "POST": Status.COMPLETED}
_PHASES = (
    (re.compile(r"inn(?:ing)?s? break|end of innings", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\blunch\b|\bdinner\b|\bsupper\b", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"\bstumps\b|end of day|close of play", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"\bdrinks\b|time-?\s?out", re.IGNORECASE), Phase.DRINKS),
    (re.compile(r"\brain\b|\bwet\b|bad light|delayed", re.IGNORECASE), Phase.RAIN),
    (re.compile(r"interrupt|suspend|play stopped", re.IGNORECASE), Phase.INTERRUPTED),
)
_ABANDONED = re.compile(r"abandon|no result|called off|cancel|washed out", re.IGNORECASE)
_POSTPONED = re.compile(r"postpone|reschedul", re.IGNORECASE)
_DAY_ONLY = re.compile(r"\bday \d|for the day|day's play|\bsession\b|innings abandon", re.IGNORECASE)
_WON = re.compile(r"\bwon\b(?! the toss)", re.IGNORECASE)
_LEVEL = re.compile(r"\bmatch (?:\w+ ){0,3}(?:tied?|drawn?)\b|^(?:tied|drawn)\b", re.IGNORECASE)
_ENDED = re.compile(r"result|no result|abandoned|match (?:tied|drawn|abandoned)", re.IGNORECASE)
_PLACEHOLDER = "{{"  # the page's own script writes how long it is until the start
_IN_PLAY = frozenset({"", "live"})


def innings_of(data: Mapping[str, Any], *, schema: str, url: str) -> Numbering:
    content = validated(schemas.InningsPage, {"content": data.get("content")}, schema=schema, url=url).content
    return numbering((content.innings if content else None) or (), (content.super_overs if content else None) or ())


def events_in(data: Mapping[str, Any], numbers: Numbering, names: Names, *, url: str) -> tuple[tuple[Event, ...], bool]:
    """Returns the balls of the page, and whether it has a list of them: the scorecard has a few, and no list."""
    page = validated(schemas.CommentaryPage, {"content": data.get("content")}, schema=schemas.COMMENTARY, url=url)
    said = page.content or schemas.Commentary()
    balls = deliveries(numbers, said)
    has_list = said.recent is not None or bool(said.comments) or any(one.is_counted for one in balls)
    return events_of(balls, names, dict(numbers.numbered)), has_list


def names_in(data: Mapping[str, Any], numbers: Numbering, *, url: str) -> dict[int, str]:
    """Returns the names of players by the site's numbers, from squads and scorecards."""
    page = validated(schemas.SquadsPage, {"content": data.get("content")}, schema=schemas.MATCH, url=url)
    players = page.content.match_players if page.content else None
    found = {
        one.player.id: one.player.long_name for squad in (players and players.squads) or () for one in squad.players
    }
    for _, inning in numbers.numbered:
        cards = (*(inning.batsmen or ()), *(inning.bowlers or ()))
        found |= {card.player.id: card.player.long_name for card in cards}
    return {number: parsing.text(name, 120) for number, name in found.items()}


def state_of(match: schemas.Match, numbers: Numbering, events: Sequence[Event]) -> tuple[MatchState, bool]:
    """Returns the state, and whether it is partial: the header has totals where the innings are missing."""
    scored = _innings(match, numbers)
    totals = _totals(match)
    has_play = any(one.runs or one.wickets or one.overs != "0.0" for one in scored) or bool(totals)
    status, phase, result = status_and_phase(match, has_play=has_play)
    innings = () if status is Status.UPCOMING else scored
    is_partial = not innings and bool(totals) and status is not Status.UPCOMING
    team_a, team_b = (team_of(side.team) for side in match.teams)
    round_name = parsing.text(match.title, 120)
    state = MatchState(
        sport=Sport.CRICKET,
        title=parsing.text(", ".join(filter(None, (f"{team_a.name} v {team_b.name}", round_name)))),
        status=status,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=Score(**totals) if is_partial else score_of(innings, with_super_overs=True),
        innings=innings,
        current_innings=_current(match, numbers) if innings else None,
        toss=_toss(match),
        venue=_venue(match.ground),
        start_time=parsing.iso_moment(match.start_time),
        last_event=last_event_of(events),
        result=result,
        metadata=_metadata(match, round_name),
    )
    return state, is_partial


def team_of(team: schemas.Team) -> Team:
    return Team(name=parsing.text(team.long_name, 120), short_name=parsing.text(team.abbreviation, 24))


def side_of(match: schemas.Match, team: schemas.Team) -> Side:
    """Returns the side of a team by the site's number; raises SchemaBreak for a team of neither side."""
    for name, side in zip(SIDES, match.teams, strict=True):
        if side.team.id == team.id:
            return name
    raise SchemaBreak(f"team {team.id} ({team.long_name[:60]}) is none of the match's two")


def overs_text(overs: float | None) -> str:
    """Formats 14.4 (14 overs and 4 balls) and 20 (20 overs)."""
    return f"{overs or 0:.1f}"


def _innings(match: schemas.Match, numbers: Numbering) -> tuple[Innings, ...]:
    declared = _declared(match)
    found, turns = [], dict.fromkeys(SIDES, 0)
    for number, inning in numbers.numbered:
        side = side_of(match, inning.team)
        is_super_over = number > len(numbers.innings)
        found.append(
            Innings(
                number=number,
                team=side,
                runs=inning.runs or 0,
                wickets=inning.wickets or 0,
                overs=overs_text(inning.overs),
                is_declared=(side, turns[side]) in declared and not is_super_over,
                is_super_over=is_super_over,
                target=inning.target or None,
            )
        )
        turns[side] += 1
    return tuple(found)


def _declared(match: schemas.Match) -> set[tuple[Side, int]]:
    """Returns the declared innings of each side, which only the header's score marks: "421/5d & 130"."""
    return {
        (name, turn)
        for name, side in zip(SIDES, match.teams, strict=True)
        for turn, part in enumerate(parsing.text(side.score, 60).split("&"))
        if (found := _TOTAL.match(part.strip())) and found["declared"]
    }


def _totals(match: schemas.Match) -> dict[str, SideScore]:
    """Returns each side's latest innings from the header."""
    found: dict[str, SideScore] = {}
    for name, side in zip(SIDES, match.teams, strict=True):
        total = _TOTAL.match(parsing.text(side.score, 60).rpartition("&")[2].strip())
        if total is None:
            continue
        overs = _OVERS.search(parsing.text(side.score_info, 60))
        found[name] = SideScore(
            runs=int(total["runs"]),
            wickets=int(total["wickets"] or _ALL_OUT),
            overs=overs_text(float(overs["overs"])) if overs else None,
        )
    return found


def _current(match: schemas.Match, numbers: Numbering) -> int:
    """Returns the last super over if there is one, else the stated innings, else the last one."""
    if numbers.super_overs:
        return len(numbers.numbered)
    known = [number for number, one in numbers.numbered if one.number == match.live_inning]
    marked = [number for number, one in numbers.numbered if one.is_current]
    return (known or marked or [len(numbers.numbered)])[-1]


def _toss(match: schemas.Match) -> Toss | None:
    winner = next((side.team for side in match.teams if side.team.id == match.toss_winner_id), None)
    if match.toss_winner_id is None:
        return None
    if winner is None:
        note_unrecognized("match.tossWinnerTeamId", match.toss_winner_id)
        return None
    if match.toss_choice is not None and match.toss_choice not in _CHOICES:
        note_unrecognized("match.tossWinnerChoice", match.toss_choice)
    return Toss(winner=parsing.text(winner.long_name, 120), decision=_CHOICES.get(match.toss_choice or 0, ""))


def _venue(ground: schemas.Ground | None) -> str:
    if ground is None:
        return ""
    town = ground.town.name if ground.town else ""
    return parsing.text(", ".join(filter(None, (parsing.text(ground.name, 200), parsing.text(town, 100)))))


def _metadata(match: schemas.Match, round_name: str) -> dict[str, str | int | float | None]:
    series = parsing.text(match.series.long_name or match.series.name, 200)
    found = {"series": series, "match_type": parsing.text(match.format, 40), "round": round_name}
    return {name: value for name, value in found.items() if value}


def status_and_phase(match: Brief, *, has_play: bool) -> tuple[Status, Phase, str]:
    """Returns status, phase, and the sentence that states the result."""
    status = _status_of(match, has_play=has_play)
    said, sentence = _status_text(match), parsing.plain(match.status_text)
    if match.is_cancelled:
        return Status.ABANDONED, Phase.FINISHED, _final(sentence) or "Match cancelled"
    if not has_play and status is not Status.LIVE and _POSTPONED.search(f"{said} {sentence}"):
        return Status.UPCOMING, Phase.POSTPONED, ""
    if status is Status.COMPLETED or _ENDED.fullmatch(said):
        is_off = _is_called_off(said) or _is_called_off(sentence)
        return (Status.ABANDONED if is_off else Status.COMPLETED), Phase.FINISHED, _final(sentence)
    if result := result_in(sentence, is_level_final=not match.is_super_over):
        return (Status.ABANDONED if _is_called_off(result) else Status.COMPLETED), Phase.FINISHED, result
    if status is Status.UPCOMING:
        return status, (_phase_in(said) or Phase.SCHEDULED), ""
    return status, _phase(said), ""


def result_in(sentence: str, *, is_level_final: bool = True) -> str:
    """Returns the sentence if it states the result. A tie that a super over follows is not the end."""
    if _is_called_off(sentence) or _WON.search(sentence):
        return sentence
    is_level = bool(_LEVEL.search(sentence)) and "super over" not in sentence.lower()
    return sentence if is_level and is_level_final else ""


def _status_of(match: Brief, *, has_play: bool) -> Status:
    known = _STATES.get(match.state.upper())
    if known is not None:
        return known
    note_unrecognized("match.state", match.state)
    return Status.LIVE if has_play else Status.UPCOMING


def _status_text(match: Brief) -> str:
    """Returns the site's status in English, whatever the language of the page."""
    text = parsing.plain(match.status_english or match.status)
    return "" if _PLACEHOLDER in text else text


def _final(sentence: str) -> str:
    return "" if _PLACEHOLDER in sentence else sentence


def _is_called_off(text: str) -> bool:
    """Returns whether the match is called off; a single day that is washed out is not its end."""
    return bool(_ABANDONED.search(text)) and not _DAY_ONLY.search(text)


def _phase(said: str) -> Phase:
    if said.lower() in _IN_PLAY:
        return Phase.PLAY
    phase = _phase_in(said)
    if phase is None:
        note_unrecognized("match.status", said)
    return phase or Phase.PLAY


def _phase_in(said: str) -> Phase | None:
    return next((phase for pattern, phase in _PHASES if pattern.search(said)), None)
