"""The kinds of alerts and their advice. A key is a kind and its subject, as `stale:17`. See docs/operations.md."""

from __future__ import annotations

from typing import Self

from django.urls import reverse

from monitoring.models import Alert
from scraping.errors import ERROR_RULES, ErrorClass

STILL_SERVED = "The last data of the match is still served, with its age."


class AlertKind(str):
    """The prefix of the keys of one kind of alert; the whole key of a kind without a subject.

    `safe`: what still works. `action`: advice for operators.
    """

    safe: str
    action: str
    sentry_event: str

    def __new__(cls, prefix: str, safe: str, action: str, sentry_event: str = "") -> Self:
        kind = super().__new__(cls, prefix)
        kind.safe, kind.action, kind.sentry_event = safe, action, sentry_event
        return kind

    def of(self, *subject: object) -> str:
        """Returns the key of one alert."""
        return self + ":".join(map(str, subject))


STALE = AlertKind(  # of a match
    "stale:",
    f"{STILL_SERVED} Its scraper is replaced automatically.",
    "If it lasts, open the match and check its tasks and errors.",
)
ERROR_RATE = AlertKind(  # of a match
    "errors:",
    STILL_SERVED,
    "Check the match's errors: network or timeout: the connection; blocked: a slower pace; layout: the adapter.",
)
DEAD = AlertKind(  # of a match with a dead task
    "dead:",
    f"{STILL_SERVED} The task and its evidence are kept.",
    "Open the task, fix the cause, then press Retry.",
)
DEAD_DISCOVERY = AlertKind(  # of a source
    "dead-discovery:", "Known matches are still polled.", "Open the dead task, fix the cause, press Retry."
)
DEAD_ROUND = AlertKind(  # of a job
    "dead-round:",
    "No task of the round has started, so nothing is lost.",
    "Open the job, check the reason, press Retry.",
)
PAUSED = AlertKind(  # of a match
    "paused:",
    f"{STILL_SERVED} The pause ends automatically.",
    "Resume it from the match's page when the cause is gone.",
)
PAUSED_LONG = AlertKind(  # of a live match that was paused for too long in the last hour
    "paused-long:",
    STILL_SERVED,
    "Something keeps failing: check the match's errors before you resume it.",
)
LAYOUT = AlertKind(  # of a match whose page cannot be parsed
    "layout:",
    f"{STILL_SERVED} The page is tried every five minutes.",
    ERROR_RULES[ErrorClass.DRIFT].advice,
    sentry_event="schema_break",
)
INCOMPLETE = AlertKind(  # of a match that has ended with missing data
    "incomplete:",
    "The data that was read is still served.",
    "Open the source's own page: data that is missing there too will not come.",
)
BREAKER = AlertKind(  # of a breaker, by name
    "breaker:",
    "The last data is still served, with its age; probes are sent automatically.",
    "`manage.py breaker list` shows the reason; if it opens repeatedly, check the errors.",
    sentry_event="circuit_opened",
)
CHANGED = AlertKind(  # of a source whose readings cannot be parsed any more
    "changed:",
    "The last data of its matches is still served, with its age; single tasks probe the source.",
    ERROR_RULES[ErrorClass.DRIFT].advice,
    sentry_event="schema_break",
)
BLOCKED = AlertKind(  # of a source that keeps refusing requests
    "blocked:",
    "The last data of its matches is still served, with its age; the pace is reduced automatically.",
    ERROR_RULES[ErrorClass.BLOCKED].advice,
)
CHALLENGE = AlertKind(  # of a source whose bot challenge a fresh session did not pass
    "challenge:",
    "The last data of its matches is still served, with its age; no further sessions or proxies are used up.",
    ERROR_RULES[ErrorClass.CHALLENGE].advice,
    sentry_event="anti_bot_challenge",
)
ROBOTS = AlertKind(  # of a source whose robots.txt forbids what is read
    "robots:",
    "Nothing was sent. The last data of its matches is still served, with its age.",
    "Disable the source, or set its robots policy if its operator allows the reading.",
)
TOKEN = AlertKind(  # of a source without a token
    "token:",
    "The source's public data is still read.",
    "See the reason: 401 or 403 needs other SOURCE_CREDENTIALS, no answer ends by itself.",
)
DRIFT = AlertKind(  # of a source, payload schema and field that is filled less often than before
    "drift:",
    "Nothing has failed yet.",
    "Sources, Fill rates shows since when; the detail names the matches that lack the field.",
    sentry_event="data_integrity_degraded",
)
SPARSE = AlertKind(  # of a source that leaves too many of the wanted fields empty
    "sparse:",
    "Nothing has failed; the fields that were read are served.",
    "Sources, Fill rates shows which fields are missing.",
    sentry_event="data_integrity_degraded",
)
TRAFFIC = AlertKind(  # of a source that has used most of its daily traffic budget
    "traffic:",
    "Direct reads continue, also when the limit is reached.",
    "Sources, Traffic shows what costs so much; a larger limit takes effect within a minute.",
)
MEMORY = AlertKind(  # of a worker
    "memory:",
    "The browser, then the worker, is replaced in an orderly way before the limit.",
    "Give the worker fewer matches, or more memory and a higher limit.",
)
DISK = AlertKind(  # of a machine
    "disk:",
    "Running tasks can still write; the worker takes no new ones.",
    "Free space: manage.py prune, old logs.",
)
DELIVERY = AlertKind(  # of a channel that does not deliver messages
    "delivery:",
    "The alerts themselves are in the admin (Health, Alerts); other channels work.",
    "`manage.py alerts --test` shows the fault. What was not delivered is sent when it is corrected.",
)
NO_WORKER = AlertKind(
    "no-worker",
    "Tasks wait in the database; nothing is lost, and the last data is still served with its age.",
    "Start a worker (manage.py run_worker) and check in its log why the last one ended.",
)
QUEUE = AlertKind(
    "queue",
    "Tasks wait in the database; nothing is lost, data only grows older.",
    "Start another worker, or watch fewer matches; check whether the workers answer (Health, Workers).",
)
REDIS = AlertKind(
    "redis",
    "Workers take their tasks from the database, and each web process limits requests by itself; nothing is lost.",
    "Start Redis, or check its memory and its network. Everything uses it again within a second.",
)
SPOOL = AlertKind(
    "spool",
    "Readings of the outage were kept on disk and are written now, in order and once.",
    "Find out why the database was away; if updates were dropped, give workers a larger MAX_QUEUE_SIZE.",
)
GRADE = AlertKind(
    "grade",
    "The last data is still served, with its age.",
    "Check the stalest matches on the admin's first page: one source, one worker, or all?",
)
DATABASE = AlertKind(
    "database",
    "Workers keep polling and store new readings on disk; the API serves its last data, with its age.",
    "Restore the database; everything is then written automatically. Do not remove VAR_DIR/spool.",
)
TEST = AlertKind(  # of `manage.py alerts --test`
    "test", "Everything: nothing has happened.", "Nothing. Alerts are delivered this way."
)
KINDS = tuple(value for value in list(globals().values()) if isinstance(value, AlertKind))
UNKNOWN = AlertKind("", "The last data is still served, with its age.", "Open the alert in the admin.")
PUBLIC_TEXTS = {
    MEMORY: "A worker is close to its memory limit",
    DISK: "A disk is almost full",
    DELIVERY: "One of the alert channels does not deliver",
}
PUBLIC_ENDINGS = {DEAD_DISCOVERY: "is dead", DEAD_ROUND: "is dead", CHANGED: "has changed"}
# Alerts about a match: a summary has its title, which is match data.
PUBLIC_MATCH_TEXTS = {
    STALE: "{} has had no update for too long",
    ERROR_RATE: "{} has too many errors",
    DEAD: "A task of {} is dead",
    PAUSED: "{} is paused",
    PAUSED_LONG: "{} is live and was paused for too long",
    LAYOUT: "The page of {} has changed",
    INCOMPLETE: "{} has ended and is not complete",
    BREAKER: "{} is not polled after many failures",
}


