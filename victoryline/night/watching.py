"""The slow steps: the ladder for silent matches, worn scrapers, alerts and their telling, the grade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitoring.health import grading
from monitoring.models import Grade
from monitoring.watchdogs.matches import MAX_ERRORS_A_MINUTE
from scraping.models import Importance, Scraper
from scraping.policies import ladder
from scraping.policies.ladder import Rung, Silence
from scraping.recovery.silent_matches import WATCHED
from victoryline.night import breaking, dispatch
from victoryline.night.moments import moment
from victoryline.night.rows import Game, Watch

if TYPE_CHECKING:
    from victoryline.night.engine import Night

LOOK_EVERY_SECONDS = 5.0
GRADE_EVERY_SECONDS = 15.0
WORTH_A_LOOK_SECONDS = 60.0  # a scraper younger in its silence, with few errors, needs no question


def step(night: Night) -> None:
    night.at(night.t + LOOK_EVERY_SECONDS, step, night)
    if night.scheduler_away() or night.t < night.watchdogs_from:
        return
    for game in night.world.games:
        _look(night, game)
        for watch in game.watches:
            if watch.scraper is not None:
                _replace_worn(night, watch, watch.scraper)
    _watch_workers(night)
    night.alarms.tell(night.now)
    night.rules.looked(night)


def _look(night: Night, game: Game) -> None:
    """As silence.look does it for one match."""
    _watch_alerts(night, game)
    is_heard = game.rung > Rung.GROUND and game.heard_at > game.silent_since
    if game.rung > Rung.GROUND and (is_heard or not game.is_on_watch):
        _come_down(night, game)
    elif game.is_on_watch:
        silence = _silence(night, game)
        game.was_held_back = game.was_held_back or silence.is_held_back
        rung = ladder.next_rung(silence, staleness_threshold=night.policies.staleness_threshold_seconds, now=night.now)
        if rung > game.rung:
            _climb(night, game, rung, is_held_back=silence.is_held_back)
        elif rung < game.rung:
            _come_down(night, game)
    _send_away(night, game)


def _silence(night: Night, game: Game) -> Silence:
    watched = [watch for watch in game.watches if watch.ref.is_watched]
    interval = min(watch.ref.polling_interval_seconds for watch in watched)
    has_workers = any(worker.is_alive for worker in night.world.workers)
    return Silence(
        expected_at=moment(game.heard_at + interval),
        rung=game.rung,
        rung_at=moment(game.rung_at) if game.rung else None,
        is_important=game.match.importance == Importance.HIGH,
        is_held_back=not has_workers or all(_is_barred(night, one) or _waits_its_turn(night, one) for one in watched),
    )


def _waits_its_turn(night: Night, watch: Watch) -> bool:
    due_at, task = watch.ref.next_poll_at, watch.task
    begun = night.t - ladder.SHARES[Rung.HINT] * ladder.IMPORTANT_SHARE * night.policies.staleness_threshold_seconds
    has_had_its_turn = task is not None and (task.attempt > 1 or task.run_at <= begun)
    return not has_had_its_turn and due_at is not None and due_at <= night.now


def _is_barred(night: Night, watch: Watch) -> bool:
    return breaking.is_open(watch, night) or breaking.is_open(watch.site, night)


def _climb(night: Night, game: Game, rung: Rung, *, is_held_back: bool) -> None:
    night.rules.climbed(night, game, rung, is_held_back=is_held_back)
    night.measures.climbed(night, game, rung)
    night.note(game, f"silent for {night.t - game.heard_at:.0f} s: {rung.name.lower()}")
    if game.rung is Rung.GROUND:
        game.detected_at = night.t
    game.rung, game.rung_at, game.silent_since = rung, night.t, game.heard_at
    if rung is Rung.FROZEN:
        game.match.frozen_at = night.now
    watched = [watch for watch in game.watches if watch.ref.is_watched]
    if rung is Rung.HINT:
        for watch in watched:
            _due_now(night, watch)
    elif rung in (Rung.SESSION, Rung.BROWSER):
        night.recovered_at = night.t if rung is Rung.BROWSER else night.recovered_at
        for watch in watched:
            watch.session += 1
    elif rung is Rung.OTHER_SOURCE:
        for watch in game.watches:
            if not watch.ref.is_watched:
                watch.ref.is_watched, watch.ref.called_in_at = True, night.now
            _due_now(night, watch)


def _due_now(night: Night, watch: Watch) -> None:
    """A task that waits is told of again; a match that has none is due at once."""
    is_due = watch.ref.next_poll_at is not None and watch.ref.next_poll_at <= night.now
    if watch.task is not None or is_due:  # it keeps its place among those that wait
        night.wake(watch.site, night.t)
    elif not _is_barred(night, watch):
        dispatch.plan(night, watch, night.t)


def _come_down(night: Night, game: Game) -> None:
    night.measures.came_down(night, game)
    night.note(game, f"back on the ground from {game.rung.name.lower()}")
    game.rung, game.match.frozen_at, game.was_held_back = Rung.GROUND, None, False


def _send_away(night: Night, game: Game) -> None:
    """Those that were called in go when one of the others has spoken again since."""
    for watch in game.watches:
        called = watch.ref.called_in_at
        if called is None:
            continue
        others = [one for one in game.watches if one.ref.is_watched and one.ref.called_in_at is None]
        if any(one.ref.captured_at is not None and one.ref.captured_at > called for one in others):
            watch.ref.is_watched, watch.ref.called_in_at = False, None


def _replace_worn(night: Night, watch: Watch, scraper: Scraper) -> None:
    if scraper.error_count < 3 and night.t - watch.game.heard_at < WORTH_A_LOOK_SECONDS and night.t < 20 * 3600:
        return
    if watch.game.match.lifecycle not in WATCHED:
        return
    reason = scraper.restart_reason(
        night.now,
        max_lifetime_seconds=night.policies.max_lifetime_seconds,
        staleness_threshold=night.policies.staleness_threshold_seconds,
    )
    if reason:
        night.measures.restarts += 1
        night.recovered_at = night.t
        night.note(watch.game, f"scraper replaced: {reason}")
        watch.scraper = Scraper(ref=watch.ref, start_time=night.now)
        if watch.task is None:
            dispatch.plan(night, watch, night.t)


def _watch_alerts(night: Night, game: Game) -> None:
    pk, t = game.match.pk, night.t
    while game.errors and game.errors[0] <= t - 60.0:
        game.errors.popleft()
    silent = t - game.heard_at
    is_stale = game.is_on_watch and silent >= night.policies.staleness_threshold_seconds
    night.alarms.stand(f"stale:{pk}", t, if_=is_stale, source=game.home)
    night.alarms.stand(f"errors:{pk}", t, if_=len(game.errors) > MAX_ERRORS_A_MINUTE, source=game.home)
    if game.deaths and game.heard_at > game.deaths[-1]:
        night.alarms.closed(f"dead:{pk}", t)


def _watch_workers(night: Night) -> None:
    has_none = not any(worker.is_alive for worker in night.world.workers)
    night.alarms.stand("no-worker", night.t, if_=has_none)


def grade_step(night: Night) -> None:
    night.at(night.t + GRADE_EVERY_SECONDS, grade_step, night)
    night.measures.sample(night)
    if night.scheduler_away() or night.t < night.watchdogs_from:
        return
    ages = [max(0.0, night.t - game.heard_at) for game in night.world.games if game.is_on_watch]
    stall = night.t - night.last_success if ages and night.last_success is not None else 0.0
    before = night.standing
    night.standing = grading.grade(before, grading.Freshness.of(ages), stall, _recovery(night))
    if night.standing.grade != before.grade:
        _graded(night, before.grade, night.standing)


def _recovery(night: Night) -> grading.Recovery | None:
    if night.standing.grade not in {Grade.FAILING, Grade.RECOVERING} or night.recovered_at < night.failing_from:
        return None
    has_succeeded = night.last_success is not None and night.last_success > night.recovered_at
    vain = night.t - night.failing_from if night.has_failed_again else None
    return grading.Recovery(night.t - night.recovered_at, has_succeeded, vain)


def _graded(night: Night, before: Grade, standing: grading.GradeState) -> None:
    night.measures.graded(night.t, standing.grade)
    if standing.grade is Grade.FAILING:
        night.failing_from, night.has_failed_again = night.t, before is Grade.RECOVERING
    if standing.grade is Grade.HEALTHY:
        night.alarms.closed("grade", night.t)
    elif standing.grade is not Grade.RECOVERING:
        night.alarms.opened("grade", night.t, is_critical=standing.grade is Grade.FAILING)
