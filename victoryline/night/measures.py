"""What a night is measured by: ages, loads, errors, recoveries; exact where it can be, else sampled every 15 s."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from monitoring.models import Grade
from monitoring.queries import percentile
from scraping.errors import ErrorClass
from scraping.policies.ladder import Rung
from victoryline.night.rows import Game, Task
from victoryline.night.world import World

if TYPE_CHECKING:
    from victoryline.night.engine import Night

FRESH_SECONDS = 10.0  # NFR-011
DOWN_AFTER_SECONDS = 60.0  # and at least two of its own intervals: from then on its scraper counts as down (NFR-007)


@dataclass(frozen=True)
class Sample:
    """One look at all matches in play."""

    t: float
    p50: float
    p95: float
    max: float
    matches: int
    grade: str
    polls: tuple[int, ...]  # by source, since the sample before


@dataclass(frozen=True)
class Figures:
    matches: int
    hours: float
    polls: int
    polls_per_second_peak: float
    age_p50_s: float
    age_p95_s: float
    age_p99_s: float
    age_max_s: float
    fresh_share: float  # of the time in play: younger than ten seconds
    uptime_share: float  # of the time that matches were live
    worst_uptime_share: float  # of the scraper that fared worst
    errors: int
    retries: int
    deaths: int
    rescues: int
    pauses: int
    restarts: int
    breakers_opened: int
    source_breakers_opened: int
    rungs: dict[str, int]
    recoveries: int
    recovery_p95_s: float
    recovery_max_s: float
    grade_changes: int
    grade: str
    alerts: int
    critical_alerts: int
    messages: int
    messages_an_hour_peak: int

    def as_document(self) -> dict[str, Any]:
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()}


@dataclass
class Measures:
    world: World
    samples: list[Sample] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    rungs: Counter[str] = field(default_factory=Counter)
    breakers: Counter[str] = field(default_factory=Counter)
    grades: list[tuple[float, str]] = field(default_factory=lambda: [(0.0, Grade.HEALTHY.value)])
    recovery_seconds: list[float] = field(default_factory=list)
    deaths: int = 0
    rescues: int = 0
    pauses: int = 0
    restarts: int = 0
    _sampled_polls: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._sampled_polls = [0] * len(self.world.sites)

    def polled(self, night: Night, task: Task) -> None:
        task.watch.polls += 1
        task.watch.site.polls += 1
        task.watch.site.retries += task.is_retry

    def failed(self, night: Night, task: Task, error: ErrorClass) -> None:
        self.errors[error.value] += 1

    def breaker_changed(self, name: str, state: str) -> None:
        kind = "source" if name.endswith("_source") else "match"
        self.breakers[f"{kind} {state}"] += 1

    def heard(self, night: Night, game: Game) -> None:
        """A reading was written: how old the data had become meanwhile, exactly."""
        self._close_gap(game, night.t)

    def _close_gap(self, game: Game, until: float) -> None:
        since, heard = game.written_at, game.heard_at
        if until - heard > FRESH_SECONDS:
            game.stale_play_seconds += game.play.play_between(max(since, heard + FRESH_SECONDS), until)
            game.longest_age = max(game.longest_age, until - max(heard, game.play.start))
            intervals = [2 * one.ref.polling_interval_seconds for one in game.watches]
            down_from = max(heard, game.play.start) + max(DOWN_AFTER_SECONDS, min(intervals))
            game.down_seconds += game.play.live_between(max(since, down_from), until)

    def climbed(self, night: Night, game: Game, rung: Rung) -> None:
        self.rungs[rung.name.lower()] += 1

    def came_down(self, night: Night, game: Game) -> None:
        """From the first rung to the next reading (NFR-005), but for the time that the source, or we, were away.

        What breakers held back is left out: that is waiting on purpose, and has its own bound.
        """
        self.rungs["undone"] += 1
        site = game.watches[0].site
        if not game.was_held_back and game.heard_at > game.silent_since:
            trouble = night.trouble.overlap(game.detected_at, game.heard_at, source=site.number, after=0.0)
            self.recovery_seconds.append(max(0.0, game.heard_at - game.detected_at - trouble))

    def graded(self, t: float, grade: Grade) -> None:
        self.grades.append((t, grade.value))

    def sample(self, night: Night) -> None:
        t = night.t
        ages = [t - max(game.heard_at, game.play.start) for game in self.world.games if game.play.is_in_play(t)]
        self.ages += ages
        polls = [site.polls for site in self.world.sites]
        since = tuple(now - before for now, before in zip(polls, self._sampled_polls, strict=True))
        self._sampled_polls = polls
        self.samples.append(
            Sample(
                t,
                percentile(ages, 0.5),
                percentile(ages, 0.95),
                max(ages, default=0.0),
                len(ages),
                night.standing.grade.value,
                since,
            )
        )

    def finish(self, night: Night) -> None:
        for game in self.world.games:
            self._close_gap(game, night.t)

    def figures(self, night: Night) -> Figures:
        games, end, alarms = self.world.games, night.script.seconds, night.alarms
        in_play = sum(game.play.play_between(0.0, end) for game in games)
        live = [game.play.live_between(0.0, end) for game in games]
        down = [1 - game.down_seconds / seconds for game, seconds in zip(games, live, strict=True) if seconds > 600]
        step = self.samples[1].t - self.samples[0].t if len(self.samples) > 1 else 1.0
        ages = sorted(self.ages)
        return Figures(
            matches=len(games),
            hours=night.script.hours,
            polls=sum(site.polls for site in self.world.sites),
            polls_per_second_peak=max((sum(one.polls) / step for one in self.samples), default=0.0),
            age_p50_s=percentile(ages, 0.5),
            age_p95_s=percentile(ages, 0.95),
            age_p99_s=percentile(ages, 0.99),
            age_max_s=max(ages, default=0.0),
            fresh_share=1 - sum(game.stale_play_seconds for game in games) / max(1.0, in_play),
            uptime_share=1 - sum(game.down_seconds for game in games) / max(1.0, sum(live)),
            worst_uptime_share=min(down, default=1.0),
            errors=self.errors.total(),
            retries=sum(site.retries for site in self.world.sites),
            deaths=self.deaths,
            rescues=self.rescues,
            pauses=self.pauses,
            restarts=self.restarts,
            breakers_opened=self.breakers["match OPEN"],
            source_breakers_opened=self.breakers["source OPEN"],
            rungs=dict(sorted(self.rungs.items())),
            recoveries=len(self.recovery_seconds),
            recovery_p95_s=percentile(self.recovery_seconds, 0.95),
            recovery_max_s=max(self.recovery_seconds, default=0.0),
            grade_changes=len(self.grades) - 1,
            grade=night.standing.grade.value,
            alerts=len(alarms.all),
            critical_alerts=sum(alert.is_critical for alert in alarms.all.values()),
            messages=len(alarms.messages),
            messages_an_hour_peak=alarms.busiest_hour(),
        )
