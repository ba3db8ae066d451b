"""The keys of our alerts: what each one is about. docs/operations.md says what to do about them."""

from __future__ import annotations

STALE = "stale:"
ERROR_RATE = "errors:"
DEAD = "dead:"
DEAD_DISCOVERY = "dead-discovery:"
DEAD_ROUND = "dead-round:"
PAUSED = "paused:"
LAYOUT = "layout:"
MEMORY = "memory:"
BREAKER = "breaker:"
NO_WORKER = "no-worker"
GRADE = "grade"
DISK = "disk:"
TOKEN = "token:"  # noqa: S105 - the beginning of a key
CHANGED = "changed:"
DRIFT = "drift:"
SPARSE = "sparse:"
TRAFFIC = "traffic:"
INCOMPLETE = "incomplete:"
PAUSED_LONG = "paused-long:"
BLOCKED = "blocked:"
DELIVERY = "delivery:"
SPOOL = "spool"
QUEUE = "queue"
DATABASE = "database"
TEST = "test"  # of `manage.py send_test_alert`


def stale(match_id: int) -> str:
    return f"{STALE}{match_id}"


def error_rate(match_id: int) -> str:
    return f"{ERROR_RATE}{match_id}"


def dead(match_id: int | None) -> str:
    return f"{DEAD}{match_id}"


def dead_discovery(source_key: str) -> str:
    return f"{DEAD_DISCOVERY}{source_key}"


def dead_round(job_id: int) -> str:
    return f"{DEAD_ROUND}{job_id}"


def death(*, match_id: int | None, source_key: str, job_id: int | None) -> str:
    """Of a task: of a match, of a job's round, or of a source's list of matches."""
    if match_id is not None:
        return dead(match_id)
    return dead_round(job_id) if job_id is not None else dead_discovery(source_key)


def paused(match_id: int) -> str:
    return f"{PAUSED}{match_id}"


def paused_long(match_id: int) -> str:
    """A live match that was paused for too much of the last hour."""
    return f"{PAUSED_LONG}{match_id}"


def blocked(source_key: str) -> str:
    """A source that refuses us, or shows us challenges, and goes on doing so."""
    return f"{BLOCKED}{source_key}"


def delivery(channel: str) -> str:
    """A channel through which people cannot be told."""
    return f"{DELIVERY}{channel}"


def incomplete(match_id: int) -> str:
    """A match that has ended, and of which something could not be had."""
    return f"{INCOMPLETE}{match_id}"


def layout(match_id: int) -> str:
    return f"{LAYOUT}{match_id}"


def changed(source_key: str) -> str:
    """A source whose readings make no sense any more."""
    return f"{CHANGED}{source_key}"


def drift(source_key: str, payload_schema: str, field: str) -> str:
    """A field that a source fills less often than it used to, at a stage of its matches."""
    return f"{DRIFT}{source_key}:{payload_schema}:{field}"


def sparse(source_key: str) -> str:
    """A source that leaves out too many of the wanted fields."""
    return f"{SPARSE}{source_key}"


def traffic(source_key: str) -> str:
    """A source that has used up most of its traffic of a day."""
    return f"{TRAFFIC}{source_key}"


def memory(worker_id: str) -> str:
    return f"{MEMORY}{worker_id}"


def breaker(name: str) -> str:
    return f"{BREAKER}{name}"


def disk(worker_id: str) -> str:
    return f"{DISK}{worker_id.rpartition('-')[0].rpartition('-')[0] or worker_id}"  # the machine's, not the process's


def token(source_key: str) -> str:
    return f"{TOKEN}{source_key}"


def public_text(key: str, summary: str) -> str:
    """What everybody may read: without the reasons, which can hold addresses, and the names of our machines."""
    if key.startswith(MEMORY):
        return "A worker is close to its memory limit"
    if key.startswith(DISK):
        return "A disk is almost full"
    if key.startswith(DELIVERY):
        return "Alerts do not reach people in one of the ways they should"
    endings = (
        (DEAD, "is dead"),
        (DEAD_DISCOVERY, "is dead"),
        (DEAD_ROUND, "is dead"),
        (PAUSED, "is paused"),
        (LAYOUT, "has changed"),
        (CHANGED, "has changed"),
    )
    for prefix, ending in endings:
        if key.startswith(prefix):
            return f"{summary.partition(f' {ending}: ')[0]} {ending}"
    return summary
