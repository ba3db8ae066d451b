"""The stadium's configuration, and the command line options that it is built from."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from stadium.endpoints import Site
from stadium.matches.clock import MAX_PACE
from stadium.matches.distortion import Distortion
from stadium.matches.programme_parser import FOOTBALL_SITES, PROGRAMME_FORMATS, ReplayOptions, parse_slots
from stadium.shapes import SHAPES, checked

CRICKET_SITES = tuple(site for site in get_args(Site) if site not in FOOTBALL_SITES)


@dataclass(frozen=True, slots=True)
class StadiumConfig:
    host: str = "127.0.0.1"
    port: int = 8790
    programme: str = "demo"
    pace: float = 10.0
    seed: int = 7
    state_file: Path | None = None
    port_file: Path | None = None
    session_seconds: float = 6 * 3600.0
    sites: tuple[str, ...] = ("crex",)  # that play recordings
    at_once: bool = False
    browser_only: tuple[str, ...] = ()  # sites that accept only requests of a browser
    tls: Path | None = None
    distortions: tuple[tuple[str, Distortion], ...] = ()
    shapes: tuple[tuple[str, tuple[str, ...]], ...] = ()  # by site

    @property
    def replay(self) -> ReplayOptions:
        return ReplayOptions(self.sites, self.at_once, self.pace)


def add_options(parser: argparse.ArgumentParser) -> None:
    _add_server_options(parser)
    _add_programme_options(parser)
    _add_replay_options(parser)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to bind")
    parser.add_argument("--port", type=int, help="port to bind, 0 for any free one")
    parser.add_argument("--state-file", type=Path, help="keep the clock in this file, to continue after a restart")
    parser.add_argument("--port-file", type=Path, help="write the bound port here once the server accepts requests")
    parser.add_argument("--session-seconds", type=float, help="lifetime of a visitor's session")
    parser.add_argument("--browser-only", metavar="SITES", help="sites that refuse every client but a browser")
    parser.add_argument(
        "--tls", type=Path, metavar="FILE", help="serve HTTPS with the key and certificate of this file"
    )


def _add_programme_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--programme", help=PROGRAMME_FORMATS)
    parser.add_argument("--pace", "--speed", dest="pace", type=float, help="simulated seconds a second; 0 freezes play")
    parser.add_argument("--shape", action="append", metavar="SITE:NAME,NAME", help="; ".join(
        f"{name}: {shape.effect} ({', '.join(shape.sites)})" for name, shape in SHAPES.items()
    ))  # fmt: skip
    parser.add_argument("--seed", type=int, help="the same seed generates the same matches")


def _add_replay_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replay", type=Path, metavar="DIR", help="play the Cricsheet files of a folder, or one file")
    parser.add_argument("--sites", help=f"sites that show the replay, the exact one first: {', '.join(CRICKET_SITES)}")
    parser.add_argument("--at-once", action="store_const", const=True, help="start all recordings together")


def config_from(options: argparse.Namespace) -> StadiumConfig:
    """Raises a ValueError with a message for the command line if an option is not valid."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    replay = given.pop("replay", None)
    if replay is not None:
        given["programme"] = f"replay:{replay}"
    if "sites" in given:
        given["sites"] = _parse_sites("--sites", given["sites"], CRICKET_SITES)
    if "browser_only" in given:
        given["browser_only"] = _parse_sites("--browser-only", given["browser_only"], get_args(Site))
    if "shape" in given:
        given["shapes"] = _parse_shapes(given.pop("shape"))
    config = StadiumConfig(**given)
    if not 0 <= config.pace <= MAX_PACE:
        raise ValueError(f"--pace (or --speed) must be between 0 and {MAX_PACE:g}")
    if not config.programme.startswith("replay:"):
        parse_slots(config.programme)
    return config


def _parse_shapes(texts: list[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        site, _, names = text.partition(":")
        found[site] = checked(site, (*found.get(site, ()), *filter(None, names.split(","))))
    return tuple(found.items())


def _parse_sites(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    sites = tuple(dict.fromkeys(filter(None, text.split(","))))
    unknown = [site for site in sites if site not in known]
    if unknown or not sites:
        raise ValueError(f"{option} must be some of {', '.join(known)}, not {text!r}")
    return sites
