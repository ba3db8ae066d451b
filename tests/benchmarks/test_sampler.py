"""Sampling of real processes, kills, and the figures of recovery and soak."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from benchmarks import pictures, process_kills, results, sampler
from benchmarks.benches import recovery, soak
from benchmarks.environment import BenchEnvironment
from benchmarks.programs import supervised
from tests.patience import stretched, wait_for
from victoryline.supervisor import FIRST_DELAY_SECONDS, Child


@pytest.fixture
def sleeper():
    """Starts an idle process with a given command line."""
    started = []

    def start(*arguments):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *arguments])
        started.append(process)
        # A new process has no command line for a moment.
        wait_for(
            lambda: psutil.Process(process.pid).cmdline()[-len(arguments) or -1 :], seconds=10, what="its command line"
        )
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def environment_of(tmp_path, **parts):
    """Returns an environment with these processes."""
    trees = {name: [psutil.Process(one.pid) for one in processes] for name, processes in parts.items()}
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return SimpleNamespace(trees=lambda: trees, folder=tmp_path)


class TestSampleResources:
    def test_counts_memory_processes_and_files_of_ours_only(self, tmp_path, sleeper):
        worker, browser, server = sleeper(), sleeper(), sleeper()
        (tmp_path / "tmp" / "profile").mkdir(parents=True)
        (tmp_path / "var" / "tmp" / "worker-1" / "left").mkdir(parents=True)
        environment = environment_of(tmp_path, **{"worker-1": [worker], "browser": [browser], "postgresql": [server]})
        resources = sampler.sample_resources(environment)
        assert set(resources.memory_bytes) == {"worker", "browser"}
        assert resources.memory > 1_000_000
        assert resources.processes == 2
        assert resources.files == psutil.Process(worker.pid).num_fds()
        assert resources.folders == 2

    def test_ignores_a_process_that_has_just_ended(self, tmp_path, sleeper):
        gone = sleeper()
        environment = environment_of(tmp_path, worker=[gone])
        gone.kill()
        gone.wait()
        assert sampler.sample_resources(environment).processes == 0


class TestSeries:
    def test_has_percentiles_per_time_step_and_memory_by_part(self):
        seen = sampler.Sampler(environment=None)
        seen.ages = [(0.2, [1.0, 2.0]), (0.7, [3.0]), (1.4, [9.0])]
        seen.resource_samples = [
            sampler.ResourceSample(0.0, {"worker": 2**20}, 1, 1, 0),
            sampler.ResourceSample(3.0, {"browser": 2**21}, 1, 1, 0),
        ]
        seen.mark_at(1.0, "crash", "driver")
        series = seen.series()
        assert series["age"] == {"at_s": [0.5, 1.5], "p50_s": [2.0, 9.0], "p99_s": [3.0, 9.0]}
        assert series["memory"] == {"at_s": [0.0, 3.0], "worker_mb": [1.0, 0.0], "browser_mb": [0.0, 2.0]}
        assert series["marks"] == [{"at_s": 1.0, "kind": "crash", "what": "driver"}]

    @pytest.mark.parametrize(
        ("points", "expected"),
        [
            ([], 0.0),
            ([(0.0, 100.0)], 0.0),
            ([(0.0, 100.0), (60.0, 100.0), (120.0, 100.0)], 0.0),
            ([(0.0, 100.0), (1800.0, 105.0), (3600.0, 110.0)], 10.0),
            ([(0.0, 110.0), (3600.0, 100.0)], -10.0),
        ],
    )
    def test_slope_is_a_least_squares_fit(self, points, expected):
        assert sampler.slope_an_hour(points) == pytest.approx(expected)


class TestKill:
    def test_kills_only_the_given_kind(self, tmp_path, sleeper):
        main, renderer, driver = sleeper("chromium"), sleeper("--type=renderer --no-sandbox"), sleeper("driver")
        worker, scheduler = sleeper("manage.py", "run_worker"), sleeper("manage.py", "run_scheduler")
        environment = environment_of(
            tmp_path, browser=[main, renderer], driver=[driver], worker=[worker], scheduler=[scheduler]
        )
        for kind, victim in (("renderer", renderer), ("browser", main), ("driver", driver), ("worker", worker)):
            assert process_kills.kill(environment, kind) == victim.pid
            assert victim.wait(timeout=stretched(5)) == -9
        assert scheduler.poll() is None

    def test_returns_none_without_such_a_process(self, tmp_path):
        assert [process_kills.kill(environment_of(tmp_path), kind) for kind in process_kills.KINDS] == [None] * 4


class TestBenchEnvironment:
    def test_recognises_children_of_a_supervisor_by_their_command_line(self, sleeper):
        arguments = [
            ("manage.py", "run_worker"),
            ("manage.py", "run_scheduler"),
            ("manage.py", "run_worker", "--with-scheduler"),
        ]
        processes = [psutil.Process(sleeper(*one).pid) for one in arguments]
        environment = BenchEnvironment("postgresql", SimpleNamespace(process=None), None, {}, None, {})
        environment.ours = {"supervisor": SimpleNamespace(pid=os.getpid())}
        parts = {one.pid: part for part, members in environment.trees().items() for one in members}
        assert [parts[one.pid] for one in processes] == ["worker", "scheduler", "engine"]
        assert parts[os.getpid()] == "supervisor"

    def test_supervised_engine_restarts_without_growing_delays(self):
        assert supervised.commands(2, is_embedded=False).keys() == {"worker-1", "worker-2", "scheduler"}
        child = Child("worker-1", [], delay_seconds=8.0)
        assert not supervised.reset_restart_delays(SimpleNamespace(children={"worker-1": child}))
        assert child.delay_seconds == FIRST_DELAY_SECONDS


class TestRecovery:
    def test_reports_the_slowest_browser_kind_with_separate_visits(self, monkeypatch):
        monkeypatch.setattr(recovery, "dead_tasks", list)
        found = recovery._result(
            SimpleNamespace(
                kinds=process_kills.KINDS,
                matches=3,
                visited=1,
                times=1,
                interval=2.5,
                database="sqlite",
                workers=1,
                pace=1,
            ),
            [
                recovery.Recovery("browser", direct=[1.0, 2.0], visited=[3.0], missing=0),
                recovery.Recovery("renderer", direct=[1.0, 1.0], visited=[1.5], missing=0),
                recovery.Recovery("driver", direct=[1.0, 1.0], visited=[4.25], missing=0),
                recovery.Recovery("worker", direct=[9.0, 12.0], visited=[], missing=1),
            ],
        )
        assert (found["browser_p95_s"], found["worker_p95_s"]) == (4.25, 12.0)
        assert found["kinds"]["worker"]["all_matches_s"]["max"] == recovery.LONGEST_SECONDS
        assert found["problems"] == ["1 matches had no update within 60 s of a kill (worker)"]


class TestSoak:
    def test_reports_leftovers(self):
        before = soak.IdleResources(processes=12, files=40, folders=3)
        assert soak._leftovers(before, soak.IdleResources(processes=13, files=50, folders=3)) == []
        assert soak._leftovers(before, soak.IdleResources(processes=12, files=40, folders=13)) == [
            "folders: 3 at the beginning, 13 at the end"
        ]


class TestPictures:
    def test_draws_nothing_without_a_series(self, tmp_path):
        (tmp_path / "polls.json").write_text("{}")
        assert pictures.draw(tmp_path / "polls.json") == []

    def test_writes_numbers_of_a_series_on_one_line(self):
        text = results._readable({"series": {"at_s": [0.5, 1.5, -2], "empty": []}, "names": ["a", "b"]})
        assert '"at_s": [0.5, 1.5, -2]' in text
        assert json.loads(text) == {"series": {"at_s": [0.5, 1.5, -2], "empty": []}, "names": ["a", "b"]}
