"""A failed task in words: what happened, what is safe, what to do next."""

from __future__ import annotations

from django.db.models import Count, Q
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scraping.errors import ErrorClass
from scraping.models import ErrorGroup, Evidence, ScrapeError, ScrapeTask, TaskState
from scraping.payloads import Resource

WHEN = "%d %b %Y %H:%M:%S UTC"
WORDS = {
    Resource.SCORECARD.value: "Reading",
    Resource.COMMENTARY.value: "Filling the gaps in the events of",
    Resource.FULL.value: "Reading all of",
    Resource.DISCOVERY.value: "Looking for matches at",
    Resource.ROUND.value: "Looking for the matches of a round at",
    Resource.FULL.value: "Reading the whole of",
    Resource.ROUND.value: "Looking up the matches of a round at",
    Resource.LINEUPS.value: "Reading the line-ups of",
    Resource.FIGURES.value: "Reading the players' figures of",
}
RETRY = "Then press Retry: it is due at once, with all of its attempts."
ADVICE: dict[str, str] = {
    ErrorClass.TRANSIENT: "The source was slow or not there; nothing of what is served was changed. "
    "See whether it answers now (its breaker, its other matches).",
    ErrorClass.BLOCKED: "The source turned us away. Leave it alone for a while; "
    "see in the evidence whether it asks for a human, and give it a pace that it tolerates.",
    ErrorClass.AUTH: "The source wants a session that we could not get. See whether its page opens without a login.",
    ErrorClass.DRIFT: "The page or its answers are not what the adapter knows, or not fit to be served; "
    "the last good state is served on. Compare the evidence with the adapter in scraping/sources, mend it, deploy it.",
    ErrorClass.GONE: "The source no longer has the match. See whether its address has changed.",
    ErrorClass.RESOURCE: "The fault was ours: a browser or a worker was lost again and again. "
    "See the workers' memory, and the engine's log at that time.",
    ErrorClass.STORE: "Our database did not take it. See whether it is well (manage.py doctor).",
    ErrorClass.BUG: "This is a fault in our code, and the stack says where. Mend it, deploy it.",
}
SETTLED = "Nothing: it has ended well. What went wrong on the way is below."
WAITING = "Nothing: it is tried again by itself."


def what_happened(task: ScrapeTask) -> str:
    """One sentence."""
    subject = f"{WORDS.get(task.resource, 'Work on')} {task.ref.match if task.ref else task.source}"
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
    return f"{ADVICE.get(task.error_class, 'See the reason.')} {RETRY}"


def evidence_of(task: ScrapeTask) -> list[Evidence]:
    """Of the task itself; else what was kept of the same trouble of the same match, for that is kept only once."""
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
    """The trouble that this is a part of, and the way to the rest of it."""
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
    """Tasks that died of it and whose match has not been read since."""
    found = group.errors.filter(OPEN_DEAD).aggregate(number=Count("task", distinct=True))
    return int(found["number"])
