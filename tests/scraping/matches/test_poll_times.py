"""The one writer of next poll times and watches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from scraping.matches import poll_times
from scraping.models import MatchRef
from tests.factories import NOW, make_ref, make_source
from tests.scraping.builders import later

WRITES = re.compile(r"next_poll_at\s*=[^=]|[\"']next_poll_at[\"']\s*:")
APPS = ("scraping", "monitoring", "apiauth")
# The column itself and its writer.
WRITERS = {"scraping/models/match.py", "scraping/matches/poll_times.py"}


def the_ref() -> MatchRef:
    return MatchRef.objects.get()


@pytest.mark.both
@pytest.mark.django_db
class TestMakeDue:
    def test_makes_a_later_poll_due_now(self) -> None:
        make_ref(next_poll_at=later(60))
        assert poll_times.make_due(MatchRef.objects.all(), NOW) == 1
        assert the_ref().next_poll_at == NOW

    def test_keeps_the_place_of_a_ref_that_is_due_already(self) -> None:
        make_ref(next_poll_at=later(-5))
        assert poll_times.make_due(MatchRef.objects.all(), NOW) == 0
        assert the_ref().next_poll_at == later(-5)

    def test_leaves_a_ref_that_is_not_watched_alone(self) -> None:
        make_ref(is_watched=False, next_poll_at=None)
        assert poll_times.make_due(MatchRef.objects.all(), NOW) == 0
        assert the_ref().next_poll_at is None


@pytest.mark.django_db
class TestPostpone:
    @pytest.mark.parametrize(("before", "after"), [(0, 30), (60, 60)])
    def test_never_brings_a_poll_forward(self, before: float, after: float) -> None:
        make_ref(next_poll_at=later(before))
        poll_times.postpone(MatchRef.objects.all(), until=later(30))
        assert the_ref().next_poll_at == later(after)


@pytest.mark.django_db
class TestWatching:
    def test_stops_and_starts_again(self) -> None:
        make_ref(next_poll_at=NOW, called_in_at=NOW)
        poll_times.stop_watching(MatchRef.objects.all(), watch_again_at=later(60))
        ref = the_ref()
        assert (ref.is_watched, ref.next_poll_at, ref.called_in_at, ref.watch_at) == (False, None, None, later(60))
        poll_times.start_watching(MatchRef.objects.all(), later(60))
        ref = the_ref()
        assert (ref.is_watched, ref.next_poll_at, ref.watch_at) == (True, later(60), None)

    def test_a_called_in_ref_waits_on_for_its_own_watch(self) -> None:
        make_ref(is_watched=False, next_poll_at=None, watch_at=later(60))
        assert poll_times.start_substitute(MatchRef.objects.all(), NOW) == 1
        assert the_ref().called_in_at == NOW
        poll_times.stop_substitute(MatchRef.objects.all())
        ref = the_ref()
        assert (ref.is_watched, ref.called_in_at, ref.watch_at) == (False, None, later(60))

    def test_a_source_that_sends_its_data_is_never_polled(self) -> None:
        ref = make_ref(source=make_source(key="pushed"), is_watched=False, next_poll_at=None)
        poll_times.set_next_poll(ref, NOW)
        assert ref.next_poll_at is None
        assert poll_times.first_poll(ref.source, NOW) == {
            "is_watched": False,
            "next_poll_at": None,
            "watch_at": None,
        }

    def test_a_reading_for_a_job_does_not_plan_polls_of_a_match_that_is_not_watched(self) -> None:
        ref = make_ref(is_watched=False, next_poll_at=None)
        poll_times.set_next_poll(ref, NOW)
        assert ref.next_poll_at is None


def test_no_other_module_writes_next_poll_times() -> None:
    root = Path(settings.BASE_DIR)
    found = {
        path.relative_to(root).as_posix()
        for app in APPS
        for path in (root / app).rglob("*.py")
        if "migrations" not in path.parts and WRITES.search(path.read_text())
    }
    assert found == WRITERS
