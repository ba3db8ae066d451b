"""HTML fragments of a match page. Class names and the order of spans are those of the real site."""

from __future__ import annotations

from html import escape
from typing import Any

from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.sites.crex.ball_codes import code
from stadium.sites.crex.display_fields import comment


def header(match: Match, state: CricketState, fields: dict[str, Any]) -> str:
    """The spans of the second team are in the reverse order."""
    return f"""<div class="team-header">
<div class="team-inning"><div class="team-img pdl-0"><img alt="team important image" src="{fields["team1flag"]}"></div>
<div class="team-content"><div class="team-name team-1"> {escape(fields["team1"])} <span class="inning-f"> </span></div>
<div class="team-score"><div class="runs f-runs">
<span>{fields["score1"]}</span><span>{_overs(fields["over1"])}</span></div></div></div></div>
<div class="team-result"><div class="result-box">
<span class="font3 font4"> {escape(result_box(state))} </span></div></div>
<div class="team-inning second-inning"><div class="team-content second-team">
<div class="team-name team-2 text-right"><span class="inning-f"> </span><div> {escape(fields["team2"])}</div></div>
<div class="team-score text-right"><div class="runs second-innings">
<span>{_overs(fields["over2"])}</span><span>{fields["score2"]} </span></div></div></div>
<div class="final-result blinking2 des-none"> {escape(comment(match, state))} </div>
<div class="team-img m-none"><img alt="team image" src="{fields["team2flag"]}"></div></div>
<div class="team-run-rate"><span class="title">CRR :</span><span class="data">{fields["crr"]}</span></div></div>"""


def _overs(text: str) -> str:
    return f"({text})" if text else ""


def result_box(state: CricketState) -> str:
    if state.is_over:
        return f"{state.result_long} 🏆" if " won " in state.result_long else state.result_long
    if state.is_paused and state.notice:
        return state.notice.text
    return code(state.last_ball) if state.last_ball else ""


def players(fields: dict[str, Any]) -> str:
    if "bname" not in fields:
        return "<app-match-live-player></app-match-live-player>"
    batters = "".join(_batter(fields, place) for place in (1, 2))
    return f"""<app-match-live-player>{batters}
<div class="batsmen-partnership"><div class="bowler"><div class="circle-strike"></div></div>
<div class="batsmen-info-wrapper"><div class="batsmen-name">
<a href="/crex/player/{fields["bnameHead"]}"><p>{fields["bname"]}</p></a></div>
<div class="batsmen-score bowler"><p>{fields["bwr"]}</p><p>({fields["bover"]})</p></div></div></div>
</app-match-live-player>
<div class="p-lw-card"><div class="p-ship"><span>P'ship : </span>
<span>{fields["partnerruns"]}({fields["partnerballs"]})</span></div>{_last_wicket(fields)}</div>"""


def _batter(fields: dict[str, Any], place: int) -> str:
    strike = '<span class="circle-strike-icon"></span>' if fields[f"os{place}"] else ""
    return f"""<div class="batsmen-partnership"><div class="batsmen-info-wrapper"><div class="batsmen-name">
<a href="/crex/player/{fields[f"pnameHead{place}"]}-{fields[f"p{place}f"]}"><p>{fields[f"pname{place}"]}</p></a>
{strike}</div>
<div class="batsmen-score"><p>{fields[f"run{place}"]}</p><p>{fields[f"ball{place}"]}</p></div></div></div>"""


def _last_wicket(fields: dict[str, Any]) -> str:
    if "lwname1" not in fields:
        return ""
    return (
        f'<div class="l-wicket"><span>Last Wkt : </span><a href="/crex/player/{fields["lwSlug"]}-{fields["lwfkey"]}">'
        f"<span>{fields['lwname1']}</span></a><span> {fields['lwrun1']}{fields['lwball1']}</span></div>"
    )


def playing_eleven(match: Match, state: CricketState) -> str:
    """The players of both teams, from the toss on."""
    if state.phase == "scheduled":
        return ""
    names = (player.name for team in match.teams for player in team.players)
    rows = "".join(
        f'<div class="playingxi-card-row"><div class="player-name">{escape(name)}</div></div>' for name in names
    )
    return f'<div class="playingxi">{rows}</div>'


def overs_strip(fields: dict[str, Any]) -> str:
    slides = "".join(_slide(over) for over in fields["lastovers"])
    return (
        f'<app-overs-timeline><div class="overs"><div id="slideOver" class="overs-timeline">{slides}'
        "</div></div></app-overs-timeline>"
    )


def _slide(over: dict[str, Any]) -> str:
    balls = "".join(
        f'<div class="ml-o-b-{text.lower()} over-ball"> {text} </div>' for text in map(str, over["overinfo"])
    )
    return (
        f'<div class="overs-slide"><div class="content"><span>{over["over"]}</span>{balls}&nbsp; '
        f'<div class="total"> = {over["total"]}</div></div></div>'
    )


def commentary(items: list[dict[str, Any]]) -> str:
    """Newest first, like the feed."""
    makers = {"b": _ball_card, "w": _wicket_card, "o": _over_card}
    cards = "".join(makers[item["type"]](item) for item in items)
    return f"<app-match-commentary>{cards}</app-match-commentary>"


def _ball_card(item: dict[str, Any]) -> str:
    text = item["b"]
    return (
        '<div class="cm-b-roundcard d-flex align-items-center flex-coloum"><div class="d-flex align-items-baseline">'
        f'<span class="cm-b-over"> {item["o"]} </span>'
        f'<span class="cm-b-ballupdate cm-o-b-{text.lower()} cm-o-b-all"> {text} '
        f'</span><span class="cm-b-comment-c2">{item["c2"]}</span>'
        f'<span class="cm-b-comment-c1">{escape(item["c1"])}</span></div></div>'
    )


def _wicket_card(item: dict[str, Any]) -> str:
    return (
        '<section class="player-out-wrapper"><div class="wkt-card"><span class="wkt-out-badge">OUT</span>'
        f'<div class="wkt-name-score"><span class="wkt-name">{escape(item["player"])}</span>'
        f'<span class="wkt-score">{item["r"]}'
        f'<span class="wkt-balls">({item["b"]})</span></span><span class="wkt-num-badge">Wkt #{item["wn"]}</span></div>'
        f'<p class="wkt-dismissal">{escape(item["wicketDesc"])}</p></div></section>'
    )


def _over_card(item: dict[str, Any]) -> str:
    return (
        f'<div class="cm-o-roundcard"><div class="cm-o-head"><span>OVER {item["o"]} </span>'
        f"<div>{escape(item['team'])}</div>"
        f"<div>{item['s']}</div></div></div>"
    )
