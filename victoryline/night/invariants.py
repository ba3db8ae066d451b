"""What must hold in every night, watched while it goes on and once more at its end.

The rules look at what happens, not at what the policies say: a policy that is broken on purpose breaks them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitoring.models import Grade
from scraping.configuration.policies import Policies
from scraping.models import MatchLifecycle
from scraping.payloads import Status
from scraping.policies.breaker import CLOSED, HALF_OPEN, OPEN, BreakerView
from scraping.policies.fairness import LEAST_TOLERANCE, STARVED_INTERVALS
from scraping.policies.ladder import Rung
from scraping.policies.source_breaker import CallWindow
from victoryline.night.faults import CALM, Trouble
from victoryline.night.measures import Figures
from victoryline.night.moments import clock_time, seconds_of
from victoryline.night.rows import Game, Site, Task, Watch
from victoryline.night.world import Script

if TYPE_CHECKING:
    from victoryline.night.engine import Night

MOST_VIOLATIONS = 20  # of one night: the first ones tell
PATIENCE_TIMES = 3.0  # of the patience of whoever is starved: then he has really been forgotten
AFTERMATH_SECONDS = 180.0  # after a fault: what it held up is made good
HEALED_SECONDS = 180.0  # from the end of all trouble to a night like any other
CALM_FRESH_SHARE, CALM_UPTIME_SHARE = 0.99, 0.995  # NFR-011, NFR-007
TOLD_AFTER_SECONDS = 60.0
EPSILON = 1e-3


@dataclass(frozen=True)
class Violation:
    """What was broken, when, and the last that was heard of whoever it happened to."""

    seed: int
    t: float
    rule: str
    what: str
    log: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {clock_time(self.t)}: {self.rule}: {self.what}"]
        return "\n    ".join([*lines, *self.log])


class Rules:
    def __init__(self, trouble: Trouble, policies: Policies) -> None:
        self.violations: list[Violation] = []
        self.trouble, self.policies = trouble, policies
        self.broken: Counter[str] = Counter()
        self._probes: dict[str, set[Task]] = {}
        self._open_until: dict[str, float] = {}
        self._last_open: float = 0.0

    def _broken(self, night: Night, rule: str, what: str, game: Game | None = None) -> None:
        self.broken[rule] += 1
        if len(self.violations) < MOST_VIOLATIONS:
            log = tuple(game.log)[-12:] if game else ()
            self.violations.append(Violation(night.script.seed, night.t, rule, what, log))

    # Sources

    def opened(self, night: Night, site: Site, number: int) -> None:
        row = site.row
        if site.open_tasks > row.max_concurrency:
            self._broken(
                night, "source limit", f"{row.key}: {site.open_tasks} open tasks, {row.max_concurrency} allowed"
            )
        if number > row.burst_allowance:
            self._broken(night, "source limit", f"{row.key}: {number} at once, {row.burst_allowance} allowed")

    def reading(self, night: Night, task: Task) -> None:
        """A request sets out: neither of its breakers is open, and of a half-open one it is a probe."""
        watch, site = task.watch, task.watch.site
        for name, of in ((f"{site.row.key}_source", site), (f"{watch.ref.key}_scraper", watch)):
            if self._open_until.get(name, 0.0) > night.t + EPSILON:
                self._broken(night, "open breaker", f"{name} was asked", watch.game)
            if of.breaker.state == HALF_OPEN:
                under_way = self._probes.setdefault(name, set())
                under_way.add(task)
                most = self.policies.source_breaker.probes if isinstance(of, Site) else self.policies.breaker.probes
                if len(under_way) > most:
                    self._broken(night, "open breaker", f"{name}: {len(under_way)} probes at once, {most} allowed")

    def read(self, task: Task) -> None:
        for under_way in self._probes.values():
            under_way.discard(task)

    def breaker_changed(self, name: str, view: BreakerView, t: float) -> None:
        if view.state == OPEN and view.open_until is not None:
            self._open_until[name] = seconds_of(view.open_until)
            if name.endswith("_source"):
                self._last_open = max(self._last_open, seconds_of(view.open_until))
        else:
            self._open_until.pop(name, None)
        if view.state == CLOSED:
            self._probes.pop(name, None)

    def retried(self, night: Night, site: Site, window: CallWindow, under_way: int) -> None:
        allowed = max(self.policies.budget.floor, window.calls * self.policies.budget.percent / 100)
        if under_way and window.retries + under_way > allowed + EPSILON:
            what = f"{site.row.key}: {window.retries} retries and {under_way} under way, {allowed:.0f} allowed"
            self._broken(night, "retry budget", what)

    # Matches

    def polled(self, night: Night, watch: Watch, *, due_at: float) -> None:
        row = watch.site.row
        if night.t - _heard_at(watch) < row.min_interval_seconds - EPSILON:
            self._broken(night, "source limit", f"{watch.ref.key} was read again too soon", watch.game)
        self._turn(night, watch, due_at)

    def _turn(self, night: Night, watch: Watch, due_at: float) -> None:
        """It has its turn, or still waits for it: within its patience, while its source works."""
        patience = max(LEAST_TOLERANCE.total_seconds(), STARVED_INTERVALS * watch.ref.polling_interval_seconds)
        late = night.t - due_at
        if late <= PATIENCE_TIMES * patience:
            return
        excused = self.trouble.overlap(due_at, night.t, source=watch.site.number, after=AFTERMATH_SECONDS)
        excused += max(0.0, min(night.t, self._last_open + AFTERMATH_SECONDS) - due_at) if self._last_open else 0.0
        if late - excused > PATIENCE_TIMES * patience:
            self._broken(night, "starved", f"{watch.ref.key} waited {late:.0f} s for its turn", watch.game)

    def heard(self, night: Night, watch: Watch, reason: str) -> None:
        calm = night.t - watch.failed_at > self.policies.pace.error_calm_seconds + EPSILON
        if calm and reason == "slowed by errors":
            self._broken(night, "slowing", f"{watch.ref.key} is slowed after a calm time", watch.game)

    def slowed(self, night: Night, watch: Watch, errors_in_a_row: int) -> None:
        is_live = watch.game.match.status == Status.LIVE
        if is_live and errors_in_a_row >= 5 and watch.ref.polling_interval_seconds < 5.0:
            seconds = watch.ref.polling_interval_seconds
            self._broken(night, "slowing", f"{watch.ref.key}: every {seconds:g} s after {errors_in_a_row} errors")

    def climbed(self, night: Night, game: Game, rung: Rung, *, is_held_back: bool) -> None:
        if rung > game.rung + 1 and not is_held_back:
            self._broken(night, "ladder", f"{game.match} from {game.rung.name} to {rung.name} at once", game)

    def looked(self, night: Night) -> None:
        """After every look at the silent ones."""
        for site in night.world.sites:
            for one in site.waiting.values():
                self._turn(night, site.watches[one.ref_id], seconds_of(one.due_at))
        for game in night.world.games:
            if game.rung > Rung.GROUND and game.heard_at > game.silent_since:
                self._broken(night, "ladder", f"{game.match} was heard and stands on {game.rung.name}", game)
            self._silence(night, game)
            until = game.match.pause_until
            if game.match.lifecycle == MatchLifecycle.PAUSED and until is not None:
                late = night.t - seconds_of(until)
                excused = self.trouble.overlap(seconds_of(until), night.t, source=-2, after=0.0)
                if late - excused > 5.0:
                    self._broken(night, "pause", f"{game.match} is paused {late:.0f} s longer than it should", game)

    def _silence(self, night: Night, game: Game) -> None:
        """Who is silent for longer than may be is on the ladder, and goes on climbing until he is frozen."""
        silent = night.t - game.heard_at
        allowed = self.policies.staleness_threshold_seconds
        allowed += max(one.ref.polling_interval_seconds for one in game.watches)
        if game.rung is Rung.FROZEN or silent <= allowed or not game.is_on_watch:
            return
        stood = night.t - game.rung_at if game.rung > Rung.GROUND else silent
        if stood > allowed or game.rung is Rung.GROUND:
            what = f"{game.match} is silent for {silent:.0f} s and stands on {game.rung.name}"
            self._broken(night, "ladder", what, game)

    # The end

    def at_the_end(self, night: Night) -> None:
        """All faults are over for long, a breaker's wait included: everything is as it should be."""
        healed = max(self.trouble.over_at, self._last_open) + HEALED_SECONDS
        if healed > night.t:
            self._broken(night, "healing", f"a source's breaker is still open at {clock_time(self._last_open)}")
        for game in night.world.games:
            self._game_at_the_end(night, game)
        for site in night.world.sites:
            if site.breaker.state != CLOSED and any(one.ref.is_watched for one in site.watches.values()):
                self._broken(night, "breaker stuck", f"{site.row.key} is {site.breaker.state}: {site.breaker.reason}")
        if night.standing.grade != Grade.HEALTHY and not night.is_crowded:
            self._broken(night, "grade", f"{night.standing.grade} at the end: {night.standing.reason}")
        self._alerts(night)

    def _game_at_the_end(self, night: Night, game: Game) -> None:
        match = game.match
        if match.lifecycle == MatchLifecycle.PAUSED:
            self._broken(night, "pause", f"{match} is still paused", game)
        if not game.play.start + AFTERMATH_SECONDS < night.t < game.play.end:
            return
        is_late = game.rung > Rung.GROUND and not night.is_crowded
        if is_late or match.frozen_at is not None:
            self._broken(night, "frozen", f"{match} stands on {game.rung.name}", game)
        for watch in game.watches:
            if watch.ref.is_watched and watch.breaker.state != CLOSED:
                self._broken(night, "breaker stuck", f"{watch.ref.key} is {watch.breaker.state}", game)

    def _alerts(self, night: Night) -> None:
        alarms = night.alarms
        if alarms.busiest_hour() > alarms.rules.hourly_limit:
            self._broken(night, "alert storm", f"{alarms.busiest_hour()} messages in an hour")
        for alert in alarms.all.values():
            opened, closed = seconds_of(alert.opened_at), alert.closed_at
            lasted = (seconds_of(closed) if closed else night.t) - opened
            if alert.is_critical and lasted > 3600.0 and not alert.told_count:
                self._broken(night, "untold", f"{alert.key} stood for {lasted:.0f} s and nobody was told")

    def judge_figures(self, figures: Figures, script: Script, t: float, *, is_crowded: bool) -> None:
        """The objectives, where nothing goes wrong: under faults they are reported, not asserted."""
        if script.faults != CALM or script.given or is_crowded:
            return
        for name, share, least in (
            ("fresh", figures.fresh_share, CALM_FRESH_SHARE),
            ("uptime", figures.uptime_share, CALM_UPTIME_SHARE),
        ):
            if share < least:
                self.violations.append(Violation(script.seed, t, name, f"{share:.4%} in a calm night, not {least:.1%}"))
        if figures.alerts:
            self.violations.append(Violation(script.seed, t, "false alarm", f"{figures.alerts} alerts in a calm night"))


def _heard_at(watch: Watch) -> float:
    """When it was last read well."""
    return seconds_of(watch.ref.captured_at) if watch.ref.captured_at else -1e9
