"""The log line of an attempt: one for each, good or bad, with what was read, what it cost and how complete it is.

Guards the log against its own size: polls without a change, which most are, write a line now and then only
(LOG_UNCHANGED_EVERY). That is decided before anything is rendered, because a line costs 0.1 ms and a poll only a few.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from structlog.contextvars import get_contextvars

from scraping.journal import Claim
from scraping.journal.error_log import ErrorReport
from scraping.models import Stage
from scraping.policies.retry import Complete, Dead, Decision, Retry, Skip
from scraping.readings import AttemptFacts, attempt_facts, evidence_of
from victoryline.lib.redaction import clean_document

logger = logging.getLogger(__name__)

MAX_MISSING_FIELDS, MAX_REQUESTS = 10, 6
SUCCESS, SOFT_FAIL, HARD_FAIL, SKIPPED = "success", "soft_fail", "hard_fail", "skipped"


def succeeded(claim: Claim) -> None:
    """Writes the line of an attempt that succeeded. Runs in the context of the attempt."""
    facts = attempt_facts.get()
    if facts is None or not facts.is_shown or not logger.isEnabledFor(logging.INFO):
        return
    result = {
        "status": SKIPPED if facts.outcome == SKIPPED else SUCCESS,
        "error_type": None,
        "http_status": facts.http_status,
    }
    names = get_contextvars()
    logger.info(
        "%s: %s%s, %s",
        names.get("match_id") or names.get("source"),
        claim.resource.value,
        f" by {facts.mode}" if facts.mode else "",
        facts.outcome,
        extra={"action": "attempt", **_fields(claim, facts, Stage.DONE, result)},
    )


def failed(claim: Claim, report: ErrorReport, decision: Decision, stage: Stage) -> None:
    """Writes the line of an attempt that failed, with everything that explains it."""
    error, rule, facts = report.error, report.rule, attempt_facts.get() or AttemptFacts()
    facts.scraper_id = report.scraper_id
    match decision:
        case Retry(at=at):
            level, then = logging.WARNING, f"next attempt at {at:%H:%M:%S} UTC"
        case Dead():
            level, then = logging.ERROR, f"dead letter. {rule.advice} Then retry it in the admin"
        case Complete():
            level, then = logging.INFO, "the match is taken as completed"
        case Skip():
            level, then = logging.ERROR, f"skipped. {rule.advice}"
    result = {
        "status": SKIPPED if isinstance(decision, Complete | Skip) else SOFT_FAIL if rule.is_soft else HARD_FAIL,
        "error_type": report.error_code,
        "http_status": report.http_status,
    }
    logger.log(
        level,
        "Reading %s failed (%s): %s; %s",
        report.where,
        report.error_code,
        error,
        then,
        exc_info=error if level >= logging.ERROR else None,
        extra={
            "action": "attempt_failed",
            "error_class": report.error_class.value,
            "error_type": rule.error_type.value,
            "error_code": report.error_code,
            "error_message": str(error)[:500],
            "url": clean_document(report.failed_url),
            "selector": report.known.selector if report.known else "",
            "requests": _requests(error),
            **_fields(claim, facts, stage, result),
        },
    )


def _requests(error: BaseException) -> list[dict[str, Any]]:
    """Returns the responses of the attempt in short."""
    return [
        {
            "name": one.name,
            "url": clean_document(one.url),
            "status": one.status,
            "content_type": one.content_type,
            "bytes": one.wire_bytes or len(one.body),
        }
        for one in evidence_of(error).documents[:MAX_REQUESTS]
    ]


def _fields(claim: Claim, facts: AttemptFacts, state: Stage, result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that the lines of all attempts share; job, task, match and source are in the context."""
    session, integrity = facts.session, facts.integrity
    return {
        "resource": claim.resource.value,
        "attempt": claim.attempt,
        "state": state.value,
        "scraper_id": str(facts.scraper_id) if facts.scraper_id else None,
        "read_mode": facts.mode,
        "proxy": {
            "proxy_pool": session.proxy_pool if session else "",
            "geo": session.geo if session else "",
            "session_id": session.session_id if session else "",
            "ip_hash": session.ip_hash if session else "",
        },
        "network": {
            "bytes_in_est": facts.bytes_in,
            "requests_total": facts.requests_made,
            "requests_blocked": facts.requests_blocked,
            "xhr_captured_count": facts.captured,
        },
        "result": {**result, "duration_ms": round((time.monotonic() - facts.began) * 1000)},
        "integrity": {
            "schema_version": facts.schema_version,
            "null_field_rate": integrity.null_field_rate if integrity else None,
            "missing_required_fields": list(integrity.missing_fields[:MAX_MISSING_FIELDS]) if integrity else [],
        },
    }
