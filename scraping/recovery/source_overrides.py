"""Overrides of a source's settings with an end and a reason: pause it or one type of task, other limits.

An override writes the column of the source and remembers what was there. So the scheduler, the workers, health and
the checks obey it without knowing of it, and its end is a second write: by the scheduler's step, or by an operator.
A column that was changed by hand meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from scraping.models import MatchLifecycle, MatchRef, Source, SourceOverride
from scraping.models.source import PUSHED
from scraping.payloads import Resource, Status
from scraping.signals import source_overridden, source_override_ended, source_switched
from victoryline.lib.operators import OperationRefused

LIMITS = ("max_concurrency", "min_interval_seconds", "daily_megabytes")
ENABLED, RESOURCES = "is_enabled", "paused_resources"
# A match that is not polled is silent: pause the source, or the match.
PAUSABLE = tuple(resource.value for resource in Resource if resource != Resource.SCORECARD)


def pause(pk: int, resource: str = "", *, until: datetime, reason: str, actor: str, now: datetime) -> None:
    """Pauses a source, or its tasks of one type. Open tasks wait in the journal; nothing is lost."""
    if not resource:
        override(pk, {ENABLED: False}, until=until, reason=reason, actor=actor, now=now)
        return
    paused = Source.objects.values_list(RESOURCES, flat=True).get(pk=pk).split()
    value = " ".join(sorted({*paused, resource}))
    override(pk, {RESOURCES: value}, until=until, reason=reason, actor=actor, now=now)


def override(pk: int, values: Mapping[str, Any], *, until: datetime, reason: str, actor: str, now: datetime) -> None:
    """Sets columns of a source until a time. An override of the same column is replaced, with what was before it."""
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=pk)
        if values.get(ENABLED) is False and not source.is_enabled and not _open(pk, ENABLED):
            raise OperationRefused(f"{source} is disabled already")
        for setting, value in values.items():
            replaced = _open(pk, setting).first()
            before = replaced.before if replaced else getattr(source, setting)
            _open(pk, setting).update(ended_at=now)
            SourceOverride.objects.create(
                source=source, setting=setting, value=value, before=before, until=until, reason=reason, actor=actor,
                created_at=now,
            )  # fmt: skip
        Source.objects.filter(pk=pk).update(**values)
    source_overridden.send_robust(
        sender=Source, source_key=source.key, values=dict(values), until=until, reason=reason, actor=actor, now=now
    )


def end_due(now: datetime) -> int:
    """Scheduler step: ends the overrides whose time is over; returns how many."""
    due = list(SourceOverride.objects.filter(ended_at=None, until__lte=now).select_related("source"))
    return _end(due, reason="its time was over", actor="scheduler", now=now)


def end_all(pk: int, *, reason: str, actor: str, now: datetime) -> None:
    """Ends all overrides of a source."""
    found = list(SourceOverride.objects.filter(ended_at=None, source=pk).select_related("source"))
    if not _end(found, reason=reason, actor=actor, now=now):
        raise OperationRefused("nothing of this source is overridden")


def switch(pk: int, *, is_enabled: bool, reason: str, actor: str, now: datetime) -> None:
    """Enables or disables a source until further notice; ends its pause."""
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=pk)
        if source.is_enabled is is_enabled and not _open(pk, ENABLED):
            raise OperationRefused(f"{source} is {'enabled' if is_enabled else 'disabled'} already")
        _open(pk, ENABLED).update(ended_at=now)
        Source.objects.filter(pk=pk).update(is_enabled=is_enabled)
    source_switched.send_robust(
        sender=Source, source_key=source.key, is_enabled=is_enabled, reason=reason, actor=actor, now=now
    )


def live_matches_of(pk: int) -> tuple[int, int]:
    """Returns how many live matches are read at a source, and how many of them at no other enabled one."""
    live = {"match__status": Status.LIVE, "match__lifecycle": MatchLifecycle.ACTIVE, "match__merged_into": None}
    here = MatchRef.objects.filter(source=pk, is_watched=True, gone_at=None, **live)
    elsewhere = MatchRef.objects.filter(match=OuterRef("match"), source__is_enabled=True, gone_at=None)
    elsewhere = elsewhere.exclude(source=pk).exclude(source__key=PUSHED)
    return here.count(), here.filter(~Exists(elsewhere)).count()


def _open(pk: int, setting: str) -> Any:
    return SourceOverride.objects.filter(source=pk, setting=setting, ended_at=None)


def _end(overrides: Iterable[SourceOverride], *, reason: str, actor: str, now: datetime) -> int:
    number = 0
    for one in overrides:
        with transaction.atomic():
            if not SourceOverride.objects.filter(pk=one.pk, ended_at=None).update(ended_at=now):
                continue
            unchanged = {one.setting: one.value}
            Source.objects.filter(pk=one.source_id, **unchanged).update(**{one.setting: one.before})
        number += 1
        source_override_ended.send_robust(
            sender=Source, source_key=one.source.key, setting=one.setting, reason=reason, actor=actor, now=now
        )
    return number
