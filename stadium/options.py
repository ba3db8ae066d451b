"""The options of `python -m stadium` and `manage.py run_stadium`, and the configuration they make."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from stadium import told
from stadium.clock import MAX_PACE
from stadium.config import StadiumConfig
from stadium.endpoints import Site
from stadium.slots import FOOTBALL_SITES, KNOWN, slots_of

CRICKET_SITES = tuple(site for site in get_args(Site) if site not in FOOTBALL_SITES)


def add_options(parser: argparse.ArgumentParser) -> None:
    _add_address(parser)
    _add_play(parser)
    _add_replay(parser)


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to bind")
    parser.add_argument("--port", type=int, help="port to bind, 0 for any free one")
    parser.add_argument("--state-file", type=Path, help="keep the clock here, to go on after a restart")
    parser.add_argument("--port-file", type=Path, help="write the bound port here once the sites answer")
    parser.add_argument("--session-seconds", type=float, help="how long a visitor's session lasts")


def _add_play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--programme", help=KNOWN)
    parser.add_argument("--pace", "--speed", dest="pace", type=float, help="simulated seconds a second; 0 freezes play")
    parser.add_argument("--seed", type=int, help="the same seed, the same matches")
    parser.add_argument(
        "--told",
        action="append",
        metavar="SITE:HOW",
        help="how a site tells what another knows better, as espncricinfo:delay=3,mistakes=0.02,corrects_after=20,"
        "names,sides (may be given for several sites)",
    )


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replay", type=Path, metavar="DIR", help="play the Cricsheet files of a folder, or one file")
    parser.add_argument(
        "--sites", help=f"that show the replay, the one that is right first: {', '.join(CRICKET_SITES)}"
    )
    parser.add_argument("--loop", action="store_const", const=True, help="play recordings again and again")
    parser.add_argument("--at-once", action="store_const", const=True, help="start all recordings together")


def config_of(chosen: argparse.Namespace) -> StadiumConfig:
    """What was not chosen is as StadiumConfig has it. A ValueError says what makes no sense."""
    wanted = {name: value for name, value in vars(chosen).items() if value is not None}
    replay = wanted.pop("replay", None)
    if replay is not None:
        wanted["programme"] = f"replay:{replay}"
    if "sites" in wanted:
        wanted["sites"] = _sites(wanted["sites"])
    if "told" in wanted:
        wanted["told"] = tuple(_manner(text) for text in wanted["told"])
    config = StadiumConfig(**wanted)
    if not 0 <= config.pace <= MAX_PACE:
        raise ValueError(f"--pace (or --speed) must be between 0 and {MAX_PACE:g}")
    if not config.programme.startswith("replay:"):
        slots_of(config.programme)
    return config


def _sites(text: str) -> tuple[str, ...]:
    sites = tuple(dict.fromkeys(filter(None, text.split(","))))
    unknown = [site for site in sites if site not in CRICKET_SITES]
    if unknown or not sites:
        raise ValueError(f"--sites must be some of {', '.join(CRICKET_SITES)}, not {text!r}")
    return sites


def _manner(text: str) -> tuple[str, told.Manner]:
    try:
        site, manner = told.read(text)
    except ValueError as error:
        raise ValueError(f"--told {text}: {error}") from error
    if site not in get_args(Site):
        raise ValueError(f"--told must begin with one of {', '.join(get_args(Site))}, not {site!r}")
    return site, manner
