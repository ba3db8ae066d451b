"""Admin of the journal: read-only, except that tasks can be retried, discarded and cancelled.

The page of a task says what happened and what to do next, with its error group and evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scraping import jobs, journal
from scraping.admin import search
from scraping.admin.evidence import links, preview
from scraping.errors import ERROR_RULES, ErrorClass
from scraping.journal import RetryOutcome, TaskSelection
from scraping.models import OPEN_STATES, ErrorGroup, Evidence, EvidenceKind, ScrapeError, ScrapeTask, TaskState
from scraping.payloads import Resource
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    HistoryAdmin,
    HistoryInline,
    ReasonForm,
    choice_filter,
    column,
)
from victoryline.lib.operator_actions import OperationResult, OperatorAction, OperatorActionsMixin, OperatorCall, Run
from victoryline.lib.shown import duration

MAX_STEPS, MAX_TABLES = 60, 3
WHEN = "%d %b %Y %H:%M:%S UTC"
STATE_COLOURS = {
    TaskState.SUCCESS.value: GOOD,
    TaskState.DEAD.value: BAD,
    TaskState.FAILED.value: CAREFUL,
    TaskState.EXECUTING.value: NEWS,
}
RESOURCE_VERBS: dict[str, str] = {
    Resource.SCORECARD: "Reading",
    Resource.COMMENTARY: "Filling the gaps in the events of",
    Resource.FULL: "Reading the whole of",
    Resource.DISCOVERY: "Looking for matches at",
    Resource.ROUND: "Looking up the matches of a round at",
    Resource.LINEUPS: "Reading the line-ups of",
    Resource.FIGURES: "Reading the players' figures of",
    Resource.SUBMISSION: "Writing the submissions for",
}
OPEN_DEAD = Q(resolved=False, task__state=TaskState.DEAD)  # errors of dead tasks whose match was not read since


# Most tasks have succeeded: there no index helps, and SQLite would use one and then sort all of them.
FEW = [state for state in TaskState if state != TaskState.SUCCESS]
STATES: dict[str, Callable[[], Q]] = {state.value: partial(Q, state=state) for state in FEW}
STATES[TaskState.SUCCESS.value] = lambda: ~Q(state__in=FEW)
StateFilter = choice_filter("state__exact", {name: (name, is_in) for name, is_in in STATES.items()}, title="state")


def what_happened(task: ScrapeTask) -> str:
    subject = f"{RESOURCE_VERBS[task.resource]} {task.ref.match if task.ref else task.source}"
    where = f"at {task.source}" if task.ref else ""
    attempts = f"{task.attempt} {'attempt' if task.attempt == 1 else 'attempts'}"
    match task.state:
        case TaskState.DEAD | TaskState.FAILED:
            at = f"{task.finished_at:{WHEN}}" if task.finished_at else "an unknown time"
            text = f"{subject} {where} was given up at {at} after {attempts}, at the stage {task.stage}: {task.reason}"
        case TaskState.PENDING if task.reason:
            text = f"{subject} {where} has failed ({task.reason}) and is tried again at {task.run_at:{WHEN}}"
        case TaskState.PENDING:
            text = f"{subject} {where} is due at {task.run_at:{WHEN}}"
        case TaskState.EXECUTING:
            text = f"{subject} {where} is under way, attempt {task.attempt}, since {task.started_at:{WHEN}}"
        case TaskState.SUCCESS:
            text = f"{subject} {where} succeeded at {task.finished_at:{WHEN}}, after {attempts}"
        case _:
            text = f"{subject} {where} was {task.state.lower()}: {task.reason or 'no reason given'}"
    return " ".join(text.split())


def what_next(task: ScrapeTask) -> str:
    if task.state in (TaskState.SUCCESS, TaskState.SKIPPED, TaskState.CANCELLED, TaskState.DISCARDED):
        return "Nothing: the task has ended. Errors on the way are listed below."
    if task.state not in (TaskState.DEAD, TaskState.FAILED):
        return "Nothing: the task is retried automatically."
    advice = ERROR_RULES[ErrorClass(task.error_class)].advice if task.error_class else "Check the reason above."
    return (
        f"{advice} Then press Retry: the task is due at once, with all of its attempts. Discard it if it is not needed."
    )


def _evidence_of(task: ScrapeTask) -> list[Evidence]:
    """Returns the task's evidence, else the newest of its error group and match (stored once a group)."""
    own = list(Evidence.objects.filter(error__task=task).order_by("pk"))
    error = _last_error(task)
    if own or error is None or error.group_id is None:
        return own
    alike = Evidence.objects.filter(error__group=error.group_id, error__match=error.match_id)
    newest = alike.order_by("-created_at").first()
    return list(Evidence.objects.filter(error_id=newest.error_id).order_by("pk")) if newest else []


