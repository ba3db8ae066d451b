"""What is on the board right now."""

from __future__ import annotations

from aiohttp import web

from stadium.board import markup
from stadium.board.skins import Skin, skin_of
from stadium.context import STADIUM, Stadium
from stadium.crex.routes import feed_book
from stadium.programme import Match


def skin(stadium: Stadium, key: str = "") -> Skin:
    """The skin of a match's page, or of the list; a redesign shows in pages that are open, too."""
    target, path = ("page", f"/board/match/{key}") if key else ("list", "/board/")
    wall = stadium.world.clock.wall()
    fault = stadium.faults.standing("layout", site="board", target=target, path=path, match=key, wall=wall)
    return skin_of(None if fault is None else fault.value)


def board(app: web.Application, match: Match, dressed: Skin, before: int | None = None) -> str:
    """The score of now, with the newest balls or those before an id."""
    world = app[STADIUM].world
    book = feed_book(app, match)
    end = len(book.items) if before is None else book.count_until(before)
    balls = book.items[max(end - markup.BALLS_SHOWN, 0) : end][::-1]
    return markup.board(dressed, match, world.cricket(match, book.state.applied), world.start_wall(match), balls)


def clock(stadium: Stadium, dressed: Skin) -> str:
    return markup.clock(dressed, stadium.world.clock.wall())


def cards(stadium: Stadium) -> str:
    world = stadium.world
    rows = [(match, world.cricket(match, world.index(match))) for match in world.on_show("board")]
    return markup.cards(skin(stadium), rows)
