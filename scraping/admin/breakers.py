"""Admin of breakers: state, window, and the overrides that operators can set."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.contrib import admin
from django.utils import timezone
from django.utils.text import Truncator

from scraping.configuration import policies
from scraping.models import Breaker, Forced, OutcomeBucket
from scraping.policies.breaker import live_probes
from scraping.policies.retry_budget import retries_left
from scraping.policies.source_breaker import CallWindow
from scraping.recovery import breakers
from victoryline.lib.admin import BAD, CAREFUL, GOOD, HistoryAdmin, LimitedForm, column, presence_filter
from victoryline.lib.operator_actions import OperatorAction, OperatorActionsMixin, OperatorCall, Run, for_each

STATE_COLOURS = {"closed": GOOD, "half open": CAREFUL, "open": BAD, "forced open": BAD, "forced closed": CAREFUL}


def _breaker(pk: int) -> Breaker:
    return Breaker.objects.get(pk=pk)


def _force(force: Callable[..., object]) -> Run:
    def apply(pk: int, call: OperatorCall) -> None:
        force(_breaker(pk), minutes=call.values["minutes"], reason=call.reason, actor=call.actor, now=call.now)

    return for_each(apply)


def _state(breaker: Breaker) -> str:
    is_forced = breaker.forced and breaker.forced_until and breaker.forced_until > timezone.now()
    return Forced(breaker.forced).label if is_forced else breaker.state.lower().replace("_", " ")


def _until(breaker: Breaker) -> str:
    end = breaker.open_until or breaker.forced_until
    return f"{end:%Y-%m-%d %H:%M:%S} UTC" if end else "-"


def _permits(breaker: Breaker) -> str:
    """Lists the tasks that hold a probe permit."""
    live = live_probes(breakers.view_of(breaker), timezone.now())
    return ", ".join(f"task {task} until {end:%H:%M:%S}" for task, end in live.items()) or "-"


def _lately(breaker: Breaker) -> str:
    """Describes the window that decides about opening, and the retry budget."""
    if breaker.source_id is None:
        return "-"
    limits = policies.current()
    since = timezone.now() - timedelta(seconds=limits.window.window_seconds)
    window = breakers.windows(since=since).get(breaker.source_id, CallWindow())
    return (
        f"{window.calls} calls in {limits.window.window_seconds / 60:g} min, {window.bad} bad "
        f"({window.bad_percent:.0f} %; {limits.window.bad_percent:g} % of at least {limits.window.min_calls} open "
        f"it), {window.retries} of them retries ({retries_left(window, limits.budget)} more allowed)"
    )


@admin.register(Breaker)
class BreakerAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "name", "shown_state", "why", "until", "permits", "failure_count", "success_count", "total_calls",
        "total_failures", "total_rejections", "total_opens", "last_state_change",
    )  # fmt: skip
    list_filter = ("state", "forced", presence_filter("kind", "source", absent="match", present="source"))
    search_fields = ("name",)
    ordering = ("-last_state_change",)
    operate_permission = "scraping.change_breaker"
    operated_noun = ("breaker", "breakers")
    operator_actions = (
        OperatorAction(
            name="force_open",
            label="Force open",
            applied="Opened",
            explanation="No request is made until the end you give; then probes decide. Tasks wait, nothing is lost.",
            icon="block",
            form=LimitedForm,
            is_for_selection=False,
            run=_force(breakers.force_open),
        ),
        OperatorAction(
            name="force_closed",
            label="Force closed",
            applied="Closed",
            explanation="Every request passes until the end you give, whatever fails; then counting starts from zero.",
            icon="check_circle",
            form=LimitedForm,
            is_for_selection=False,
            run=_force(breakers.force_closed),
        ),
        OperatorAction(
            name="reset",
            label="Reset",
            applied="Reset",
            explanation="The breaker is closed, its failure count is cleared, and it acts automatically again.",
            icon="restart_alt",
            run=for_each(lambda pk, call: breakers.reset(_breaker(pk), actor=call.actor, now=call.now)),
        ),
        OperatorAction(
            name="probe",
            label="Probe now",
            applied="Probing",
            explanation="The next tasks pass as probes at once and decide whether the breaker closes.",
            icon="troubleshoot",
            run=for_each(lambda pk, call: breakers.probe_now(_breaker(pk), actor=call.actor, now=call.now)),
        ),
    )
    readonly_fields = ("shown_state", "until", "permits", "lately")
    counters = (
        "failure_count", "success_count", "total_calls", "total_successes", "total_failures", "total_rejections",
        "total_opens", "last_failure_time", "last_state_change",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("name", "ref", "source", "shown_state", "reason", "until", "permits", "lately")}),
        ("Override", {"fields": ("forced", "forced_until", "forced_reason", "forced_by")}),
        ("Counted", {"fields": counters}),
    )
    shown_state = column("state", _state, label=STATE_COLOURS, ordering="state")
    why = column("why", lambda breaker: Truncator(breaker.reason).chars(120) or "-")
    until = column("until", _until, ordering="open_until")
    permits = column("permits", _permits)
    lately = column("lately", _lately)


@admin.register(OutcomeBucket)
class OutcomeBucketAdmin(HistoryAdmin):
    """The counted calls from which source breakers are evaluated."""

    list_display = ("starts_at", "source", "calls", "bad", "retries")
    list_filter = ("source",)
    joined = ("source",)
    search_fields = ("source__key", "source__name")
    ordering = ("-starts_at",)
