"""The workers: they take hints, claim tasks, ask the sources, die, and come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scraping.errors import ErrorClass
from victoryline.lib.hint_broker import JOURNAL_AFTER_SECONDS, JOURNAL_EVERY_SECONDS
from victoryline.night import answers, breaking, dispatch, settling
from victoryline.night.answers import Answer
from victoryline.night.faults import EVERYWHERE, Fault, Kind
from victoryline.night.moments import next_round
from victoryline.night.rows import EXECUTING, PENDING, Site, Task, Worker

if TYPE_CHECKING:
    from victoryline.night.engine import Night

HEARTBEAT_SECONDS = 3.0
NO_BROWSER = Answer(0.1, ErrorClass.RESOURCE, "the browser is gone")


@dataclass(frozen=True)
class Hold:
    """A worker's right to a task: what it brings counts while the fence is the task's, and the worker is the same."""

    task: Task
    fence: int
    worker: Worker
    life: int

    @property
    def is_good(self) -> bool:
        return self.task.fence == self.fence and self.worker.life == self.life and self.task.state == EXECUTING


class Queue:
    """Hints on their way, in groups; and which retries are with the workers."""

    def __init__(self) -> None:
        self.groups: deque[list[Task]] = deque()
        self._retries: dict[int, set[Task]] = {}

    def waiting_of(self, site: Site) -> list[Task]:
        return [task for group in self.groups for task in group if task.watch.site is site and task.state == PENDING]

    def retries_under_way(self, site: Site) -> int:
        return len(self._retries.get(site.number, ()))

    def retry_began(self, task: Task) -> None:
        self._retries.setdefault(task.watch.site.number, set()).add(task)

    def retry_ended(self, task: Task) -> None:
        self._retries.get(task.watch.site.number, set()).discard(task)


def send(night: Night, tasks: Sequence[Task]) -> None:
    """Hints for these tasks. Without a broker, the workers find them in the journal a little later."""
    if not tasks:
        return
    for task in tasks:
        if dispatch.is_retry(night, task):
            night.queue.retry_began(task)
    size = night.policies.poll_group_size
    groups = [list(tasks[first : first + size]) for first in range(0, len(tasks), size)]
    away = night.trouble.now(Kind.BROKER, EVERYWHERE, night.t)
    if away is None:
        night.queue.groups.extend(groups)
        serve(night)
        return
    found_at = max(away.begin + JOURNAL_AFTER_SECONDS, night.t) + JOURNAL_EVERY_SECONDS
    night.at(found_at, _found, night, groups)


def _found(night: Night, groups: list[list[Task]]) -> None:
    night.queue.groups.extend(groups)
    serve(night)


def lose_hints(night: Night) -> None:
    """Redis has forgotten everything: what nobody has claimed by then is hinted again."""
    lost = [task for group in night.queue.groups for task in group if task.state == PENDING]
    night.queue.groups.clear()
    for task in lost:
        night.at(night.t + night.policies.hint_again_seconds, _hint_again, night, task)


def _hint_again(night: Night, task: Task) -> None:
    if task.state == PENDING:
        send(night, [task])


def serve(night: Night) -> None:
    if night.store_away():
        return  # nobody can claim; `Night` serves again when the database is back
    while night.queue.groups:
        free = [worker for worker in night.world.workers if worker.is_alive and worker.free > 0]
        if not free:
            return
        worker = free[night.chance.randrange(len(free))] if len(free) > 1 else free[0]
        _begin(night, worker, night.queue.groups.popleft())


def _begin(night: Night, worker: Worker, tasks: Sequence[Task]) -> None:
    """A thread takes a group: all of it is read at the same time, and the thread is free when the last one is."""
    longest = 0.0
    for task in tasks:
        if task.state != PENDING:
            continue
        hold = _claim(night, worker, task)
        if not breaking.admit(night, task):
            worker.tasks.pop(task.number, None)
            continue
        answer = answers.ask(night, task)
        if night.trouble.now(Kind.CRASH, worker.number, night.t):
            answer = NO_BROWSER
        site = task.watch.site
        site.reading += 1
        site.peak = max(site.peak, site.reading)
        night.measures.polled(night, task)
        night.rules.reading(night, task)
        longest = max(longest, answer.seconds)
        night.at(night.t + answer.seconds, _finish, night, hold, answer)
    if longest:
        worker.free -= 1
        night.at(night.t + longest, _free, night, worker, worker.life)


def _claim(night: Night, worker: Worker, task: Task) -> Hold:
    task.is_retry = dispatch.is_retry(night, task)
    task.state, task.worker, task.is_hinted = EXECUTING, worker.number, False
    task.attempt += 1
    task.fence += 1
    worker.tasks[task.number] = task
    return Hold(task, task.fence, worker, worker.life)


def _free(night: Night, worker: Worker, life: int) -> None:
    if worker.life == life:
        worker.free += 1
        serve(night)


def _finish(night: Night, hold: Hold, answer: Answer) -> None:
    task = hold.task
    if not hold.is_good:
        return
    away = night.store_away()
    if away is not None:  # what was read waits in the worker's spool
        night.at(away.end + night.chance.uniform(0.0, 0.5), _finish, night, hold, answer)
        return
    _let_go(night, task, hold.worker)
    if answer.error is None:
        settling.succeed(night, task)
    else:
        settling.fail(night, task, answer)


def _let_go(night: Night, task: Task, worker: Worker) -> None:
    worker.tasks.pop(task.number, None)
    task.watch.site.reading -= 1
    night.queue.retry_ended(task)
    night.rules.read(task)


def kill(night: Night, fault: Fault) -> None:
    """A worker is gone: its tasks are taken back when their leases have run out, and the supervisor starts another."""
    worker = night.world.workers[fault.target]
    worker.is_alive = False
    worker.life += 1
    for task in list(worker.tasks.values()):
        _let_go(night, task, worker)
        expires = night.t + night.policies.lease_seconds - night.chance.uniform(0.0, HEARTBEAT_SECONDS)
        night.at(next_round(expires, 1.0), settling.rescue, night, task, task.fence)
    night.at(fault.end, _start, night, worker)


def _start(night: Night, worker: Worker) -> None:
    worker.is_alive, worker.free = True, worker.threads
    serve(night)


def crash(night: Night, fault: Fault) -> None:
    """The browser is gone: whatever it was reading fails by our own fault."""
    worker = night.world.workers[fault.target]
    for task in list(worker.tasks.values()):
        _let_go(night, task, worker)
        task.fence += 1
        settling.fail(night, task, replace(NO_BROWSER, message="the browser crashed"))
