"""Whose turn it is: due matches get tasks, due tasks are told to the workers. The scheduler's two quickest steps.

As scheduler/due.py and scheduler/hint.py, a source at a time and only at moments at which something can be due.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from scraping.models import POLLED_LIFECYCLES, MatchLifecycle
from scraping.policies import breaker as machine
from scraping.policies import fairness, retry_budget, source_breaker
from scraping.policies.fairness import DueMatch
from victoryline.night import working
from victoryline.night.moments import TICK_SECONDS, moment, seconds_of
from victoryline.night.rows import OVER, PENDING, Site, Task, Watch

if TYPE_CHECKING:
    from victoryline.night.engine import Night

LOOK_AGAIN_SECONDS = 1.0


def plan(night: Night, watch: Watch, at: float | datetime) -> None:
    """Its next poll is due then."""
    seconds = seconds_of(at) if isinstance(at, datetime) else at
    watch.ref.next_poll_at = at if isinstance(at, datetime) else moment(at)
    watch.version += 1
    watch.site.waiting.pop(watch.number, None)
    if watch.task is None:
        heappush(watch.site.due, (seconds, night.next_number(), watch, watch.version))
        night.wake(watch.site, seconds)


def round_of(night: Night, site: Site, at: float) -> None:
    if site.round_at != at:
        return  # an earlier one was asked for since
    site.round_at = None
    away = night.scheduler_away()
    if away is not None:
        night.wake(site, away.end)
        return
    _collect(night, site)
    limit = machine.probe_limit(site.breaker, _patience(night, site), night.now)
    opened = _open(night, site, limit)
    _hint(night, site, opened, limit)
    _wake_again(night, site, limit)


def _patience(night: Night, site: Site) -> machine.BreakerPolicy:
    return source_breaker.policy_for(site.breaker, night.policies.source_breaker, night.policies.drift)


def _collect(night: Night, site: Site) -> None:
    while site.due and site.due[0][0] <= night.t + 1e-6:
        _, number, watch, version = heappop(site.due)
        match = watch.game.match
        is_old = version != watch.version or watch.task is not None
        if is_old or not watch.ref.is_watched or match.lifecycle not in POLLED_LIFECYCLES:
            continue
        until = _not_before(watch)
        if until is not None and until > night.now:
            heappush(site.due, (seconds_of(until), number, watch, version))
            continue
        assert watch.ref.next_poll_at is not None
        site.waiting[watch.number] = DueMatch(
            ref_id=watch.number,
            source_id=site.number + 1,
            priority=match.priority,
            importance=match.importance,
            due_at=watch.ref.next_poll_at,
            interval_seconds=watch.ref.polling_interval_seconds,
            last_read_at=watch.ref.captured_at,
        )


def _not_before(watch: Watch) -> datetime | None:
    """Its breaker is open until then, or it was read so lately that the source would mind."""
    if watch.breaker.state == machine.OPEN:
        return watch.breaker.open_until
    heard = watch.ref.captured_at
    return heard + timedelta(seconds=watch.site.row.min_interval_seconds) if heard else None


def _open(night: Night, site: Site, limit: int | None) -> list[Task]:
    most = site.row.max_concurrency if limit is None else min(limit, site.row.max_concurrency)
    room = min(site.row.burst_allowance, most - site.open_tasks)
    if not site.waiting or room <= 0:
        return []
    opened = []
    for chosen in _chosen(night, site, room):
        watch = site.watches[chosen.ref_id]
        del site.waiting[chosen.ref_id]
        task = watch.task = Task(night.next_number(), watch, run_at=night.t)
        site.open_tasks += 1
        opened.append(task)
        night.rules.polled(night, watch, due_at=seconds_of(chosen.due_at))
    night.rules.opened(night, site, len(opened))
    return opened


def _chosen(night: Night, site: Site, room: int) -> list[DueMatch]:
    if len(site.waiting) <= room:
        return fairness.choose(site.waiting.values(), room, now=night.now)
    site.given += room
    return fairness.choose(site.waiting.values(), room, now=night.now, given=site.given - room)


def _hint(night: Night, site: Site, opened: list[Task], limit: int | None) -> None:
    chosen = _due_again(night, site, limit) if site.pending else []
    for task in (*opened, *chosen):
        task.is_hinted = True
    working.send(night, [*opened, *chosen])


def _due_again(night: Night, site: Site, limit: int | None) -> list[Task]:
    """Tasks that were open already: retries, those that were rescued or put off."""
    due = [task for task in site.pending if task.run_at <= night.t + 1e-6 and _may_go(night, task)]
    due.sort(key=lambda task: (task.watch.game.match.priority, task.run_at, task.number))
    chosen = _within_budget(night, site, _let_through(night, site, due, limit))
    if chosen:
        gone = set(chosen)
        site.pending = [task for task in site.pending if task not in gone]
    return chosen


def _may_go(night: Night, task: Task) -> bool:
    """Its match is not paused, and its breaker not open; `has_open_breaker` and the exclusion of paused ones."""
    view = task.watch.breaker
    is_open = view.state == machine.OPEN and view.open_until is not None and view.open_until > night.now
    return task.state == PENDING and task.watch.game.match.lifecycle != MatchLifecycle.PAUSED and not is_open


def _let_through(night: Night, site: Site, due: list[Task], limit: int | None) -> list[Task]:
    """Of a source whose breaker is not closed: those with a permit, and as many others as may be had."""
    if limit is None or not due:
        return due
    holders = machine.live_probes(site.breaker, night.now)
    taken = set(holders) | {task.key for task in night.queue.waiting_of(site)}
    others = [task for task in due if task.key not in holders]
    return [task for task in due if task.key in holders] + others[: max(0, limit - len(taken))]


def _within_budget(night: Night, site: Site, due: list[Task]) -> list[Task]:
    retries = [task for task in due if is_retry(night, task)]
    if not retries:
        return due
    window = site.tally.window(night.now, night.policies.window.window_seconds)
    under_way = night.queue.retries_under_way(site)
    left = retry_budget.retries_left(window, night.policies.budget, under_way=under_way)
    held = set(retries[max(0, left) :])
    night.rules.retried(night, site, window, under_way + len(retries) - len(held))
    return [task for task in due if task not in held]


def is_retry(night: Night, task: Task) -> bool:
    if not task.charged:
        return False
    return retry_budget.is_retry(
        charged_attempts=task.charged,
        due_at=moment(task.run_at),
        scheduled_at=task.watch.ref.next_poll_at,
        now=night.now,
    )


def _wake_again(night: Night, site: Site, limit: int | None) -> None:
    """The next moment at which this source has something to do that no other event tells."""
    if site.due:
        night.wake(site, site.due[0][0])
    most = site.row.max_concurrency if limit is None else min(limit, site.row.max_concurrency)
    if site.waiting and most > site.open_tasks:
        night.wake(site, night.t + TICK_SECONDS)
    until = site.breaker.open_until
    if site.breaker.state == machine.OPEN and until is not None:
        night.wake(site, max(seconds_of(until), night.t + TICK_SECONDS))
    if site.pending:
        soonest = min(task.run_at for task in site.pending)
        night.wake(site, soonest if soonest > night.t else night.t + LOOK_AGAIN_SECONDS)


def close(night: Night, task: Task) -> None:
    """The task has ended, well or not: its place is free, and its match may have the next one."""
    watch = task.watch
    task.state, watch.task = OVER, None
    watch.site.open_tasks -= 1
    if watch.site.waiting or watch.site.pending:
        night.wake(watch.site, night.t)
