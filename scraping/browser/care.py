"""When a browser, or the worker around it, has to be replaced. Pure: figures in, a verdict out, somebody else acts.

Guards against what browsers do when they live long: memory that only grows, pages that crash, answers that stop. A
browser is replaced before it hurts, when its visits are done; only what no longer helps anybody is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MEGABYTE = 1024 * 1024
WARN_SHARE = 0.8  # of the soft limit


class Cause(StrEnum):
    """Why a browser was started, in a word: the label of the metric."""

    FIRST = "first"
    DIED = "died"
    HUNG = "hung"
    FAULTS = "faults"
    PAGES = "pages"
    AGE = "age"
    MEMORY = "memory"
    ORDER = "order"


@dataclass(frozen=True)
class CarePolicy:
    max_pages: int = 500
    max_age_seconds: float = 6 * 3600.0
    max_faults: int = 2
    fault_window_seconds: float = 60.0
    hung_seconds: float = 30.0
    drain_seconds: float = 20.0


@dataclass(frozen=True)
class Condition:
    """What a browser has behind it."""

    pages: int
    age_seconds: float
    recent_faults: int  # within the policy's window


@dataclass(frozen=True)
class Worn:
    """It is to be replaced once its visits are done."""

    cause: Cause
    reason: str


def judge(seen: Condition, policy: CarePolicy) -> Worn | None:
    """Is this browser to be replaced? What is wrong with it now comes before what it has merely lived through."""
    if seen.recent_faults >= policy.max_faults:
        return Worn(Cause.FAULTS, f"{seen.recent_faults} faults of its own within {policy.fault_window_seconds:.0f} s")
    if seen.pages >= policy.max_pages:
        return Worn(Cause.PAGES, f"it has opened {seen.pages} pages")
    if seen.age_seconds >= policy.max_age_seconds:
        return Worn(Cause.AGE, f"it has run for {seen.age_seconds / 3600:.1f} h")
    return None


class Relief(StrEnum):
    """What is done about memory."""

    NONE = "none"
    WARN = "warn"
    REPLACE_BROWSER = "replace_browser"  # when its visits are done
    STOP_WORKER = "stop_worker"  # in good order; its supervisor starts another
    KILL_BROWSER = "kill_browser"
    KILL_WORKER = "kill_worker"


@dataclass(frozen=True)
class MemoryLimits:
    soft_bytes: int
    hard_bytes: int
    settle_seconds: float = 30.0  # how long a new browser, or worker, is left alone: memory takes a while to show
    min_worker_seconds: float = 120.0  # a limit that no worker can keep must not become a storm of restarts


@dataclass(frozen=True)
class MemorySeen:
    """The worker's whole process tree, and what was done about it already."""

    tree_bytes: int
    worker_age_seconds: float
    seconds_since_replaced: float | None  # a browser, for want of memory, without success so far; None: not yet
    seconds_since_killed: float | None


def judge_memory(seen: MemorySeen, limits: MemoryLimits) -> Relief:
    """Soft: finish, then replace the browser; where that did not help, the worker. Hard: the same, at once."""
    if seen.tree_bytes > limits.hard_bytes:
        if seen.seconds_since_killed is None:
            return Relief.KILL_BROWSER
        # The dead need a moment to give back what they had; what is still there afterwards is the worker's own.
        return Relief.KILL_WORKER if seen.seconds_since_killed >= limits.settle_seconds / 3 else Relief.NONE
    if seen.tree_bytes > limits.soft_bytes:
        if seen.seconds_since_replaced is None:
            return Relief.REPLACE_BROWSER
        has_settled = seen.seconds_since_replaced >= limits.settle_seconds
        is_old_enough = seen.worker_age_seconds >= limits.min_worker_seconds
        return Relief.STOP_WORKER if has_settled and is_old_enough else Relief.WARN
    return Relief.WARN if seen.tree_bytes > WARN_SHARE * limits.soft_bytes else Relief.NONE
