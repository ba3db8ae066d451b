"""Names of processes, and detection of ended ones."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import timedelta

import pytest

from scraping import journal
from scraping.models import Lease, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.scheduler import leader
from scraping.scheduler.recover import rescue_expired
from tests.factories import make_match, make_ref
from tests.scraping.builders import NOW, later
from victoryline.lib import identity


@pytest.fixture
def dead() -> str:
    """The name of a process of this machine that has just ended."""
    made = subprocess.run(
        [sys.executable, "-c", "from victoryline.lib import identity; print(identity.new_name())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return made.stdout.strip()


class TestIsGone:
    def test_says_no_of_a_process_that_runs(self):
        assert not identity.is_gone(identity.new_name())

    def test_says_yes_of_a_process_that_has_ended(self, dead):
        assert identity.is_gone(dead)

    def test_says_yes_when_a_younger_process_has_its_number(self):
        assert identity.is_gone(identity.new_name(), since=time.time() - 86_400)

    @pytest.mark.parametrize("name", ["", "w1", "another-host-1-abcdef", "no-number-here", "--"])
    def test_processes_of_other_machines_are_never_gone(self, name):
        assert not identity.is_gone(name)


@pytest.mark.both
@pytest.mark.django_db
class TestDeadHolders:
    def test_a_task_of_a_dead_worker_is_taken_back_before_its_lease_runs_out(self, dead):
        ref = make_ref(match=make_match())
        journal.open_tasks([journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, 0, NOW)], now=NOW)
        task = ScrapeTask.objects.get()
        assert journal.claim(task.pk, worker_id=dead, lease_seconds=300, now=NOW)
        assert rescue_expired(later(1)) == 1
        assert ScrapeTask.objects.get().state == TaskState.PENDING

    def test_a_task_of_a_living_worker_is_left_to_it(self):
        ref = make_ref(match=make_match())
        journal.open_tasks([journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, 0, NOW)], now=NOW)
        task = ScrapeTask.objects.get()
        assert journal.claim(task.pk, worker_id=identity.new_name(), lease_seconds=300, now=NOW)
        assert rescue_expired(later(1)) == 0

    def test_the_lease_of_a_dead_leader_is_taken_at_once(self, dead):
        assert leader.hold(dead, seconds=60, now=NOW)
        assert leader.hold("next", seconds=60, now=NOW + timedelta(seconds=1))
        assert Lease.objects.get().fence == 2

    def test_the_lease_of_a_living_leader_is_respected(self):
        assert leader.hold(identity.new_name(), seconds=60, now=NOW)
        assert not leader.hold("next", seconds=60, now=NOW + timedelta(seconds=1))