def _last_error(task: ScrapeTask) -> ScrapeError | None:
    return task.errors.select_related("group").order_by("-pk").first()


def group_line(error: ScrapeError | None) -> SafeString:
    """Returns the group of an error with its counts and links to its errors and dead letters."""
    group = error.group if error else None
    if group is None:
        return format_html("{}", "-")
    return format_html(
        '<a class="underline" href="{}">{}</a>'
        "<div>seen {} times, first at {}, last at {}; open dead letters: {}</div><div>{}</div>",
        reverse("admin:scraping_errorgroup_change", args=[group.pk]),
        str(group),
        f"{group.count:,}",
        f"{group.first_seen_at:{WHEN}}",
        f"{group.last_seen_at:{WHEN}}",
        group.errors.filter(OPEN_DEAD).aggregate(number=Count("task", distinct=True))["number"],
        members(group),
    )


def members(group: ErrorGroup) -> SafeString:
    return format_html(
        '<a class="underline" href="{}">what happened</a> · '
        '<a class="underline" href="{}?group__id__exact={}">its errors</a> · '
        '<a class="underline" href="{}?errors__group__id__exact={}&amp;state__exact=DEAD">its dead letters</a>',
        reverse("incident", args=["group", group.pk]),
        reverse("admin:scraping_scrapeerror_changelist"),
        group.pk,
        reverse("admin:scraping_scrapetask_changelist"),
        group.pk,
    )


def _files(task: ScrapeTask) -> SafeString:
    rows = _evidence_of(task)
    pictures = [preview(row) for row in rows if row.kind == EvidenceKind.SCREENSHOT]
    return format_html("{}{}", links(rows), pictures[0] if pictures else "")


def _each(change: Callable[..., RetryOutcome]) -> Run:
    """Returns a `run` that applies a function of the journal to tasks."""

    def run(ids: Sequence[int], call: OperatorCall) -> OperationResult:
        return _result([change(task_ids=list(ids), actor=call.actor, reason=call.reason, now=call.now)])

    return run


def _is_dead(task: ScrapeTask) -> bool:
    return task.state in (TaskState.DEAD, TaskState.FAILED)


def _steps(task: ScrapeTask) -> Iterator[tuple[datetime, str, str]]:
    """Yields the times of a task: text and reason. The start of an attempt is known of the last one only."""
    yield task.created_at, "created", ""
    if task.hinted_at:
        yield task.hinted_at, "hinted to the workers, for the last time", ""
    if task.started_at:
        yield task.started_at, f"attempt {task.attempt} claimed by {task.worker_id or 'a worker'}", ""
    moves = list(task.transitions.order_by("-pk")[:MAX_STEPS])
    for move in reversed(moves):
        stage = f" at {move.stage}" if move.from_state == TaskState.EXECUTING else ""
        text = f"{move.from_state} → {move.to_state}, attempt {move.attempt}{stage}, by {move.actor}"
        yield move.at, text, move.reason
    if task.finished_at and not (moves and moves[0].at == task.finished_at):
        yield task.finished_at, task.state, ""


def _page(task: ScrapeTask) -> dict[str, Any]:
    """Returns the time line with the time between two steps, and the requests of the latest failed attempts."""
    steps, before = [], None
    for at, text, reason in sorted(_steps(task), key=lambda step: step[0]):
        gap = f"+{(at - before).total_seconds():,.3f} s" if before else ""
        steps.append({"at": at, "gap": gap, "text": text, "reason": reason})
        before = at
    now = timezone.now()
    logs = f"{reverse('admin:monitoring_logentry_changelist')}?task={task.pk}"
    return {
        "what_happened": what_happened(task),
        "what_next": what_next(task),
        "colour": STATE_COLOURS.get(task.state, ""),
        "state": task.state,
        "steps": steps,
        "due_in": duration((task.run_at - now).total_seconds()) if task.run_at > now else "",
        "failed": list(task.errors.exclude(requests=[]).order_by("-pk").only("timestamp", "requests")[:MAX_TABLES]),
        "logs": logs,
        "is_open": task.state in OPEN_STATES,
        "match": reverse("incident", args=["match", task.ref.match_id]) if task.ref else "",
        "source": reverse("incident", args=["source", task.source.key]),
    }


