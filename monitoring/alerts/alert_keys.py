"""The keys of alerts: a kind, and the match, source, worker or channel it concerns. See docs/operations.md."""

from __future__ import annotations


class AlertKind(str):
    """The prefix of the keys of one kind of alert. A kind without a subject is a plain string: the key itself."""

    __slots__ = ()

    def of(self, *subject: object) -> str:
        """Returns the key of one alert, as `stale:17`."""
        return self + ":".join(map(str, subject))


STALE = AlertKind("stale:")  # of a match
ERROR_RATE = AlertKind("errors:")  # of a match
DEAD = AlertKind("dead:")  # of a match with a dead task
DEAD_DISCOVERY = AlertKind("dead-discovery:")  # of a source
DEAD_ROUND = AlertKind("dead-round:")  # of a job
PAUSED = AlertKind("paused:")  # of a match
PAUSED_LONG = AlertKind("paused-long:")  # of a live match that was paused for too long in the last hour
LAYOUT = AlertKind("layout:")  # of a match whose page cannot be parsed
INCOMPLETE = AlertKind("incomplete:")  # of a match that has ended with missing data
BREAKER = AlertKind("breaker:")  # of a breaker, by name
CHANGED = AlertKind("changed:")  # of a source whose readings cannot be parsed any more
BLOCKED = AlertKind("blocked:")  # of a source that keeps refusing requests or showing challenges
TOKEN = AlertKind("token:")  # of a source without a token
DRIFT = AlertKind("drift:")  # of a source, payload schema and field that is filled less often than before
SPARSE = AlertKind("sparse:")  # of a source that leaves too many of the wanted fields empty
TRAFFIC = AlertKind("traffic:")  # of a source that has used most of its daily traffic budget
MEMORY = AlertKind("memory:")  # of a worker
DISK = AlertKind("disk:")  # of a machine
DELIVERY = AlertKind("delivery:")  # of a channel that does not deliver messages
NO_WORKER = "no-worker"
QUEUE = "queue"
SPOOL = "spool"
GRADE = "grade"
DATABASE = "database"
TEST = "test"  # of `manage.py alerts --test`


def dead_task(*, match_id: int | None, source_key: str, job_id: int | None) -> str:
    """Returns the key of a dead task: of its match, of its job's round, or of its source's discovery."""
    if match_id is not None:
        return DEAD.of(match_id)
    return DEAD_ROUND.of(job_id) if job_id is not None else DEAD_DISCOVERY.of(source_key)


def disk(worker_id: str) -> str:
    """Returns one key for all workers of a machine: a worker's id ends with its process and a number."""
    return DISK.of(worker_id.rpartition("-")[0].rpartition("-")[0] or worker_id)


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
