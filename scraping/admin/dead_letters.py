"""Texts and links on the page of a failed task: what happened, and what to do next."""

from __future__ import annotations

from django.db.models import Count, Q
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scraping.errors import ERROR_RULES, ErrorClass
from scraping.models import ErrorGroup, Evidence, ScrapeError, ScrapeTask, TaskState
from scraping.payloads import Resource

WHEN = "%d %b %Y %H:%M:%S UTC"
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
RETRY = "Then press Retry: the task is due at once, with all of its attempts."
SETTLED = "Nothing: the task has ended. Errors on the way are listed below."
WAITING = "Nothing: the task is retried automatically."


def what_happened(task: ScrapeTask) -> str:
    """One sentence."""
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
            text = f"{subject} {where} went well at {task.finished_at:{WHEN}}, after {attempts}"
        case _:
            text = f"{subject} {where} was {task.state.lower()}: {task.reason or 'no reason given'}"
    return " ".join(text.split())


def what_next(task: ScrapeTask) -> str:
    if task.state in (TaskState.SUCCESS, TaskState.SKIPPED, TaskState.CANCELLED):
        return SETTLED
    if task.state not in (TaskState.DEAD, TaskState.FAILED):
        return WAITING
    advice = ERROR_RULES[ErrorClass(task.error_class)].advice if task.error_class else "Check the reason above."
    return f"{advice} {RETRY}"


def evidence_of(task: ScrapeTask) -> list[Evidence]:
    """Returns the task's evidence, else the newest of its error group and match (stored once a group)."""
    own = list(Evidence.objects.filter(error__task=task).order_by("pk"))
    if own:
        return own
    error = last_error(task)
    if error is None or error.group_id is None:
        return []
    alike = Evidence.objects.filter(error__group_id=error.group_id)
    same = alike.filter(error__match_id=error.match_id) if error.match_id else alike.filter(error__match__isnull=True)
    newest = same.order_by("-created_at").first()
    return list(Evidence.objects.filter(error_id=newest.error_id).order_by("pk")) if newest else []


def last_error(task: ScrapeTask) -> ScrapeError | None:
    return task.errors.select_related("group").order_by("-pk").first()


def group_line(group: ErrorGroup | None) -> SafeString:
    """Returns the error group with its counts and links to its errors and dead letters."""
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
        open_dead_letters(group),
        members(group),
    )


def members(group: ErrorGroup) -> SafeString:
    return format_html(
        '<a class="underline" href="{}?group__id__exact={}">its errors</a> · '
        '<a class="underline" href="{}?errors__group__id__exact={}&amp;state__exact=DEAD">its dead letters</a>',
        reverse("admin:scraping_scrapeerror_changelist"),
        group.pk,
        reverse("admin:scraping_scrapetask_changelist"),
        group.pk,
    )


OPEN_DEAD = Q(resolved=False, task__state=TaskState.DEAD)


def open_dead_letters(group: ErrorGroup) -> int:
    """Returns the number of dead tasks of the group whose match has not been read since."""
    found = group.errors.filter(OPEN_DEAD).aggregate(number=Count("task", distinct=True))
    return int(found["number"])
