"""`manage.py doctor` on working and on faulty machines."""

import json
import socket

import pytest
from django.conf import settings
from django.core.management import call_command

from victoryline import doctor
from victoryline.doctor import examine


@pytest.fixture
def config(tmp_path):
    return settings.CONFIG.model_copy(update={"var_dir": tmp_path})


def verdicts(config, name: str) -> list[str]:
    return [finding.status for finding in examine(config) if finding.name == name]


@pytest.fixture
def without_browser(monkeypatch):
    """Starting it takes a second or two; one test does."""
    monkeypatch.setattr(doctor, "_start_browser", lambda _: "Chromium 1.2.3")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("without_browser")
class TestDoctor:
    def test_finds_everything_well_here(self, config):
        found = {finding.name: finding.status for finding in examine(config)}
        assert set(found) == {
            "python",
            "config",
            "chromium",
            "sandbox",
            "database",
            "migrations",
            "broker",
            "memory",
            "port",
            "disk",
            "alerts",
        }
        assert "FAIL" not in found.values(), found

    def test_leaves_no_trace_in_the_database(self, config):
        from django.db import connection

        list(examine(config))
        assert "doctor_check" not in connection.introspection.table_names()

    def test_reports_a_configured_chromium_that_is_missing(self, config, tmp_path):
        broken = config.model_copy(update={"chromium_path": tmp_path / "nothing"})
        (finding,) = [each for each in examine(broken) if each.name == "chromium"]
        assert finding.status == "FAIL"
        assert "CHROMIUM_PATH" in finding.fix

    @pytest.mark.parametrize(("user", "status"), [(0, "warn"), (1000, "ok")])
    def test_reports_a_browser_without_its_sandbox(self, config, monkeypatch, user, status):
        monkeypatch.setattr("os.geteuid", lambda: user)
        (finding,) = [each for each in examine(config) if each.name == "sandbox"]
        assert finding.status == status
        assert ("without its sandbox" in finding.detail) is (user == 0)

    def test_reports_an_unreachable_broker_without_its_password(self, config):
        away = config.model_copy(update={"redis_url": "redis://:hunter2@127.0.0.1:1/0"})
        (finding,) = [each for each in examine(away) if each.name == "broker"]
        assert finding.status == "FAIL"
        assert "hunter2" not in finding.detail

    def test_reports_a_port_that_is_taken(self, config):
        with socket.create_server(("127.0.0.1", 0)) as server:
            busy = config.model_copy(update={"port": server.getsockname()[1]})
            assert "warn" in verdicts(busy, "port")

    def test_a_check_that_raises_is_a_finding(self, config, monkeypatch):
        def _broken(_: object):
            raise RuntimeError("oh")
            yield

        monkeypatch.setattr(doctor, "CHECKS", (_broken, *doctor.CHECKS))
        assert verdicts(config, "broken") == ["FAIL"]
        assert verdicts(config, "python") == ["ok"]

    def test_prints_json_and_fails_with_a_code(self, config, capsys, settings, tmp_path):
        settings.CONFIG = config.model_copy(update={"chromium_path": tmp_path / "nothing"})
        with pytest.raises(SystemExit) as left:
            call_command("doctor", "--json")
        assert left.value.code == 1
        assert json.loads(capsys.readouterr().out)["ok"] is False


@pytest.mark.slow
@pytest.mark.django_db
def test_really_starts_the_browser(config):
    chromium = config.model_copy(update={"chromium_path": settings.CONFIG.chromium_path})
    (finding,) = list(doctor._chromium(chromium))
    assert finding.status == "ok", finding
    assert finding.detail.startswith("Chromium ")
