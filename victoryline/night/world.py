"""The world of a night, made from its seed: sources with limits, matches over the evening, workers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from scraping.matches.lifecycle import priority_of
from scraping.models import Importance, Match, MatchRef, Source
from scraping.payloads import Status
from victoryline.night.faults import QUIET_BEFORE_THE_END, USUAL, Fault, Room, draw
from victoryline.night.moments import BEGIN, moment
from victoryline.night.plays import SHAPES, Play
from victoryline.night.rows import Game, Site, Watch, Worker

IMPORTANCE = (Importance.HIGH, Importance.NORMAL, Importance.LOW)
MIX = (0.12, 0.68, 0.2)
FOUND_BEFORE = 1800.0  # a match is known half an hour before it starts, at least
LIVE_AT_ONCE = 0.8  # of all, at the busiest moment: what a source is built for


@dataclass(frozen=True, kw_only=True)
class Script:
    """What a night is asked to be; the rest is its seed's."""

    seed: int = 1
    matches: int = 24
    hours: float = 4.0
    faults: str = USUAL
    is_crowded: bool | None = None  # one source cannot read all that it has; None: the seed decides
    quiet_seconds: float = QUIET_BEFORE_THE_END  # at the end: time to heal
    given: tuple[Fault, ...] | None = None  # these faults, instead of drawn ones

    @property
    def seconds(self) -> float:
        return self.hours * 3600.0


@dataclass
class World:
    script: Script
    sites: list[Site]
    games: list[Game]
    workers: list[Worker]
    faults: list[Fault]
    is_crowded: bool  # by design: the less important wait for their turns, and are late

    @property
    def watches(self) -> list[Watch]:
        return [watch for game in self.games for watch in game.watches]


def build(script: Script) -> World:
    chance = random.Random(script.seed)  # noqa: S311 - a world, no secret
    number = chance.randint(2, 4)
    games = [_game(index, script, chance) for index in range(script.matches)]
    homes = [chance.sample(range(number), 2 if chance.random() < 0.3 else 1) for _ in games]
    load = Counter(home for at in homes for home in at)
    is_crowded = chance.random() < 0.15 if script.is_crowded is None else script.is_crowded
    sites = [_site(index, load[index], is_crowded=is_crowded and index == 0, chance=chance) for index in range(number)]
    for game, at in zip(games, homes, strict=True):
        _watch(game, [sites[home] for home in at], chance)
    workers = [Worker(index, threads=4, free=4) for index in range(chance.randint(2, 6))]
    room = Room(number, len(workers), len(games), script.seconds - script.quiet_seconds)
    drawn = draw(script.faults, room, chance) if script.given is None else list(script.given)
    return World(script, sites, games, workers, drawn, is_crowded)


def _game(index: int, script: Script, chance: random.Random) -> Game:
    shape = chance.choices(SHAPES, (0.45, 0.2, 0.1, 0.25))[0]
    start = chance.uniform(-0.3, 0.6) * script.seconds
    start = max(start, -0.5 * sum(part.seconds for part in shape.parts[:3]))
    play = Play(shape, start, chance)
    match = Match(
        pk=index + 1,
        sport=shape.sport,
        title=f"{shape.name} {index + 1}",
        start_time=moment(start),
        importance=chance.choices(IMPORTANCE, MIX)[0],
        is_importance_fixed=True,  # the rules of importance.yaml know none of these matches
        created_at=BEGIN,
    )
    match.priority = priority_of(Status.UPCOMING, match.start_time, BEGIN)
    return Game(match, play, index)


def _site(index: int, load: int, *, is_crowded: bool, chance: random.Random) -> Site:
    latency = chance.uniform(0.08, 0.35)
    polls_a_second = max(1, load) * LIVE_AT_ONCE / 2.0
    if is_crowded:  # a third of what it would take, and no less than one at a time
        latency = chance.uniform(0.4, 0.7)
        concurrency = max(1, round(polls_a_second * latency / 3))
    else:
        concurrency = max(6, round(polls_a_second * latency * 6))
    row = Source(
        pk=index + 1,
        key=f"source-{index + 1}",
        name=f"Source {index + 1}",
        max_concurrency=concurrency,
        min_interval_seconds=chance.choice((0.5, 0.5, 1.0, 2.0)),
        burst_allowance=max(3, round(concurrency * chance.uniform(0.5, 1.0))),
    )
    return Site(row, index, latency)


def _watch(game: Game, sites: list[Site], chance: random.Random) -> None:
    for site in sites:
        number = game.match.pk * 10 + site.number
        is_spare = bool(game.watches) and chance.random() < 0.5
        ref = MatchRef(
            pk=number,
            source=site.row,
            match=game.match,
            source_event_id=str(number),
            url=f"https://{site.row.key}.example/{number}",
            is_watched=not is_spare,
            created_at=BEGIN,
        )
        watch = site.watches[number] = Watch(number, ref, game, site, is_spare=is_spare)
        game.watches.append(watch)
