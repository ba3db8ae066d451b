"""What a person who gets an alert wants to know besides what happened: what is safe, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from monitoring.alerts import causes
from scraping.errors import ERROR_RULES, ErrorClass

KEPT = "What is known of the match stays served, with its age."


@dataclass(frozen=True)
class Advice:
    """`many`: what is said of several matches at once ("37 matches at Crex <many>"). `event`: its name in Sentry."""

    safe: str
    do: str
    many: str = ""
    event: str = ""


ADVICE: dict[str, Advice] = {
    causes.STALE: Advice(
        f"{KEPT} Its scraper is replaced by itself.",
        "If it lasts, open the match and look at its tasks and errors.",
        many="have had no update",
    ),
    causes.ERROR_RATE: Advice(
        KEPT,
        "Look at the match's errors: network or timeout is the line, blocked wants a slower pace, layout an adapter.",
        many="have too many errors",
    ),
    causes.DEAD: Advice(
        f"{KEPT} The task and its evidence are kept.",
        "Open the task, mend the cause, then press Retry.",
        many="have a dead task",
    ),
    causes.DEAD_DISCOVERY: Advice("Matches that are known go on.", "Open the dead task, mend the cause, press Retry."),
    causes.DEAD_ROUND: Advice(
        "Nothing of the round has begun, nothing is lost.", "Open the job, see why, press Retry."
    ),
    causes.PAUSED: Advice(
        f"{KEPT} The pause ends at its time by itself.",
        "Resume it from the match's page when the cause is gone.",
        many="are paused",
    ),
    causes.PAUSED_LONG: Advice(
        KEPT,
        "Something keeps failing: look at the match's errors before you resume it.",
        many="were paused for too long",
    ),
    causes.LAYOUT: Advice(
        f"{KEPT} The page is tried every five minutes.",
        ERROR_RULES[ErrorClass.DRIFT].advice,
        many="have pages that nobody understands",
        event="schema_break",
    ),
    causes.CHANGED: Advice(
        "What is known of its matches stays served, with its age; one task tries now and then.",
        ERROR_RULES[ErrorClass.DRIFT].advice,
        event="schema_break",
    ),
    causes.BLOCKED: Advice(
        "What is known of its matches stays served, with its age; we go more slowly by ourselves.",
        ERROR_RULES[ErrorClass.BLOCKED].advice,
        event="anti_bot_challenge",
    ),
    causes.BREAKER: Advice(
        "What is known stays served, with its age; it is tried again by itself.",
        "`manage.py breaker list` shows why; if it opens again and again, look at the errors.",
        many="are left alone after many failures",
        event="circuit_opened",
    ),
    causes.MEMORY: Advice(
        "The browser, then the worker, is replaced in good order before the limit.",
        "Fewer matches a worker, or more memory and a higher limit.",
    ),
    causes.NO_WORKER: Advice(
        "Tasks wait in the database; nothing is lost, and what is known stays served with its age.",
        "Start a worker (manage.py run_worker) and see in its log why the last one ended.",
    ),
    causes.QUEUE: Advice(
        "Tasks wait in the database; nothing is lost, data only grows older.",
        "Start another worker, or watch fewer matches; see whether the workers answer (Health, Workers).",
    ),
    causes.GRADE: Advice(
        "What is known stays served, with its age.",
        "Look at the stalest matches on the admin's first page: one source, one worker, or all?",
    ),
    causes.DISK: Advice(
        "What is in hand can still be written; the worker takes nothing new.",
        "Free space: manage.py prune, old logs.",
    ),
    causes.TOKEN: Advice(
        "What the source tells everybody is read on.",
        "See the reason: 401 or 403 wants other SOURCE_CREDENTIALS, no answer ends by itself.",
    ),
    causes.DRIFT: Advice(
        "Nothing has failed yet.",
        "Sources, Fill rates shows since when; the detail names the matches that lack the field.",
        event="data_integrity_degraded",
    ),
    causes.SPARSE: Advice(
        "Nothing has failed; what is there is served.",
        "Sources, Fill rates shows which fields are missing.",
        event="data_integrity_degraded",
    ),
    causes.TRAFFIC: Advice(
        "Direct reads go on, also when the limit is reached.",
        "Sources, Traffic shows what costs so much; a larger limit takes effect within a minute.",
    ),
    causes.INCOMPLETE: Advice(
        "What is known stays served.",
        "Look at the source's own page: what it lacks too will not come.",
        many="have ended and are not complete",
    ),
    causes.SPOOL: Advice(
        "What was read meanwhile was kept on disk and is written now, in order and once.",
        "Find out why the database was away; if updates were dropped, give workers a larger MAX_QUEUE_SIZE.",
    ),
    causes.DELIVERY: Advice(
        "The alerts themselves are in the admin (Health, Alerts); other channels work.",
        "`manage.py send_test_alert` says what is wrong; then Health, Messages: Send again.",
    ),
    causes.DATABASE: Advice(
        "Workers poll on and keep what is new on disk; the API answers from what is known last, with its age.",
        "Bring the database back; everything is written by itself then. Do not remove VAR_DIR/spool.",
    ),
    causes.TEST: Advice("Everything: nothing has happened.", "Nothing. Alerts reach you this way."),
}
UNKNOWN = Advice("What is known stays served, with its age.", "Open the alert in the admin.")


def family(key: str) -> str:
    """Of which kind an alert is: the longest beginning that we know."""
    known = (start for start in ADVICE if key == start or (start.endswith(":") and key.startswith(start)))
    return max(known, key=len, default="")


def advice(key: str) -> Advice:
    return ADVICE.get(family(key), UNKNOWN)
