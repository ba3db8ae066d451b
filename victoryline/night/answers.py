"""What a source answers just now: the match, an error, or nothing for a long time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scraping.browser.launcher import BrowserOptions
from scraping.errors import ErrorClass
from victoryline.night.faults import EVERYWHERE, Kind
from victoryline.night.rows import Task

if TYPE_CHECKING:
    from victoryline.night.engine import Night

COMMIT_SECONDS = 0.02
SPREAD = 0.45  # of the logarithm of an answer's time
HANGS_SECONDS = BrowserOptions.request_timeout_seconds  # then a request is given up
RETRY_AFTER_SECONDS = 30.0
POISON_BREAKS_US = 0.5  # below, the source fails for this match; from here on, its page is too much for our code


@dataclass(frozen=True)
class Answer:
    seconds: float
    error: ErrorClass | None = None
    message: str = ""
    retry_after: float | None = None


def ask(night: Night, task: Task) -> Answer:
    site, chance = task.watch.site, night.chance
    seconds = site.latency * chance.lognormvariate(0.0, SPREAD) + COMMIT_SECONDS
    if not night.world.faults:
        return Answer(seconds)
    return _broken(night, task, seconds) or Answer(seconds)


def _broken(night: Night, task: Task, seconds: float) -> Answer | None:
    watch, trouble, t, chance = task.watch, night.trouble, night.t, night.chance
    number = watch.site.number
    if trouble.now(Kind.CUT, EVERYWHERE, t):
        return Answer(chance.uniform(0.05, 1.0), ErrorClass.TRANSIENT, "no network")
    if trouble.now(Kind.OUTAGE, number, t):
        return Answer(seconds, ErrorClass.TRANSIENT, "HTTP 503")
    if trouble.now(Kind.HANGS, number, t):
        return Answer(HANGS_SECONDS, ErrorClass.TRANSIENT, "no answer in time")
    poison = trouble.now(Kind.POISON, watch.game.number, t)
    if poison and poison.strength < POISON_BREAKS_US:
        return Answer(seconds, ErrorClass.TRANSIENT, "HTTP 500 for this match")
    if poison:
        return Answer(seconds, ErrorClass.BUG, "its page breaks our parser")
    if watch.session == 0 and trouble.now(Kind.MUTE, watch.game.number, t) and watch is watch.game.watches[0]:
        return Answer(HANGS_SECONDS, ErrorClass.TRANSIENT, "the page hangs in this session")
    limited = trouble.now(Kind.LIMITED, number, t)
    if limited and chance.random() < limited.strength:
        return Answer(seconds, ErrorClass.BLOCKED, "HTTP 429", RETRY_AFTER_SECONDS)
    some = trouble.now(Kind.ERRORS, number, t)
    if some and chance.random() < some.strength:
        return Answer(seconds, ErrorClass.TRANSIENT, "HTTP 502")
    slow = trouble.now(Kind.SLOW, number, t)
    return Answer(seconds * slow.strength) if slow else None