def retry_selections(which: Callable[[int], TaskSelection]) -> Run:
    """Returns a `run` that retries the failed tasks of each row's selection."""

    def run(ids: Sequence[int], call: OperatorCall) -> OperationResult:
        return _result(jobs.retry_failed(which(pk), actor=call.actor, now=call.now) for pk in ids)

    return run


def _result(found: Iterable[RetryOutcome]) -> OperationResult:
    outcomes = list(found)
    return OperationResult(
        sum(len(one.retried) for one in outcomes),
        [f"task {pk}: {why}" for one in outcomes for pk, why in one.refused.items()],
        "There are more: repeat the action." if any(one.has_more for one in outcomes) else "",
        ("task", "tasks"),
    )


class ErrorInline(HistoryInline):
    model = ScrapeError
    fields = (
        "timestamp", "error_class", "error_code", "error_message", "operation", "http_status", "retry_attempt",
        "resolution_method",
    )  # fmt: skip
    ordering = ("id",)


@admin.register(ScrapeTask)
class ScrapeTaskAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "id", "shown_state", "stage", "resource", "match", "attempt", "reason", "run_at", "finished_at", "worker_id",
    )  # fmt: skip
    list_display_links = ("id", "shown_state")
    list_filter = (StateFilter, "resource", "source", "error_class")
    joined = ("source", "ref__source", "ref__match")
    sortable_by = ("id",)  # a million rows are sorted by no other column
    search_fields = ("id",)  # by `scraping.admin.search`
    search_help_text = "An id, the key, URL or teams of a match, the text or fingerprint of an error, or a worker."
    operate_permission = "scraping.change_scrapetask"
    operated_noun = ("task", "tasks")
    operator_actions = (
        OperatorAction(
            name="retry",
            label="Retry",
            applied="Retried",
            explanation="The task is due at once, with all of its attempts. Only failed and dead tasks can be retried.",
            icon="refresh",
            is_offered=_is_dead,
            run=_each(journal.retry),
        ),
        OperatorAction(
            name="discard",
            label="Discard",
            applied="Discarded",
            explanation="A failed or dead task that is not needed any more: it leaves the dead letters, its errors are "
            "resolved and its alert closes. The match is polled as before.",
            icon="delete_sweep",
            form=ReasonForm,
            is_offered=_is_dead,
            run=_each(journal.discard),
        ),
        OperatorAction(
            name="cancel",
            label="Cancel",
            applied="Cancelled",
            explanation="A waiting task is not executed. A watched match gets a new one with its next poll.",
            icon="cancel",
            form=ReasonForm,
            is_offered=lambda task: task.state == TaskState.PENDING,
            run=_each(journal.cancel),
        ),
    )
    inlines = (ErrorInline,)
    change_form_before_template = "admin/scraping/task.html"
    fieldsets = (
        (None, {"fields": ("shown_group", "shown_files")}),
        ("Work", {"fields": ("source", "ref", "job", "resource", "priority", "request_id")}),
        ("State", {"fields": ("state", "stage", "attempt", "charged_attempts", "rescues", "error_class", "reason")}),
        ("Times", {"fields": ("created_at", "run_at", "hinted_at", "started_at", "finished_at")}),
        ("Lease", {"fields": ("worker_id", "fence", "lease_until")}),
        ("Error", {"fields": ("error",)}),
    )
    shown_state = column("state", lambda task: task.state, label=STATE_COLOURS, ordering="state")
    match = column("match", lambda task: task.ref.match if task.ref else "-")
    shown_group = column("error group", lambda task: group_line(_last_error(task)))
    shown_files = column("evidence", _files)

    def page_context(self, row: ScrapeTask) -> dict[str, Any]:
        return {"task_page": _page(row)}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ScrapeTask], search_term: str
    ) -> tuple[QuerySet[ScrapeTask], bool]:
        return queryset.filter(search.tasks_by(search_term)) if search_term.strip() else queryset, False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Also by match and by error group: the match's page, alerts and error groups link here."""
        known = {"ref__match__id__exact", "errors__group__id__exact"}
        return lookup in known or bool(super().lookup_allowed(lookup, value, request))
