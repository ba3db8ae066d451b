"""What an attempt leaves behind: as ingest.py after a good one, failures.py after a bad one, rescue.py after none."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING

from scraping.errors import OUR_FAULTS, SOURCE_FAULTS
from scraping.matches import lifecycle, poll_times
from scraping.matches.lifecycle import ALLOWED_TRANSITIONS, FAILURE_WINDOW
from scraping.models import MatchLifecycle, Scraper
from scraping.payloads import Status
from scraping.policies.breaker import OPEN, BreakerView
from scraping.policies.retry import Dead, Decision, Failure, Retry, decide
from scraping.scheduler.recover import QUIET_SECONDS
from victoryline.night import breaking, dispatch
from victoryline.night.answers import COMMIT_SECONDS, Answer
from victoryline.night.moments import next_round, seconds_of
from victoryline.night.rows import EXECUTING, PENDING, Game, Task, Watch

if TYPE_CHECKING:
    from victoryline.night.engine import Night

COMMIT = timedelta(seconds=COMMIT_SECONDS)


def succeed(night: Night, task: Task) -> None:
    watch, game = task.watch, task.watch.game
    ref, match, now = watch.ref, game.match, night.now
    state = game.play.at(night.t - COMMIT_SECONDS)
    is_changed = state.version > watch.seen_version  # of what this source told, whatever the others have told
    watch.seen_version = state.version
    match.status, match.phase = state.status.value, state.phase.value
    lifecycle.after_reading(match, status=state.status, now=now)
    planned = poll_times.after_reading(ref, match, is_changed=is_changed, pace=night.policies.pace, now=now)
    planned.write_to(ref)
    ref.captured_at = match.last_scraper_update = now - COMMIT
    night.measures.heard(night, game)
    game.heard_at, game.written_at = night.t - COMMIT_SECONDS, night.t
    night.last_success = night.t
    _keep_watch(night, watch)
    watch.errors_in_a_row = 0
    breaking.succeeded(night, task)
    watch.site.tally.count(now, is_bad=False, is_retry=task.is_retry)
    night.rules.heard(night, watch, planned.reason)
    dispatch.close(night, task)
    dispatch.plan(night, watch, planned.at)


def _keep_watch(night: Night, watch: Watch) -> None:
    """A live match has a scraper, any other has none."""
    match = watch.game.match
    if match.lifecycle != MatchLifecycle.ACTIVE or match.status != Status.LIVE:
        watch.scraper = None
        return
    if watch.scraper is None:
        watch.scraper = Scraper(ref=watch.ref, start_time=night.now)
    watch.scraper.error_count, watch.scraper.last_update_time = 0, night.now


def fail(night: Night, task: Task, answer: Answer) -> None:
    watch, game, now = task.watch, task.watch.game, night.now
    assert answer.error is not None
    failure = Failure(answer.error, answer.message, task.attempt, task.charged, answer.retry_after)
    decision = decide(failure, night.policies.retry_for(watch.site.row), now, night.chance)
    night.measures.failed(night, task, answer.error)
    night.note(game, f"attempt {task.attempt} at {watch.site.row.key} failed: {answer.message}")
    view: BreakerView | None = None
    if answer.error in SOURCE_FAULTS:
        view = breaking.failed(night, task, answer.message)
        watch.failed_at = night.t
        game.errors.append(night.t)
    else:
        breaking.gave_nothing(night, task)
    decision = _count(night, watch, task, decision, view)
    if answer.error not in OUR_FAULTS:
        watch.site.tally.count(now, is_bad=answer.error in SOURCE_FAULTS, is_retry=task.is_retry)
        watch.site.is_judged = True
    if isinstance(decision, Retry):
        _retry(night, task, seconds_of(decision.at), is_charged=decision.is_charged)
        return
    dispatch.close(night, task)
    if isinstance(decision, Dead):
        _died(night, game, decision.reason)
        if answer.error not in OUR_FAULTS:
            _after_failed_task(night, game)
    assert watch.ref.next_poll_at is not None
    dispatch.plan(night, watch, watch.ref.next_poll_at)


def _count(night: Night, watch: Watch, task: Task, decision: Decision, view: BreakerView | None) -> Decision:
    """When the next task is due; a retry waits for a breaker that has opened."""
    ref, match, pace, now = watch.ref, watch.game.match, night.policies.pace, night.now
    if view is None:
        poll_times.set_next_poll(ref, poll_times.after_other_failure(ref, match, pace=pace, now=now).at)
        return decision
    errors_in_a_row = (watch.scraper.error_count if watch.scraper else task.charged) + 1
    planned = poll_times.after_error(ref, match, errors_in_a_row=errors_in_a_row, pace=pace, now=now)
    planned.write_to(ref)
    watch.errors_in_a_row = errors_in_a_row
    if watch.scraper:
        watch.scraper.error_count += 1
    night.rules.slowed(night, watch, errors_in_a_row)
    if view.state == OPEN and view.open_until:
        poll_times.set_next_poll(ref, max(planned.at, view.open_until))
        if isinstance(decision, Retry):
            return Retry(max(decision.at, view.open_until), decision.is_charged)
    return decision


def _retry(night: Night, task: Task, at: float, *, is_charged: bool) -> None:
    task.state, task.run_at = PENDING, at
    task.charged += is_charged
    task.watch.site.pending.append(task)
    night.wake(task.watch.site, at)


def rescue(night: Night, task: Task, fence: int) -> None:
    """The lease of a killed worker has run out: somebody else may have the task, until it has cost too many."""
    away = night.scheduler_away()
    if away is not None:
        night.at(away.end, rescue, night, task, fence)
        return
    if task.fence != fence or task.state != EXECUTING:
        return
    task.rescues += 1
    task.fence += 1
    night.measures.rescues += 1
    night.note(task.watch.game, f"taken back from a silent worker, {task.rescues} times now")
    if task.rescues <= night.policies.max_rescues:
        _retry(night, task, night.t, is_charged=False)
        return
    dispatch.close(night, task)
    _died(night, task.watch.game, "its workers fell silent")
    _after_failed_task(night, task.watch.game)
    dispatch.plan(night, task.watch, night.t + QUIET_SECONDS)


def _died(night: Night, game: Game, reason: str) -> None:
    night.measures.deaths += 1
    game.deaths.append(night.t)
    night.note(game, f"task dead: {reason}")
    night.alarms.opened(f"dead:{game.match.pk}", night.t, is_critical=False, source=game.home)


def _after_failed_task(night: Night, game: Game) -> None:
    """Lifecycle's rule for a match whose tasks fail for good: so many within ten minutes, and it is paused."""
    match = game.match
    since = night.t - FAILURE_WINDOW.total_seconds()
    _forget(game.deaths, since)
    match.failing_since = match.failing_since or night.now
    match.consecutive_failure_count = min(match.consecutive_failure_count + 1, max(1, len(game.deaths)))
    too_many = match.consecutive_failure_count >= night.policies.pause_after_failures
    if not too_many or MatchLifecycle.PAUSED not in ALLOWED_TRANSITIONS[match.lifecycle]:
        return
    match.lifecycle = MatchLifecycle.PAUSED
    match.pause_until = night.now + timedelta(seconds=night.policies.pause_seconds)
    for watch in game.watches:
        watch.scraper = None
    night.measures.pauses += 1
    night.note(game, "paused")
    night.alarms.opened(f"paused:{match.pk}", night.t, is_critical=False, source=game.home)
    night.at(next_round(seconds_of(match.pause_until), 1.0), _end_pause, night, game)


def _end_pause(night: Night, game: Game) -> None:
    away = night.scheduler_away()
    if away is not None:
        night.at(next_round(away.end, 1.0), _end_pause, night, game)
        return
    match = game.match
    if match.lifecycle != MatchLifecycle.PAUSED:
        return
    match.lifecycle, match.pause_until = MatchLifecycle.ACTIVE, None
    match.consecutive_failure_count, match.failing_since = 0, None
    night.note(game, "the pause is over")
    night.alarms.closed(f"paused:{match.pk}", night.t)
    for watch in game.watches:
        dispatch.plan(night, watch, night.t)
        night.wake(watch.site, night.t)


def _forget(times: deque[float], since: float) -> None:
    while times and times[0] <= since:
        times.popleft()
