"""The error log: failed attempts as rows, grouped by cause, and how each was resolved.

Sole writer of ScrapeError and ErrorGroup.
"""

from __future__ import annotations

import hashlib
import re
import time
import traceback
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F, Max, Q, QuerySet

from scraping.configuration import policies
from scraping.errors import ERROR_RULES, ErrorClass, ErrorRule, ScrapingError
from scraping.models import Breaker, BreakerState, ErrorGroup, MatchRef, ScrapeError, TaskState, TaskTransition
from scraping.payloads import Resource
from scraping.readings import RequestFacts, attempt_facts
from scraping.signals import errors_resolved, group_changed, layout_found
from victoryline.lib.redaction import clean, clean_document, printable

EVIDENCE_LENGTH = 20_000
AUTO_RETRY, RESTART, CIRCUIT_BREAKER, MANUAL = "auto_retry", "restart", "circuit_breaker", "manual"
# Parts that differ between two failures of one cause: addresses, quoted data, short keys, words with a digit.
# Names of fields and selectors are in backticks or bare, and do count.
_VOLATILE = re.compile(r"https?://\S+|(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|\b[0-9A-Z]{3,4}\b|\b[\w-]*\d[\w-]*\b")
_OUR_CODE = re.compile(r"/(?:scraping|victoryline|monitoring|apiauth)/")


@dataclass(frozen=True)
class ErrorReport:
    """One failed attempt: the error's class, code and message, and its context.

    `names`: the names of the match and its teams, and its keys.
    """

    source_id: int
    error: BaseException
    operation: str
    attempt: int
    now: datetime
    task_id: int | None = None
    match_id: int | None = None
    scraper_id: UUID | None = None
    url: str = ""
    match_key: str = ""  # its public name at the source
    where: str = ""  # the same, or what else was read
    names: tuple[str, ...] = ()
    stage: str = ""

    @property
    def known(self) -> ScrapingError | None:
        """The error; None if it is a bug."""
        return self.error if isinstance(self.error, ScrapingError) else None

    @property
    def error_class(self) -> ErrorClass:
        return self.known.error_class if self.known else ErrorClass.BUG

    @property
    def rule(self) -> ErrorRule:
        return ERROR_RULES[self.error_class]

    @property
    def error_code(self) -> str:
        """The error more exactly than its class: timeout, layout, schema, robots and the like."""
        return self.known.error_code if self.known else "bug"

    @property
    def message(self) -> str:
        return storable(str(self.error))

    @property
    def http_status(self) -> int | None:
        return self.known.http_status if self.known else None

    @property
    def failed_url(self) -> str:
        return (self.known.url if self.known else "") or self.url

    @property
    def stack_trace(self) -> str:
        """Empty unless it is a bug."""
        return "" if self.known else storable("".join(traceback.format_exception(self.error))[-8000:])

    @property
    def fingerprint(self) -> str:
        """A hash that is equal for failures of one cause: without numbers, keys, addresses and names.

        A bug is identified by its place in the code, because its message is mostly about the data.
        """
        error = self.error
        essence = _normalized(str(error), self.names) if self.known else _place(error)
        key = f"{self.source_id}|{self.error_class}|{type(error).__name__}|{essence}"
        return hashlib.sha256(key.encode()).hexdigest()


def storable(text: str, limit: int | None = None) -> str:
    """Returns the text without secrets, and without the NUL characters that PostgreSQL refuses."""
    return clean(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")[:limit]


def _normalized(message: str, names: Iterable[str]) -> str:
    for name in sorted({name for name in names if len(name) > 1}, key=len, reverse=True):
        message = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "#", message)
    return _VOLATILE.sub("#", message)


def _place(error: BaseException) -> str:
    """Returns our function that raised it and the one it called; without a traceback, the message."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [index for index, frame in enumerate(frames) if _OUR_CODE.search(frame.filename)]
    if not ours:
        return _normalized(str(error), ())
    return "|".join(f"{frame.filename.rpartition('/')[2]}:{frame.name}" for frame in frames[ours[-1] : ours[-1] + 2])


def record(report: ErrorReport) -> ScrapeError:
    facts = attempt_facts.get()
    return ScrapeError.objects.create(
        scraper_id=report.scraper_id,
        task_id=report.task_id,
        match_id=report.match_id,
        match_key=report.match_key,
        group_id=_count_in_group(report),
        timestamp=report.now,
        error_class=report.error_class.value,
        error_type=report.rule.error_type.value,
        error_code=report.error_code,
        error_message=report.message[:2000],
        stack_trace=report.stack_trace,
        url=storable(report.failed_url, 500),
        operation=report.operation,
        http_status=report.http_status,
        retry_attempt=report.attempt,
        stage=report.stage,
        duration_ms=max(0, round((time.monotonic() - facts.began) * 1000)) if facts else None,
        requests=[_request_document(one) for one in facts.requests] if facts else [],
        evidence=storable(clean_document(report.known.evidence), EVIDENCE_LENGTH) if report.known else "",
    )


def _request_document(request: RequestFacts) -> dict[str, Any]:
    """Returns a request for people, without query and secrets."""
    host, slash, path = request.url.partition("?")[0].partition("#")[0].rpartition("://")[2].partition("/")
    address = clean_document(host.rpartition("@")[2] + slash + path)
    return {
        "method": request.method,
        "address": storable(printable(address, 300)),
        "status": request.status,
        "bytes": request.size,
        "ms": request.milliseconds,
        "error": storable(printable(clean_document(request.error), 300)),
    }


def was_reported(report: ErrorReport, *, within: timedelta) -> bool:
    """Returns whether the same error was recorded lately."""
    recent = ScrapeError.objects.filter(timestamp__gt=report.now - within)
    return recent.filter(group__fingerprint=report.fingerprint).exists()


def _count_in_group(report: ErrorReport) -> int:
    """Returns the group's id. Counting first locks its row, so that retention cannot delete it meanwhile."""
    group = ErrorGroup.objects.filter(fingerprint=report.fingerprint)
    if not group.update(count=F("count") + 1, last_seen_at=report.now):
        ErrorGroup.objects.get_or_create(
            fingerprint=report.fingerprint,
            defaults={
                "source_id": report.source_id,
                "error_class": report.error_class.value,
                "error_code": report.error_code,
                "sample_message": report.message[:500],
                "first_seen_at": report.now,
                "last_seen_at": report.now,
            },
        )
        group.update(count=F("count") + 1, last_seen_at=report.now)
    pk, resolved_at, version = group.values_list("pk", "resolved_at", "resolved_in").get()
    if resolved_at and _parts(settings.VERSION) > _parts(version):
        why = f"seen again in version {settings.VERSION}"
        change_group(pk, "group_reopened", reason=why, actor="worker", now=report.now, resolved_at=None, resolved_in="")
    return pk


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def change_group(pk: int, action: str, *, reason: str, actor: str, now: datetime, **columns: Any) -> None:
    """Writes the decision of an operator about a group: assigned_to, muted_until."""
    ErrorGroup.objects.filter(pk=pk).update(**columns)
    group = str(ErrorGroup.objects.get(pk=pk))
    group_changed.send_robust(sender=ErrorGroup, group=group, action=action, reason=reason, actor=actor, now=now)


