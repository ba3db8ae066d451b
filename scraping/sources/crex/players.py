"""Line-ups (getIV4) and player figures (getSC4). Both have player keys; the tab of the page has the names.

Line-ups are squads before the toss and the eleven after it, with a number for each player's role. Figures are strings
with dots, by innings.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import STARTERS, Lineup, LineupPlayer, PlayerFigure
from scraping.sources import broken_parts, parsing
from scraping.sources.base import Reading, RefInfo, Request
from scraping.sources.broken_parts import is_broken
from scraping.sources.crex import schemas, site
from scraping.sources.crex.details import MatchDetails
from scraping.sources.crex.live import SIDES, side_at_bat
from scraping.sources.crex.schemas import SquadsResponse, scorecard_innings
from scraping.sources.crex.texts import parse_total
from scraping.sources.cricket import OTHER_SIDE, balls_per_over

SQUADS, SCORECARD = "squads", "scorecard"
_PATHS = {SQUADS: ("getIV4", site.DETAILS_TAB), SCORECARD: ("getSC4", "match-scorecard")}  # of response and tab
_BATTING = ("runs", "balls", "fours", "sixes")
_BOWLING = ("runs", "balls", "maidens", "wickets")
Values = dict[str, str | int | float | bool | None]
ROLES = {0: "WK", 1: "BAT", 2: "BOWL", 3: "AR"}


def requests(ref: RefInfo, base_url: str, name: str) -> tuple[Request, ...]:
    """Returns the requests for the response and for the page tab that shows it, which has the names of the keys."""
    path, tab = _PATHS[name]
    address = f"{site.hosts_of(base_url)[0]}/{path}?key={quote(ref.source_event_id, safe='')}"
    return (
        Request(name, address, headers=site.headers_of(base_url)),
        Request("page", site.tab_of(ref.url, tab)),
    )


def lineups(reading: Reading, details: MatchDetails) -> tuple[Lineup, ...]:
    """Returns both line-ups in the match's order; a player that cannot be read is left out.

    Raises PayloadRejected for those of another match, SchemaBreak where no player of a side can be read.
    """
    response = _response(reading, SQUADS, site.SQUADS)
    if response is None:
        return ()
    squads = parsing.validated(SquadsResponse, response, schema=schemas.SQUADS, needed=("t", "tp"))
    teams, order = tuple(squads.t.split("-")), _team_keys(details)
    if order and set(order) != set(teams):
        raise PayloadRejected(f"the squads are of another match: {'/'.join(teams)} instead of {'/'.join(order)}")
    leaders = [*squads.x.split("/"), "", "", "", ""]  # captain and keeper of the first team, then of the second
    found = {}
    for place, team in enumerate(teams):
        led = leaders[2 * place], leaders[2 * place + 1]
        playing, squad = (
            [line for line in [*text.split("/"), "", ""][place].split("-") if line] for text in (squads.tp, squads.tb)
        )
        chosen = _players(playing, led, details.people, is_starter=True)
        if playing and not chosen:
            raise SchemaBreak(f"{schemas.SQUADS}: tp (not KEY.matches.role...: {playing[0][:60]!r})")
        named = {player.player_id for player in chosen}
        others = _players(squad, led, details.people, is_starter=False)
        players = (*chosen, *(player for player in others if player.player_id not in named))
        found[team] = players, len(playing) >= STARTERS
    return tuple(
        Lineup(side=side, is_confirmed=found[team][1], players=found[team][0])
        for side, team in zip(SIDES, order or teams, strict=True)
        if found[team][0]
    )


def figures(reading: Reading, details: MatchDetails) -> tuple[PlayerFigure, ...]:
    """Returns the readable figures; raises PayloadRejected for another match's, SchemaBreak where there are none."""
    response = _response(reading, SCORECARD, site.SCORECARD)
    card = scorecard_innings(response)
    if not card:
        return ()
    # The same teams may meet again: a completed first innings must be that of the page.
    first = card.get(1)
    stated = (first and first.d) or ""
    total, printed = parse_total(stated), parse_total(details.first_innings)
    is_over = max(card) > 1 and details.innings_seen > 1
    if is_over and total and printed and (total.runs, total.wickets) != (printed.runs, printed.wickets):
        shown = f"{stated!r} instead of {details.first_innings!r}"
        raise PayloadRejected(f"the scorecard is of another match between these teams: {shown}")
    keys = _team_keys(details)
    if len(keys) != 2:
        raise LayoutChanged("no page says which teams the match has", url=reading.ref.url)
    per_over = balls_per_over(details.match_type, details.series)
    found = []
    for number, innings in card.items():
        batting = side_at_bat(innings, (keys[0], keys[1]))
        batters, bowlers = ("b", innings.b, _BATTING), ("a", innings.a, _BOWLING)
        for role, side, (field, lines, names) in (
            ("batting", batting, batters),
            ("bowling", OTHER_SIDE[batting], bowlers),
        ):
            for line in lines:
                key, values = _line(line, names)
                if not values:
                    broken_parts.note(f"innings[].{field}[]", ".".join(("KEY", *names)))
                    continue
                runs, balls = values["runs"], values["balls"]
                derived: Values = {"overs": f"{balls // per_over}.{balls % per_over}"}
                if role == "batting":
                    derived = {"strike_rate": round(runs * 100 / balls, 2) if balls else 0.0}
                figure = {"side": side, "role": role, "innings": number, "player_id": key}
                found.append(PlayerFigure(**figure, name=name_of(key, details.people), values={**values, **derived}))
    if not found and (is_broken("b") or is_broken("a")):
        message = f"{schemas.SCORECARD}: innings[].b[], innings[].a[] (no player can be read)"
        raise SchemaBreak(message, url=reading.ref.url, evidence=str(response)[:2000])
    return tuple(found)