def kind_of(key: str) -> AlertKind:
    return next((kind for kind in KINDS if key == kind or (kind.endswith(":") and key.startswith(kind))), UNKNOWN)


def incident_path(alert: Alert) -> str:
    """Returns the path of the time line of the alert's match, or of its source; empty for other alerts."""
    kind, detail = kind_of(alert.key), alert.detail
    if match_id := detail.get("match_id"):
        return reverse("incident", args=["match", match_id])
    if kind == BREAKER and detail.get("source"):
        return reverse("incident", args=["source", alert.key.removeprefix(kind).removesuffix("_source")])
    key = detail.get("source") or (alert.key.removeprefix(kind) if kind == DEAD_DISCOVERY else "")
    return reverse("incident", args=["source", key]) if key else ""


def dead_task(*, match_id: int | None, source_key: str, job_id: int | None) -> str:
    """Returns the key of a dead task: of its match, of its job's round, or of its source's discovery."""
    if match_id is not None:
        return DEAD.of(match_id)
    return DEAD_ROUND.of(job_id) if job_id is not None else DEAD_DISCOVERY.of(source_key)


def disk(worker_id: str) -> str:
    """Returns one key for all workers of a machine: a worker's id ends with its process and a number."""
    return DISK.of(worker_id.rpartition("-")[0].rpartition("-")[0] or worker_id)


def public_text(alert: Alert, match_key: str) -> str:
    """Returns the text of an alert for the public: without teams, hosts, and reasons, which can contain addresses.

    `match_key`: the public key of the match that it is about; empty for other alerts.
    """
    kind = kind_of(alert.key)
    if match_key:
        return PUBLIC_MATCH_TEXTS.get(kind, "An alert about {} is open").format(match_key)
    if ending := PUBLIC_ENDINGS.get(kind):
        return f"{alert.summary.partition(f' {ending}: ')[0]} {ending}"
    return PUBLIC_TEXTS.get(kind, alert.summary)