def resolve_group(pk: int, *, in_version: str = "", actor: str, now: datetime) -> None:
    """Resolves a group and its open errors until the next error; with a version, until one of a newer version."""
    why = f"resolved in the release after {in_version}" if in_version else "resolved by hand"
    change_group(pk, "group_resolved", reason=why, actor=actor, now=now, resolved_at=now, resolved_in=in_version)
    _close(ScrapeError.objects.filter(group=pk, resolved=False), MANUAL, now)


def parse_failures_in_a_row(*, match_id: int, source_id: int, at_most: int) -> int:
    latest = _open_errors(source_id, match_id).order_by("-pk").values_list("error_class", flat=True)[:at_most]
    return sum(1 for _ in takewhile(lambda error_class: error_class == ErrorClass.DRIFT, latest))


def _open_errors(source_id: int, match_id: int | None) -> QuerySet[ScrapeError]:
    """Returns open errors of a match at a source; without a match, of the source's list of matches."""
    return ScrapeError.objects.filter(match=match_id, resolved=False, group__source_id=source_id)


def resolve(ref: MatchRef, *, now: datetime) -> int:
    """Resolves the open errors of a match that was read again, each with how it was resolved."""
    resolved = _resolve(_open_errors(ref.source_id, ref.match_id), now, ref)
    if resolved > policies.current().drift.failures:
        layout_found.send_robust(sender=ScrapeError, match_id=ref.match_id)
    return resolved


def resolve_listing(source_id: int, *, now: datetime) -> int:
    """Resolves the errors of a source's list of matches that was read again."""
    return _resolve(_open_errors(source_id, None).filter(operation=Resource.DISCOVERY), now)


def resolve_task(task_id: int, *, now: datetime) -> int:
    """Resolves the errors of a task without a match (the list of a round) that succeeded."""
    return _resolve(ScrapeError.objects.filter(task_id=task_id, resolved=False), now)


def resolve_by_hand(error_ids: Collection[int], *, actor: str, now: datetime) -> int:
    resolved = _close(ScrapeError.objects.filter(pk__in=error_ids, resolved=False), MANUAL, now)
    if resolved:
        errors_resolved.send_robust(sender=ScrapeError, count=resolved, actor=actor)
    return resolved


def resolve_discarded(task_ids: Collection[int], *, now: datetime) -> int:
    return _close(ScrapeError.objects.filter(task__in=task_ids, resolved=False), MANUAL, now)


def _resolve(errors: QuerySet[ScrapeError], now: datetime, ref: MatchRef | None = None) -> int:
    """Closes errors after a success. The method: a person's retry, else a fresh scraper, else a breaker, else ours."""
    rows = list(errors.values_list("pk", "timestamp", "task_id", "scraper_id"))
    if not rows:  # the usual case: this runs after every poll of a match that is not live
        return 0
    active, is_breaker_moved = None, False
    if ref is not None:
        active = ref.scrapers.filter(stopped_at__isnull=True).values_list("pk", flat=True).first()
        moved = Breaker.objects.exclude(state=BreakerState.CLOSED)
        is_breaker_moved = moved.filter(Q(ref=ref) | Q(source_id=ref.source_id)).exists()
    # Only a person's retry reopens a dead task.
    asked = TaskTransition.objects.filter(
        task_id__in={task_id for _, _, task_id, _ in rows if task_id},
        from_state=TaskState.DEAD,
        to_state=TaskState.PENDING,
    )
    retried: dict[int | None, datetime] = dict(asked.order_by().values_list("task_id").annotate(at=Max("at")))
    by_method: dict[str, list[int]] = defaultdict(list)
    for pk, happened_at, task_id, scraper_id in rows:
        if task_id in retried and retried[task_id] >= happened_at:
            method = MANUAL
        elif scraper_id and active and scraper_id != active:
            method = RESTART
        else:
            method = CIRCUIT_BREAKER if is_breaker_moved else AUTO_RETRY
        by_method[method].append(pk)
    return sum(_close(ScrapeError.objects.filter(pk__in=pks), method, now) for method, pks in by_method.items())


def _close(errors: QuerySet[ScrapeError], method: str, now: datetime) -> int:
    return errors.update(resolved=True, resolution_time=now, resolution_method=method)
