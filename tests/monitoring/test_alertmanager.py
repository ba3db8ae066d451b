"""deploy/alertmanager, checked by amtool, and the way of one alert: source, Prometheus, Alertmanager, mail, Slack.

The system, Prometheus and Alertmanager run as in production, with the rules and routes of deploy; only addresses differ
and the waiting times of Prometheus, which promtool tests, are divided.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml
from aiosmtpd.controller import Controller
from django.conf import settings

from scripts.system_packages import find_program
from tests.monitoring.alerts.servers import HttpReceiver
from tests.patience import stretched, wait_for
from tests.processes import end_group
from tests.servers import free_port
from tests.stadium_process import StadiumProcess
from tests.system import EmbeddedSystem
from victoryline.lib.processes import spawn

DEPLOY = Path(settings.BASE_DIR) / "deploy"
CONFIG = DEPLOY / "alertmanager" / "alertmanager.yml"
DIVISOR = 15  # of the times that Prometheus waits
ALERT = "CircuitBreakerOpen"


def program(name: str) -> str:
    found = find_program(name)
    assert found is not None, f"{name} is missing: type make test, which installs it"
    return str(found)


def amtool(*arguments: str) -> str:
    done = subprocess.run([program("amtool"), *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class TestConfiguration:
    def test_is_accepted_by_amtool(self) -> None:
        assert "SUCCESS" in amtool("check-config", str(CONFIG))

    @pytest.mark.parametrize(
        ("labels", "receiver"),
        [
            (["severity=critical", "alertname=DataStale"], "team"),
            (["severity=warning", "alertname=QueueLate"], "team"),
            (["severity=none", "alertname=DeadMansSwitch"], "dead-mans-switch"),
        ],
    )
    def test_routes_by_severity(self, labels: list[str], receiver: str) -> None:
        assert amtool("config", "routes", "test", f"--config.file={CONFIG}", *labels).strip() == receiver

    @pytest.mark.requirement("NFR-018")
    def test_critical_at_once_and_warnings_every_five_minutes_by_mail_and_slack(self) -> None:
        config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
        route = config["route"]
        critical = next(one for one in route["routes"] if one["matchers"] == ['severity = "critical"'])
        assert critical["group_wait"] == "0s"
        assert (route["group_by"], route["group_wait"], route["group_interval"]) == (["severity"], "5m", "5m")
        team = next(one for one in config["receivers"] if one["name"] == "team")
        assert [one["to"] for one in team["email_configs"]] == ["ops-team@victoryline.com"]
        assert [one["channel"] for one in team["slack_configs"]] == ["#scraper-alerts"]

    def test_inhibition_names_only_alerts_that_exist(self) -> None:
        groups = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))["groups"]
        alerts = {rule["alert"] for group in groups for rule in group["rules"]}
        inhibitions = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["inhibit_rules"]
        matchers = [text for one in inhibitions for text in (*one["source_matchers"], *one["target_matchers"])]
        for matcher in (text for text in matchers if text.startswith("alertname")):
            for name in re.findall(r"[A-Z][A-Za-z]+(?:\.\+)?", matcher):
                assert any(re.fullmatch(name, alert) for alert in alerts), name


class Mailbox:
    """Stores the mails that an SMTP server receives."""

    def __init__(self) -> None:
        self.mails: list[str] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        message = message_from_bytes(envelope.content)
        texts = [part.get_payload(decode=True).decode() for part in message.walk() if not part.is_multipart()]
        self.mails.append("\n".join([f"To: {', '.join(envelope.rcpt_tos)}", str(message["Subject"]), *texts]))
        return "250 OK"


@contextmanager
def running(folder: Path, *command: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = spawn([program(command[0]), *command[1:]], cwd=folder, stdout=log, stderr=log)
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{error}\n{command[0]}:\n{(folder / 'log').read_text()[-2000:]}") from None
        finally:
            end_group(process, grace_seconds=5)


def prometheus_files(folder: Path, targets: dict[str, int], alertmanager: int) -> Path:
    """Writes the configuration of deploy with other addresses and with divided times; returns the file."""
    folder.mkdir(parents=True)
    rules = DEPLOY / "prometheus"
    for name in ("records.yml", "alerts.yml"):
        text = (rules / name).read_text(encoding="utf-8")
        text = re.sub(r"for: (\d+)m", lambda found: f"for: {int(found[1]) * 60 // DIVISOR}s", text)
        (folder / name).write_text(text, encoding="utf-8")
    config = yaml.safe_load((rules / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    for job in config["scrape_configs"]:
        job.pop("dns_sd_configs")
        job["static_configs"] = [{"targets": [f"127.0.0.1:{targets[job['job_name']]}"]}]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


def alertmanager_file(folder: Path, *, smtp_port: int, slack: str, heartbeat: str) -> Path:
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    (folder / "slack_url").write_text(slack)
    config["global"] |= {
        "smtp_smarthost": f"127.0.0.1:{smtp_port}",
        "smtp_require_tls": False,
        "slack_api_url_file": str(folder / "slack_url"),
    }
    config["receivers"][1]["webhook_configs"][0]["url"] = heartbeat
    file = folder / "alertmanager.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


class Prometheus:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def query(self, expression: str) -> list[dict[str, Any]]:
        with urlopen(f"{self.url}/api/v1/query?query={quote(expression)}", timeout=stretched(10)) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found

    def value(self, expression: str) -> float:
        return next((float(one["value"][1]) for one in self.query(expression)), 0.0)

    def is_ready(self) -> bool:
        try:
            return bool(self.query("up"))
        except OSError:
            return False


@pytest.mark.slow
@pytest.mark.faults_only  # six minutes and more: matches pause for five after their failures
@pytest.mark.requirement("US3.4", "FR-016", "NFR-018")
def test_a_broken_source_is_mailed_and_posted_and_so_is_its_end(tmp_path: Path) -> None:
    breakers = {"CIRCUIT_BREAKER_TIMEOUT_SECONDS": "5", "SOURCE_BREAKER_COOLDOWN_SECONDS": "5"}
    box, smtp_port, ports = Mailbox(), free_port(), (free_port(), free_port())
    smtp = Controller(box, hostname="127.0.0.1", port=smtp_port)
    smtp.start()
    system = EmbeddedSystem(tmp_path / "var", STADIUM_PACE="2", **breakers)  # no match ends meanwhile
    try:
        with HttpReceiver() as slack, HttpReceiver() as heartbeat, system:
            targets = {"victoryline-web": system.port, "victoryline-engine": int(system.env["PROMETHEUS_PORT"])}
            rules = prometheus_files(tmp_path / "prometheus", targets, ports[1])
            routes = alertmanager_file(tmp_path, smtp_port=smtp_port, slack=slack.url, heartbeat=heartbeat.url)
            listens = [f"--web.listen-address=127.0.0.1:{port}" for port in ports]
            alertmanager = (
                "prometheus-alertmanager", f"--config.file={routes}", listens[1], "--cluster.listen-address=",
                f"--storage.path={tmp_path / 'alertmanager'}",
            )  # fmt: skip
            storage = f"--storage.tsdb.path={tmp_path / 'tsdb'}"
            with (
                running(tmp_path / "am-log", *alertmanager),
                running(tmp_path / "prom-log", "prometheus", f"--config.file={rules}", listens[0], storage),
            ):
                prometheus = Prometheus(ports[0])
                wait_for(prometheus.is_ready, 60, "Prometheus answers")
                watch_and_break(system, prometheus, box, slack, heartbeat)
    finally:
        smtp.stop()


def watch_and_break(
    system: EmbeddedSystem, prometheus: Prometheus, box: Mailbox, slack: HttpReceiver, heartbeat: HttpReceiver
) -> None:
    stadium = StadiumProcess()
    stadium.port = int((system.folder / "stadium.port").read_text())
    wait_for(lambda: prometheus.value("min(up)") == 1 and prometheus.value("count(up)") == 2, 60, "both are scraped")
    wait_for(lambda: prometheus.value("sum(active_scrapers_count)") > 0, 90, "matches are watched")
    _, health, _ = system.get("/health")
    assert prometheus.value("sum(active_scrapers_count)") == pytest.approx(health["active_scraper_count"], abs=2)
    assert all("instance" in one["metric"] for one in prometheus.query("scraper_pids_current"))
    assert not prometheus.query('{exported_instance!=""}')
    figures = 'label_replace({__name__=~"(scraper|data|integrity|active)_.+"} != 0, "of", "$1", "__name__", "(.+)")'
    assert not prometheus.query(f"count without (instance, job) ({figures}) > 1"), "one exporter for each figure"
    wait_for(lambda: heartbeat.got, 60, "the dead man's switch calls")

    def reported(status: str) -> Callable[[], bool]:
        def both() -> bool:
            mail = any(f"{status}: critical {ALERT}" in one and "ops-team@victoryline.com" in one for one in box.mails)
            posts = [json.loads(one.body) for one in slack.got]
            chat = any(
                one["channel"] == "#scraper-alerts" and f"{status}: critical {ALERT}" in one["attachments"][0]["title"]
                for one in posts
            )
            return mail and chat

        return both

    stadium.fault(site="*", target="*", kind="status", value=503)
    wait_for(reported("firing"), 180, "the mail and the message about the open breaker")
    stadium.clear()
    wait_for(lambda: not prometheus.query(f'ALERTS{{alertname="{ALERT}",alertstate="firing"}}'), 180, "breakers close")
    wait_for(reported("resolved"), 180, "the mail and the message about the end")
    assert "manage.py breaker list" in "\n".join(box.mails)
