"""Fictional teams, players, grounds and competitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from stadium.matches.ids import base36


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CITIES = _names(
    "Ashgrove Brindle Caldmoor Dunhaven Eastmere Farrow Glenholt Harwick Ivorne Jarrow Kelsall Larkfield Merrow "
    "Norwold Ormsby Pellham Quarley Rushden Selwick Tarnside Ulverley Vexford Wynmoor Yarrow Zennor Aldmere Belcastle "
    "Corvale Drayford Elmshore Foxleigh Greywater Hollin Inverell Kirkmoor Lynford Moorgate Netherby Oakhurst Penrose"
)
MASCOTS = _names(
    "Badgers Comets Drifters Eagles Falcons Gulls Herons Islanders Jackals Kestrels Lancers Mariners Nomads Otters "
    "Pioneers Rovers Sparrows Tempest Voyagers Wanderers"
)
FIRST_NAMES = _names(
    "Aaro Bento Cassim Davit Elio Farid Gavan Hollis Idris Joram Kasper Lorne Mirko Nadir Orson Pavel Quill Rafe Soren "
    "Tobin Umar Viggo Wystan Yorick Zane"
)
LAST_NAMES = _names(
    "Abberley Bransome Corrand Dellamar Ettrick Fenwold Garrowby Hexley Ingmere Jessop Kantrell Lorimer Mandrake "
    "Nethercot Orbell Pascoe Quenby Ravensby Stallard Thackeray Ulrick Vantage Wetherall Yaxley Zillwood Ambrose "
    "Birtles Carraway Dunmore Ellacott Foxcroft Gillard Hathersay Irlam"
)
FOOTBALL_PLACES = _names(
    "Serrania Lagoa Verdal Montelar Ribeira Candeia Palmital Arvoredo Jurema Itapoama Guariba Cambora Boavida Rochedo "
    "Tejuara Maresia Campinho Solaria Andorinha Barrento Cascata Doralice Embira Farolim"
)
FOOTBALL_FORMS = ("{}", "Atlético {}", "União {}", "Esporte {}", "Real {}")
GROUNDS = (
    "Lantern Park",
    "Millrace Oval",
    "Copper Lane Ground",
    "Harbour Oval",
    "Thornfield",
    "Quarry Bank",
    "Saltmarsh Ground",
    "Beacon Hill Oval",
)
COMPETITIONS = (
    ("Coral Coast Premier League", "CCPL"),
    ("Harbour Super Smash", "HSS"),
    ("Highland Trophy", "HLT"),
    ("Silver River Cup", "SRC"),
    ("Northern Lights Bash", "NLB"),
    ("Amber Valley League", "AVL"),
)


OTHER_SIDES = 5_000  # added to the numbers of women's and under-19 sides


class Player(NamedTuple):
    key: str
    number: int
    name: str
    position: str = ""

    @property
    def short(self) -> str:
        first, _, last = self.name.partition(" ")
        return f"{first[0]} {last}" if last else first

    @property
    def slug(self) -> str:
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Team:
    number: int
    key: str
    name: str
    short: str
    players: tuple[Player, ...]

    @property
    def slug(self) -> str:
        return slug(self.name)

    def other_side(self, name: str, short: str) -> Team:
        """Returns another side of the same club, with the same players and keys of its own."""
        number = self.number + OTHER_SIDES
        key = str(int(self.key) + OTHER_SIDES) if self.key == str(3000 + self.number) else base36(400 + number)
        return replace(self, number=number, key=key, name=name, short=short)


_WITHOUT_ACCENTS = str.maketrans("áãâéêíóôõúçÁÉÍÓÚ", "aaaeeiooouc" + "AEIOU")


def other_name(team: Team, suffix: str) -> str:
    """Returns the name that another site uses: without accents, and with a suffix such as FC."""
    return f"{team.name.translate(_WITHOUT_ACCENTS)} {suffix}"


def other_short(team: Team) -> str:
    return "".join(char for char in team.name.translate(_WITHOUT_ACCENTS) if char.isalnum())[:3].upper()


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def slug(text: str) -> str:
    plain = text.lower().translate(_WITHOUT_ACCENTS)
    return "-".join("".join(char if char.isalnum() else " " for char in plain).split())


CRICKET_TEAMS = len(CITIES) * len(MASCOTS)
FOOTBALL_TEAMS = len(FOOTBALL_PLACES) * len(FOOTBALL_FORMS)


@cache
def cricket_team(number: int) -> Team:
    city = CITIES[number % len(CITIES)]
    mascot = MASCOTS[(number // len(CITIES) + number) % len(MASCOTS)]
    players = tuple(_player(number * 11 + i, base36(500 + number * 11 + i)) for i in range(11))
    return Team(number, base36(400 + number), f"{city} {mascot}", _short(city, mascot), players)


def _short(city: str, mascot: str) -> str:
    return (city[0] + city[2] + mascot[0]).upper()


@cache
def football_team(number: int) -> Team:
    place = FOOTBALL_PLACES[number % len(FOOTBALL_PLACES)]
    form = FOOTBALL_FORMS[number % len(FOOTBALL_FORMS)]  # 24 places and 5 forms: all 120 pairs come up
    positions = "GDDDDMMMMFF" + "GDDMMMFF"
    players = tuple(
        _player(7000 + number * len(positions) + i, str(i + 1), position) for i, position in enumerate(positions)
    )
    name = form.format(place)
    code = (name[0] + place[1:3] if form != "{}" else place[:3]).upper()
    return Team(number, str(3000 + number), name, code, players)


def substitute(team: Team) -> Player:
    """Returns the twelfth player of a cricket team."""
    return _player(9_000 + team.number, base36(40_000 + team.number))


def _player(number: int, key: str, position: str = "") -> Player:
    first = FIRST_NAMES[(number * 7 + number // 25) % len(FIRST_NAMES)]
    last = LAST_NAMES[(number * 5 + number // 34) % len(LAST_NAMES)]
    return Player(key, 100_000 + number, f"{first} {last}", position)
