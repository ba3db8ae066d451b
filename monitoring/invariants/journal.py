"""I2, I4, I6, I7: the journal. Every task will be run or has a reason not to be, and only the source's faults count."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from monitoring.alerts import alert_keys
from monitoring.invariants.rules import CheckContext, rule
from monitoring.models import Alert
from scraping.errors import OUR_FAULTS
from scraping.models import (
    OPEN_STATES,
    POLLED_LIFECYCLES,
    BreakerState,
    Forced,
    MatchLifecycle,
    MatchRef,
    ScrapeError,
    ScrapeTask,
    Source,
    Stage,
    TaskState,
    TaskTransition,
)

RECENT_HOURS = 24


def valid_reasons_to_wait(now: datetime, *, ref: str, source: str) -> Q:
    """Returns the valid reasons to wait: disabled, paused, or a breaker that is not closed.

    `ref` and `source` are the lookup prefixes of the reference and the source.
    """
    valid = Q(**{f"{source}is_enabled": False}) | Q(**{f"{ref}match__lifecycle": MatchLifecycle.PAUSED})
    for of in (ref, source):
        valid |= Q(**{f"{of}breaker__state": BreakerState.OPEN, f"{of}breaker__open_until__gt": now})
        valid |= Q(**{f"{of}breaker__state": BreakerState.HALF_OPEN})
        valid |= Q(**{f"{of}breaker__forced": Forced.OPEN, f"{of}breaker__forced_until__gt": now})
    return valid


def waiting_too_long(context: CheckContext) -> QuerySet[ScrapeTask]:
    late = ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lt=context.overdue)
    valid = ScrapeTask.objects.filter(
        valid_reasons_to_wait(context.now, ref="ref__", source="source__"), pk=OuterRef("pk")
    )
    late = late.exclude(source__paused_resources__contains=F("resource"))
    return late.filter(~Exists(valid)).order_by("run_at")


@rule(
    "I2",
    "open tasks",
    "Is a worker running, and does Redis answer? `manage.py doctor`. Hints are repeated by themselves.",
)
def forgotten_tasks(context: CheckContext) -> Iterator[str]:
    """No task waits longer than the bound without a valid reason."""
    for task in waiting_too_long(context):
        late = (context.now - task.run_at).total_seconds()
        hinted = (
            f"last hinted {(context.now - task.hinted_at).total_seconds():.0f} s ago"
            if task.hinted_at
            else "never hinted"
        )
        yield f"task {task.pk} ({task.resource}) is overdue for {late:.0f} s, {hinted}"


@rule("I2", "due matches", "Is a scheduler running, and does one lead? Search its log for `leadership_changed`.")
def forgotten_matches(context: CheckContext) -> Iterator[str]:
    """Every watched match gets its next task in time."""
    # Due, without a valid reason to wait, its source has capacity, and no task is open for it
    open_task = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource="scorecard", state__in=OPEN_STATES)
    valid = MatchRef.objects.filter(valid_reasons_to_wait(context.now, ref="", source="source__"), pk=OuterRef("pk"))
    watched = MatchRef.objects.filter(
        is_watched=True, match__lifecycle__in=POLLED_LIFECYCLES, source_id__in=_sources_with_room()
    )
    late = watched.filter(Q(next_poll_at__isnull=True) | Q(next_poll_at__lt=context.overdue))
    for pk, match_id, at in (
        late.filter(~Exists(open_task), ~Exists(valid)).values_list("pk", "match_id", "next_poll_at").order_by("pk")
    ):
        when = f"was due at {at:%H:%M:%S}" if at else "has no time for its next poll"
        yield f"reference {pk} of match {match_id} {when}, and no task is open for it"


def _sources_with_room() -> list[int]:
    opened = ScrapeTask.objects.filter(state__in=OPEN_STATES).order_by()
    busy = dict(opened.values_list("source_id").annotate(number=Count("pk")))
    limits = Source.objects.values_list("pk", "max_concurrency")
    return [source_id for source_id, most in limits if busy.get(source_id, 0) < most]


@rule("I2", "leases", "The leading scheduler takes such tasks back every second: is one running?")
def lost_leases(context: CheckContext) -> Iterator[str]:
    """An executing task has a worker and a lease."""
    held = ScrapeTask.objects.filter(state=TaskState.EXECUTING)
    wrong = held.filter(Q(lease_until__isnull=True) | Q(worker_id="") | Q(lease_until__lt=context.overdue))
    for task in wrong.order_by("pk")[: context.row_limit]:
        until = f"its lease ran out at {task.lease_until:%H:%M:%S}" if task.lease_until else "it has no lease"
        yield f"task {task.pk} is executed by '{task.worker_id}' and {until}"


@rule("I4", "fences", "Another program than the journal has written this task. Cancel it; the match gets a new one.")
def uncounted_claims(context: CheckContext) -> Iterator[str]:
    """Every claim has raised the fence."""
    unfenced = ScrapeTask.objects.filter(attempt__gt=F("fence"))
    # Readings of a database outage are written as successful tasks afterwards, without a claim.
    claimed = unfenced.exclude(state=TaskState.SUCCESS, fence=0).values_list("pk", "attempt", "fence")
    for pk, attempt, fence in claimed[: context.row_limit]:
        yield f"task {pk} is in attempt {attempt} with fence {fence}: a claim was not fenced"


@rule(
    "I6",
    "successes",
    "Another program than the journal has written this task. The next poll of the match brings its data.",
)
def incomplete_successes(context: CheckContext) -> Iterator[str]:
    """A task is SUCCESS only if it reached its last stage."""
    hollow = ScrapeTask.objects.filter(state=TaskState.SUCCESS).filter(
        ~Q(stage=Stage.DONE) | Q(finished_at__isnull=True)
    )
    for pk, stage in hollow.values_list("pk", "stage").order_by("pk"):
        yield f"task {pk} is SUCCESS and only reached {stage}"


@rule(
    "I6",
    "dead letters",
    "Another program than the journal has written this task. Retry it in the admin to learn the cause.",
)
def deaths_without_reason(context: CheckContext) -> Iterator[str]:
    """Every dead task has a reason, and its history the time."""
    recorded = TaskTransition.objects.filter(task=OuterRef("pk"), to_state=TaskState.DEAD).exclude(reason="")
    dead = ScrapeTask.objects.filter(state=TaskState.DEAD)
    silent = dead.filter(Q(reason="") | ~Exists(recorded))
    for pk, reason in silent.values_list("pk", "reason").order_by("pk")[: context.row_limit]:
        yield f"task {pk} is dead " + ("and its history does not say how" if reason else "without a reason")


@rule("I7", "charges", "Retry the tasks in the admin if they died because of it: they get all of their attempts again.")
def wrong_charges(context: CheckContext) -> Iterator[str]:
    """Only the source's own faults use up a task's attempts."""
    # A charged attempt has an error row that is the source's fault. Older rows may be gone by retention
    faults = ScrapeError.objects.filter(task=OuterRef("pk")).exclude(error_class__in=OUR_FAULTS)
    counted = faults.order_by().values("task").annotate(rows=Count("pk")).values("rows")
    charged = ScrapeTask.objects.filter(charged_attempts__gt=0, created_at__gt=context.ago(hours=RECENT_HOURS))
    wrong = charged.annotate(faults=Coalesce(Subquery(counted), 0)).filter(charged_attempts__gt=F("faults"))
    for pk, count, errors in wrong.values_list("pk", "charged_attempts", "faults").order_by("pk"):
        yield f"task {pk} was charged {count} attempts, and {errors} failures were the source's"


@rule(
    "I6",
    "alerts",
    "Nothing is lost: open the task in the admin. Search the logs for `receiver` to see why none was raised.",
)
def deaths_without_alert(context: CheckContext) -> Iterator[str]:
    """Every dead task has raised an alert."""
    # A dead task raises the alert of its match, round or discovery; it may be closed since
    dead = ScrapeTask.objects.filter(state=TaskState.DEAD, finished_at__gt=context.ago(hours=RECENT_HOURS))
    alerted_at = dict(
        Alert.objects.filter(key__startswith="dead").order_by("last_seen_at").values_list("key", "last_seen_at")
    )
    rows = dead.values_list("pk", "finished_at", "ref__match_id", "source__key", "job_id").order_by("pk")
    for pk, finished_at, match_id, source_key, job_id in rows.iterator(500):
        key = alert_keys.dead_task(match_id=match_id, source_key=source_key, job_id=job_id)
        if key not in alerted_at or (finished_at and alerted_at[key] < finished_at):
            yield f"task {pk} died at {finished_at:%H:%M:%S}, and there is no alert {key} of that time"
