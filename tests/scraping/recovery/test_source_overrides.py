"""Operators pause and limit sources until a time; the scheduler obeys at its next tick and restores what was before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from monitoring.invariants import CheckContext
from monitoring.invariants.journal import waiting_too_long
from monitoring.models import AuditEntry
from scraping import journal
from scraping.models import Source, SourceOverride
from scraping.payloads import Resource
from scraping.recovery import source_overrides
from scraping.scheduler import hint
from tests.factories import make_ref, make_source
from victoryline.lib.operators import OperationRefused

pytestmark = [pytest.mark.django_db, pytest.mark.both]
NOW = timezone.now()
LATER = NOW + timedelta(minutes=30)
DECISION = {"reason": "it asked us to", "actor": "ada", "now": NOW}


def crex() -> Source:
    return Source.objects.get(key="crex")


class TestPause:
    def test_ends_by_itself(self) -> None:
        source = make_source("crex")
        source_overrides.pause(source.pk, until=LATER, **DECISION)
        assert not crex().is_enabled
        assert source_overrides.end_due(LATER - timedelta(seconds=1)) == 0
        assert source_overrides.end_due(LATER) == 1
        assert crex().is_enabled
        recorded = AuditEntry.objects.order_by("pk").values_list("action_type", "actor", "trigger_condition", "target")
        assert list(recorded) == [
            ("source_override", "ada", "it asked us to", "crex"),
            ("source_override_end", "scheduler", "its time was over", "crex"),
        ]

    def test_of_one_type_of_task_holds_back_its_hints_only(self) -> None:
        ref = make_ref(source="crex")
        new = [journal.NewTask(ref.source_id, ref.pk, one, 0, run_at=NOW) for one in (Resource.FULL, Resource.LINEUPS)]
        full, lineups = (task.task_id for task in journal.open_new(new, now=NOW))
        source_overrides.pause(ref.source_id, Resource.LINEUPS, until=LATER, **DECISION)
        assert [task_id for task_id, _, _ in hint._unhinted(NOW, 10)] == [full]
        late = CheckContext(NOW + timedelta(hours=1), 60)
        assert [task.pk for task in waiting_too_long(late)] == [full]
        source_overrides.end_due(LATER)
        assert {task_id for task_id, _, _ in hint._unhinted(LATER, 10)} == {full, lineups}

    def test_polls_alone_cannot_be_paused(self) -> None:
        assert Resource.SCORECARD not in source_overrides.PAUSABLE
        assert len(" ".join(source_overrides.PAUSABLE)) <= Source._meta.get_field("paused_resources").max_length

    def test_a_disabled_source_is_not_paused(self) -> None:
        source = make_source("crex", is_enabled=False)
        with pytest.raises(OperationRefused, match="disabled already"):
            source_overrides.pause(source.pk, until=LATER, **DECISION)
        assert not SourceOverride.objects.exists()


class TestLimits:
    def test_apply_until_their_end(self) -> None:
        source = make_source("crex", max_concurrency=30, daily_megabytes=100)
        source_overrides.override(source.pk, {"max_concurrency": 2, "daily_megabytes": 0}, until=LATER, **DECISION)
        assert (crex().max_concurrency, crex().daily_megabytes) == (2, 0)
        source_overrides.override(source.pk, {"max_concurrency": 1}, until=LATER, **DECISION)
        assert crex().max_concurrency == 1
        source_overrides.end_due(LATER)
        assert (crex().max_concurrency, crex().daily_megabytes) == (30, 100), "what was before the first override"

    def test_a_value_that_was_set_by_hand_meanwhile_stays(self) -> None:
        source = make_source("crex", max_concurrency=30)
        source_overrides.override(source.pk, {"max_concurrency": 2}, until=LATER, **DECISION)
        Source.objects.update(max_concurrency=8)
        source_overrides.end_all(source.pk, **DECISION)
        assert crex().max_concurrency == 8

    def test_nothing_to_end_is_refused(self) -> None:
        with pytest.raises(OperationRefused, match="nothing"):
            source_overrides.end_all(make_source("crex").pk, **DECISION)


def test_enabling_ends_a_pause_for_good() -> None:
    source = make_source("crex")
    source_overrides.pause(source.pk, until=LATER, **DECISION)
    source_overrides.switch(source.pk, is_enabled=True, **DECISION)
    assert crex().is_enabled
    source_overrides.switch(source.pk, is_enabled=False, **DECISION)
    assert source_overrides.end_due(LATER) == 0
    assert not crex().is_enabled
    with pytest.raises(OperationRefused, match="disabled already"):
        source_overrides.switch(source.pk, is_enabled=False, **DECISION)


def test_counts_the_live_matches_that_lose_a_source() -> None:
    from tests.monitoring.rows import make_watched

    match, ref, _ = make_watched()
    make_watched()
    make_ref(match, source="espn", gone_at=None)
    assert source_overrides.live_matches_of(ref.source_id) == (2, 1)