def _response(reading: Reading, name: str, names: tuple[str, ...]) -> Any:
    document, page = reading.document(name), reading.document("page")
    if document is not None:
        return parsing.json_body(document)
    return site.embedded_response(site.page_state(page.text() if page else ""), names)


def _team_keys(details: MatchDetails) -> tuple[str, ...]:
    """Returns the keys of both teams in batting order, else in the page's; empty where they are unknown."""
    if len(details.order) == 2:
        return details.order
    return tuple(details.teams)[:2] if len(details.team_keys) == 2 else ()


def _line(line: str, names: tuple[str, ...]) -> tuple[str, dict[str, int]]:
    """Splits "KEY.runs.balls.4s.6s"; further parts are ignored. Returns no values for another text."""
    key, *numbers = line.partition("/")[0].split(".")
    values = [value for number in numbers[: len(names)] if (value := parsing.integer(number)) is not None]
    if not key or len(key) > 40 or len(values) < len(names):
        return "", {}
    return key, dict(zip(names, values, strict=True))


def name_of(key: str, people: Mapping[str, str]) -> str:
    """Returns the player's name; without one the key, which is then counted as unrecognized."""
    name = people.get(key, "")
    if not name:
        parsing.note_unrecognized("p[].f_key", key)
    return name or key


def _players(
    lines: Sequence[str], led: tuple[str, str], people: Mapping[str, str], *, is_starter: bool
) -> list[LineupPlayer]:
    read = [_player(line, led, people, is_starter=is_starter) for line in lines]
    return [player for player in read if player is not None]


def _player(line: str, led: tuple[str, str], people: Mapping[str, str], *, is_starter: bool) -> LineupPlayer | None:
    captain, keeper = led
    key, *numbers = line.split(".")
    if not key or len(numbers) < 2:
        broken_parts.note("tp" if is_starter else "tb", "KEY.matches.role")
        return None
    role = parsing.integer(numbers[1])
    if role not in ROLES:
        parsing.note_unrecognized("tp.role", numbers[1])
    return LineupPlayer(
        player_id=key[:40],
        name=name_of(key, people),
        position="WK" if key == keeper else ROLES.get(role, "") if role is not None else "",
        is_starter=is_starter,
        is_captain=key == captain,
    )
