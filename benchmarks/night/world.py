"""The surroundings of a night, made from its seed: sources with limits and latencies, and matches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.night.faults import USUAL, Fault, Faults, Targets, draw_faults
from benchmarks.night.timelines import FORMATS, Timeline
from scraping.models import Source
from scraping.payloads import DiscoveredMatch, MatchState, Payload, Score, SideScore, Sport, Team, Teams

BEGIN = datetime(2026, 1, 10, 16, 0, tzinfo=UTC)
LISTED_BEFORE_SECONDS = 1800.0  # a source lists a match so long before its start
WORKERS = 2
SECOND_SOURCE_SHARE = 0.3  # of the matches
SHORT_HOURS = 2.0  # a shorter night has a shorter quiet time, and source breakers with a shorter cool-down
SHORT_QUIET_SECONDS, QUIET_SECONDS = 720.0, 2400.0
SHORT_COOLDOWN_SECONDS = 120.0
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu", "shan", "wor")


@dataclass(frozen=True, kw_only=True)
class Script:
    """The options of a night. The seed decides everything else."""

    seed: int = 1
    matches: int = 6
    hours: float = 0.5
    faults: str = USUAL
    given: tuple[Fault, ...] | None = None  # these faults instead of drawn ones

    @property
    def seconds(self) -> float:
        return self.hours * 3600.0

    @property
    def is_short(self) -> bool:
        return self.hours < SHORT_HOURS

    @property
    def faults_over_at(self) -> float:
        return self.seconds - (SHORT_QUIET_SECONDS if self.is_short else QUIET_SECONDS)


@dataclass(frozen=True)
class SimulatedMatch:
    number: int
    title: str
    teams: tuple[Team, Team]
    timeline: Timeline
    sources: tuple[int, ...]

    @property
    def event_id(self) -> str:
        """The id of the match at each of its sources."""
        return str(1000 + self.number)


@dataclass(frozen=True)
class SimulatedSource:
    number: int
    key: str
    latency: float  # seconds, median
    max_concurrency: int
    min_interval_seconds: float

    @property
    def base_url(self) -> str:
        return f"https://{self.key}.example"

    def row(self) -> Source:
        return Source(
            key=self.key,
            name=self.key.title(),
            sport=Sport.CRICKET.value,
            base_url=self.base_url,
            adapter="simulated",
            max_concurrency=self.max_concurrency,
            burst_allowance=self.max_concurrency,
            min_interval_seconds=self.min_interval_seconds,
        )


class World:
    def __init__(self, script: Script) -> None:
        rng = random.Random(script.seed)
        number = rng.randint(2, 3)
        self.matches = [_match(index, number, script, rng) for index in range(script.matches)]
        load = Counter(source for match in self.matches for source in match.sources)
        self.sources = [_source(index, load[index], rng) for index in range(number)]
        targets = Targets(number, script.matches, WORKERS, script.faults_over_at)
        self.faults = Faults(draw_faults(script.faults, targets, rng) if script.given is None else script.given)
        self.match_by_id = {match.event_id: match for match in self.matches}
        self.source_by_key = {source.key: source for source in self.sources}

    def listed(self, base_url: str, seconds: float) -> Iterator[DiscoveredMatch]:
        """Yields the list of matches that a source shows."""
        source = next(source for source in self.sources if source.base_url == base_url)
        for match in self.matches:
            timeline = match.timeline
            if source.number in match.sources and timeline.start - LISTED_BEFORE_SECONDS <= seconds < timeline.end:
                yield DiscoveredMatch(
                    source_event_id=match.event_id,
                    url=f"{base_url}/match/{match.event_id}",
                    title=match.title,
                    sport=Sport.CRICKET,
                    status=timeline.state_at(seconds).status,
                    start_time=moment(timeline.start),
                    teams=match.teams,
                )


def moment(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def payload_of(match: SimulatedMatch, source_key: str, seconds: float) -> Payload:
    """Returns the match as a source shows it. The score is the number of changes so far."""
    state = match.timeline.state_at(seconds)
    return Payload(
        source=source_key,
        captured_at=moment(seconds),
        source_event_id=match.event_id,
        state=MatchState(
            sport=Sport.CRICKET,
            title=match.title,
            status=state.status,
            phase=state.phase,
            teams=Teams(team_a=match.teams[0], team_b=match.teams[1]),
            score=Score(team_a=SideScore(runs=state.changes, wickets=0)),
            start_time=moment(match.timeline.start),
        ),
    )


def _match(index: int, sources: int, script: Script, rng: random.Random) -> SimulatedMatch:
    name = rng.choices(tuple(FORMATS), (0.6, 0.25, 0.15))[0]
    length = sum(period.seconds for period in FORMATS[name] if period.is_play)
    start = rng.uniform(-0.9 * length, 0.5 * script.seconds)
    home, away = (Team(name="".join(rng.choices(SYLLABLES, k=4)).capitalize()) for _ in range(2))
    places = rng.sample(range(sources), 2 if rng.random() < SECOND_SOURCE_SHARE else 1)
    return SimulatedMatch(
        index, f"{home.name} v {away.name}, {name}", (home, away), Timeline(FORMATS[name], start, rng), tuple(places)
    )


def _source(index: int, load: int, rng: random.Random) -> SimulatedSource:
    latency = rng.uniform(0.08, 0.35)
    polls_per_second = max(1, load) / 2.0
    concurrency = max(6, round(polls_per_second * latency * 6))
    interval = rng.choice((0.25, 0.25, 0.5, 1.0)) / max(1, load)  # room for twice the polls at least
    return SimulatedSource(index, f"source-{index + 1}", latency, concurrency, interval)
