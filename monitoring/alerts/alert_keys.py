"""The keys of alerts: a kind, and the match, source, worker or channel it concerns. See docs/operations.md."""

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
TEST = "test"  # of `manage.py alerts --test`


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


def dead_task(*, match_id: int | None, source_key: str, job_id: int | None) -> str:
    """Returns the key of a dead task: of its match, of its job's round, or of its source's discovery."""
    if match_id is not None:
        return dead(match_id)
    return dead_round(job_id) if job_id is not None else dead_discovery(source_key)


def paused(match_id: int) -> str:
    return f"{PAUSED}{match_id}"


def paused_long(match_id: int) -> str:
    """A live match that was paused for too long in the last hour."""
    return f"{PAUSED_LONG}{match_id}"


def blocked(source_key: str) -> str:
    """A source that keeps refusing requests or showing challenges."""
    return f"{BLOCKED}{source_key}"


def delivery(channel: str) -> str:
    """A channel that does not deliver messages."""
    return f"{DELIVERY}{channel}"


def incomplete(match_id: int) -> str:
    """A match that has ended with missing data."""
    return f"{INCOMPLETE}{match_id}"


def layout(match_id: int) -> str:
    return f"{LAYOUT}{match_id}"


def changed(source_key: str) -> str:
    """A source whose readings cannot be parsed any more."""
    return f"{CHANGED}{source_key}"


def drift(source_key: str, payload_schema: str, field: str) -> str:
    """A field that a source fills less often than before, in one payload schema."""
    return f"{DRIFT}{source_key}:{payload_schema}:{field}"


def sparse(source_key: str) -> str:
    """A source that leaves too many of the wanted fields empty."""
    return f"{SPARSE}{source_key}"


def traffic(source_key: str) -> str:
    """A source that has used most of its daily traffic budget."""
    return f"{TRAFFIC}{source_key}"


def memory(worker_id: str) -> str:
    return f"{MEMORY}{worker_id}"


def breaker(name: str) -> str:
    return f"{BREAKER}{name}"


def disk(worker_id: str) -> str:
    return f"{DISK}{worker_id.rpartition('-')[0].rpartition('-')[0] or worker_id}"  # one key a machine, not a process


def token(source_key: str) -> str:
    return f"{TOKEN}{source_key}"


def public_text(key: str, summary: str) -> str:
    """Returns a summary for the public: without reasons, which can contain addresses, and without host names."""
    if key.startswith(MEMORY):
        return "A worker is close to its memory limit"
    if key.startswith(DISK):
        return "A disk is almost full"
    if key.startswith(DELIVERY):
        return "One of the alert channels does not deliver"
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
