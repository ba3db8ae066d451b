"""Advice for each kind of alert: what still works, and what the operator should do."""

from __future__ import annotations

from dataclasses import dataclass

from monitoring.alerts import alert_keys
from scraping.errors import ERROR_RULES, ErrorClass

STILL_SERVED = "The last data of the match is still served, with its age."


@dataclass(frozen=True)
class Advice:
    """`group_text` describes several matches at once ("37 matches at Crex <group_text>")."""

    safe: str
    action: str
    group_text: str = ""
    sentry_event: str = ""


ADVICE: dict[str, Advice] = {
    alert_keys.STALE: Advice(
        f"{STILL_SERVED} Its scraper is replaced automatically.",
        "If it lasts, open the match and check its tasks and errors.",
        group_text="have had no update",
    ),
    alert_keys.ERROR_RATE: Advice(
        STILL_SERVED,
        "Check the match's errors: network or timeout: the connection; blocked: a slower pace; layout: the adapter.",
        group_text="have too many errors",
    ),
    alert_keys.DEAD: Advice(
        f"{STILL_SERVED} The task and its evidence are kept.",
        "Open the task, fix the cause, then press Retry.",
        group_text="have a dead task",
    ),
    alert_keys.DEAD_DISCOVERY: Advice(
        "Known matches are still polled.", "Open the dead task, fix the cause, press Retry."
    ),
    alert_keys.DEAD_ROUND: Advice(
        "No task of the round has started, so nothing is lost.", "Open the job, check the reason, press Retry."
    ),
    alert_keys.PAUSED: Advice(
        f"{STILL_SERVED} The pause ends automatically.",
        "Resume it from the match's page when the cause is gone.",
        group_text="are paused",
    ),
    alert_keys.PAUSED_LONG: Advice(
        STILL_SERVED,
        "Something keeps failing: check the match's errors before you resume it.",
        group_text="were paused for too long",
    ),
    alert_keys.LAYOUT: Advice(
        f"{STILL_SERVED} The page is tried every five minutes.",
        ERROR_RULES[ErrorClass.DRIFT].advice,
        group_text="have pages with an unknown layout",
        sentry_event="schema_break",
    ),
    alert_keys.CHANGED: Advice(
        "The last data of its matches is still served, with its age; single tasks probe the source.",
        ERROR_RULES[ErrorClass.DRIFT].advice,
        sentry_event="schema_break",
    ),
    alert_keys.BLOCKED: Advice(
        "The last data of its matches is still served, with its age; the pace is reduced automatically.",
        ERROR_RULES[ErrorClass.BLOCKED].advice,
        sentry_event="anti_bot_challenge",
    ),
    alert_keys.BREAKER: Advice(
        "The last data is still served, with its age; probes are sent automatically.",
        "`manage.py breaker list` shows the reason; if it opens repeatedly, check the errors.",
        group_text="are not polled after many failures",
        sentry_event="circuit_opened",
    ),
    alert_keys.MEMORY: Advice(
        "The browser, then the worker, is replaced in an orderly way before the limit.",
        "Give the worker fewer matches, or more memory and a higher limit.",
    ),
    alert_keys.NO_WORKER: Advice(
        "Tasks wait in the database; nothing is lost, and the last data is still served with its age.",
        "Start a worker (manage.py run_worker) and check in its log why the last one ended.",
    ),
    alert_keys.QUEUE: Advice(
        "Tasks wait in the database; nothing is lost, data only grows older.",
        "Start another worker, or watch fewer matches; check whether the workers answer (Health, Workers).",
    ),
    alert_keys.GRADE: Advice(
        "The last data is still served, with its age.",
        "Check the stalest matches on the admin's first page: one source, one worker, or all?",
    ),
    alert_keys.DISK: Advice(
        "Running tasks can still write; the worker takes no new ones.",
        "Free space: manage.py prune, old logs.",
    ),
    alert_keys.TOKEN: Advice(
        "The source's public data is still read.",
        "See the reason: 401 or 403 needs other SOURCE_CREDENTIALS, no answer ends by itself.",
    ),
    alert_keys.DRIFT: Advice(
        "Nothing has failed yet.",
        "Sources, Fill rates shows since when; the detail names the matches that lack the field.",
        sentry_event="data_integrity_degraded",
    ),
    alert_keys.SPARSE: Advice(
        "Nothing has failed; the fields that were read are served.",
        "Sources, Fill rates shows which fields are missing.",
        sentry_event="data_integrity_degraded",
    ),
    alert_keys.TRAFFIC: Advice(
        "Direct reads continue, also when the limit is reached.",
        "Sources, Traffic shows what costs so much; a larger limit takes effect within a minute.",
    ),
    alert_keys.INCOMPLETE: Advice(
        "The data that was read is still served.",
        "Open the source's own page: data that is missing there too will not come.",
        group_text="have ended and are not complete",
    ),
    alert_keys.SPOOL: Advice(
        "Readings of the outage were kept on disk and are written now, in order and once.",
        "Find out why the database was away; if updates were dropped, give workers a larger MAX_QUEUE_SIZE.",
    ),
    alert_keys.DELIVERY: Advice(
        "The alerts themselves are in the admin (Health, Alerts); other channels work.",
        "`manage.py alerts --test` shows the fault; then Health, Messages: Send again.",
    ),
    alert_keys.DATABASE: Advice(
        "Workers keep polling and store new readings on disk; the API serves its last data, with its age.",
        "Restore the database; everything is then written automatically. Do not remove VAR_DIR/spool.",
    ),
    alert_keys.TEST: Advice("Everything: nothing has happened.", "Nothing. Alerts are delivered this way."),
}
UNKNOWN = Advice("The last data is still served, with its age.", "Open the alert in the admin.")


def alert_kind(key: str) -> str:
    """Returns the longest known prefix of an alert key; empty if none is known."""
    known = (start for start in ADVICE if key == start or (start.endswith(":") and key.startswith(start)))
    return max(known, key=len, default="")


def advice(key: str) -> Advice:
    return ADVICE.get(alert_kind(key), UNKNOWN)
