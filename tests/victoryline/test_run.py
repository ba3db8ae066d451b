"""`manage.py run` with real web server, engine, browser and stadium."""

import json
import os
import signal
import socket
import stat
import subprocess

import psutil
import pytest

from tests.patience import stretched, wait_for
from tests.system import EmbeddedSystem, NoSuchChildError
from victoryline.configuration import PROJECT_ROOT
from victoryline.embedded import is_free, keep_private

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    with EmbeddedSystem(tmp_path_factory.mktemp("run") / "var", has_tables=False) as running:
        yield running


@pytest.fixture
def own_system(tmp_path):
    system = EmbeddedSystem(tmp_path / "var")
    yield system
    system.__exit__()


class TestRunning:
    def test_the_curl_lines_work_when_pasted(self, system):
        token_line, matches_line = system.curl_lines()
        given = subprocess.run(["sh", "-c", token_line], capture_output=True, text=True, check=True)
        assert json.loads(given.stdout)["token"]
        listed = subprocess.run(["sh", "-c", matches_line], capture_output=True, text=True, check=True)
        assert listed.stdout.startswith("HTTP/1.1 200")

    def test_demo_json_says_the_same_as_the_banner(self, system):
        path = system.folder / "demo.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert set(system.demo) == {"url", "admin_user", "admin_password", "api_key"}
        assert all(value in system.said() for value in system.demo.values())

    @pytest.mark.requirement("FS-5")
    def test_database_and_logs_are_readable_by_their_owner_only(self, system):
        files = [*system.folder.glob("*.sqlite3*"), *(system.folder / "log").glob("*")]
        assert {file.name for file in files} >= {"victoryline.sqlite3", "victoryline.sqlite3-wal", "engine.log"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    def test_matches_appear_and_carry_their_age(self, system):
        token = system.token()

        def live():
            status, body, _ = system.get("/api/v1/matches", token=token)  # a 503 on a busy machine is asked again
            return status == 200 and [match for match in body["matches"] if match["status"] == "live"]

        wait_for(live, seconds=60, what="a live match over the API")

    def test_a_second_one_names_the_running_process(self, system):
        second = EmbeddedSystem(system.folder, PORT="1")
        second.terminal = system.folder / "second"
        second.launch()
        assert second.process.wait(timeout=stretched(30)) == 1
        assert f"process {system.process.pid}, {system.url}" in second.said()

    @pytest.mark.requirement("ZT-11")
    @pytest.mark.parametrize(("command", "other"), [("run_worker", "granian"), ("granian", "run_worker")])
    def test_web_and_worker_do_not_die_with_each_other(self, system, command, other):
        untouched, killed = _running_child(system, other), _running_child(system, command)
        killed.kill()
        if other == "granian":
            wait_for(lambda: _answers(system), seconds=10, what="the API answers while its workers are dead")
        wait_for(lambda: _other_child(system, command, killed.pid), seconds=30, what=f"another {command}")
        assert _running_child(system, other).pid == untouched.pid
        wait_for(lambda: _answers(system), seconds=30, what="the web server")

    @pytest.mark.parametrize("command", ["granian", "run_worker", "-m stadium"])
    def test_a_killed_child_comes_back(self, system, command):
        old = _running_child(system, command)
        old.kill()
        new = wait_for(lambda: _other_child(system, command, old.pid), seconds=30, what=f"another {command}")
        system.family()
        assert new.pid != old.pid
        wait_for(lambda: _answers(system), seconds=30, what="the web server")


def test_files_of_an_older_version_become_private(tmp_path):
    files = [tmp_path / "victoryline.sqlite3", tmp_path / "log" / "web.log.1"]
    (tmp_path / "log").mkdir()
    for file in files:
        file.write_text("")
        file.chmod(0o644)
    before = os.umask(0o022)
    try:
        keep_private(tmp_path)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]


class TestStopping:
    @pytest.mark.parametrize(
        "signal_number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.faults_only)]
    )
    def test_leaves_nothing_within_ten_seconds(self, own_system, signal_number):
        own_system.start()
        assert own_system.stop(signal_number) < stretched(10)
        assert own_system.left_behind() == []
        assert is_free("127.0.0.1", own_system.port)

    @pytest.mark.faults_only  # the same as fault 3, which always runs
    def test_sigkill_of_the_supervisor_leaves_nothing_and_it_starts_again(self, own_system):
        own_system.start()
        before = own_system.demo
        own_system.family()
        own_system.process.kill()
        own_system.process.wait()
        wait_for(lambda: not own_system.left_behind(), seconds=12, what="nothing left")
        assert is_free("127.0.0.1", own_system.port)
        own_system.start()
        assert own_system.demo == before

    @pytest.mark.faults_only
    def test_a_start_right_after_a_sigkill_waits_for_the_remains(self, own_system):
        own_system.start()
        own_system.process.kill()
        own_system.process.wait()
        own_system.start()


class TestRefusing:
    def test_a_taken_port_is_reported_before_anything_starts(self, own_system):
        with socket.create_server(("127.0.0.1", own_system.port)):
            own_system.launch()
            assert own_system.process.wait(timeout=stretched(30)) == 1
        assert f"PORT={own_system.port + 1} make run" in own_system.said()
        assert not (own_system.folder / "log").exists()

    def test_a_wrong_variable_is_reported(self, own_system):
        own_system.env["WORKER_THREADS"] = "1000"
        own_system.launch()
        assert own_system.process.wait(timeout=stretched(30)) == 1
        assert 'WORKER_THREADS is "1000" (environment); allowed: a whole number from 1 to 64' in own_system.said()


class TestMake:
    @pytest.mark.faults_only
    def test_sigterm_of_make_reaches_the_system(self, own_system):
        own_system.folder.mkdir()
        with own_system.terminal.open("wb") as output:
            own_system.process = subprocess.Popen(
                ["make", "run"],
                cwd=PROJECT_ROOT,
                env={**_plain_environment(), **own_system.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: "VictoryLine is running" in own_system.said(), seconds=90, what="the banner")
        assert own_system.stop(signal.SIGTERM) < stretched(10)
        wait_for(lambda: not own_system.left_behind(), seconds=10, what="nothing left")


def _running_child(system: EmbeddedSystem, command: str) -> psutil.Process:
    """Returns the child; waits for one that starts again after an earlier test has killed a process."""
    return wait_for(lambda: _other_child(system, command, 0), seconds=30, what=f"a running {command}")


def _other_child(system: EmbeddedSystem, command: str, old_pid: int):
    try:
        found = system.child(command)
    except (NoSuchChildError, psutil.NoSuchProcess):  # none just now, or it ended meanwhile
        return None
    return found if found.pid != old_pid else None


def _answers(system: EmbeddedSystem) -> bool:
    try:
        return system.get("/health/live")[0] == 200
    except OSError:
        return False


def _plain_environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
