"""The benches `api` and `load`: evaluation of their results, and the processes that they start."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from apiauth.models import AccessLog, Consumer
from benchmarks import consumers
from benchmarks.benches import api, load
from benchmarks.cpu import Cpu
from benchmarks.programs import http_connections
from benchmarks.programs.score_writer import ScoreWriter
from benchmarks.programs.web_server import OURS, WebServer
from monitoring import views
from monitoring.health.evaluation import Evaluation
from monitoring.health.publisher import HealthPublisher, Published, PublishedDocument
from scraping.models import Match, MatchEvent, ScrapeTask, Snapshot, TaskState
from scripts.test import clean_environment
from tests.factories import make_match
from tests.patience import stretched, wait_for
from victoryline.configuration import PROJECT_ROOT
from victoryline.configuration import load as load_config
from victoryline.embedded import web_command
from victoryline.lib.processes import python

GOOD = {"headers": dict.fromkeys(api.EXPECTED_HEADERS, "x")}


def turns_of(asked: int, *, rate: float = 100.0, cpu_seconds: float = 1.0, **fields: object) -> api.Turns:
    times = [float(number % 10) for number in range(asked)]
    values = {"seconds": asked / rate, "asked": asked, "milliseconds": times}
    values |= {name: Counter({"200": asked}) for name in ("statuses", "measured")}
    cpu = [Cpu(1.0, {"server": cpu_seconds})]
    return api.Turns(**values | {"rates": [rate], "cpu": cpu, "samples": [GOOD]} | fields)


class TestApi:
    def found(self, **other: api.Turns) -> dict[str, api.Turns]:
        usual = {kind.name: turns_of(100) for kind in api.kinds_of([1, 2])}
        usual["not_modified"].statuses = usual["not_modified"].measured = Counter({"304": 98, "200": 2})
        return usual | other

    def test_requests_the_same_matches_of_both_servers(self):
        kinds = {kind.name: kind for kind in api.kinds_of([4, 9])}
        assert kinds["ours"].paths == ("/api/v1/matches/4", "/api/v1/matches/9")
        assert kinds["baseline"].paths == ("/matches/4/", "/matches/9/")
        assert list(kinds)[:2] == ["ours", "baseline"]

    def test_compares_rates_overall_and_per_round(self):
        found = self.found(
            ours=turns_of(400, rate=400.0, cpu_seconds=0.8), baseline=turns_of(100, rate=100.0, cpu_seconds=1.0)
        )
        options = SimpleNamespace(seconds=1, rounds=1, matches=2, consumers=3, connections=8)
        result = api._result(options, found, 7, [])
        assert (result["ours"], result["baseline"], result["ratio"]) == (400.0, 100.0, 4.0)
        assert (result["round_ratios"], result["cpu_ratio"]) == ([4.0], 5.0)
        assert (result["p50_ms"], result["p95_ms"]) == (4.0, 9.0)
        assert all(result[name] for name in ("not_modified", "list", "baseline_list", "bare"))

    @pytest.mark.parametrize(
        ("name", "fields", "expected"),
        [
            ("ours", {"statuses": Counter({"200": 90, "429": 10})}, "10 of 100 responses were unexpected"),
            ("baseline", {"statuses": Counter({"401": 100})}, "100 of 100 responses were unexpected"),
            ("not_modified", {"measured": Counter({"304": 50, "200": 50})}, "too few responses were 304"),
            ("list", {"samples": [{"headers": {"etag": "x"}}]}, "responses without x-data-age-seconds"),
            ("bare", {"client_percent": 97.0}, "the client needed 97 % of a core"),
        ],
    )
    def test_reports_unexpected_responses(self, name, fields, expected):
        kinds = api.kinds_of([1])
        assert api._unexpected(kinds, self.found()) == []
        wrong = api._unexpected(kinds, self.found(**{name: turns_of(100, **fields)}))
        assert len(wrong) == 1
        assert wrong[0].startswith(f"{name}: ")
        assert expected in wrong[0]

    def test_starts_every_server_like_ours(self, tmp_path):
        web = WebServer("baseline", "other.project:application", env={}, folder=tmp_path, ready="/")
        usual = web_command(load_config({"HOST": "127.0.0.1", "PORT": str(web.port)}))
        assert web.command() == ["other.project:application" if word == OURS else word for word in usual]


@pytest.mark.django_db
class TestConsumers:
    def test_count_only_their_data_requests(self):
        assert len(consumers.make(2)) == 2
        consumers.make(1, prefix="lag-")
        for consumer in Consumer.objects.all():
            for method in ("GET", "POST"):
                AccessLog.objects.create(
                    consumer=consumer,
                    method=method,
                    endpoint="/api/v1/matches/1",
                    timestamp=timezone.now(),
                    response_status=200,
                )
        assert (consumers.logged(), consumers.logged(prefix="lag-")) == (2, 1)


@pytest.mark.django_db
def test_score_writer_commits_a_new_state_through_the_journal():
    writer = ScoreWriter(2)
    for _ in range(4):
        writer.read_next()
    assert list(Match.objects.order_by("pk").values_list("sequence", flat=True)) == [3, 3]
    assert ScrapeTask.objects.filter(state=TaskState.SUCCESS).count() == Snapshot.objects.count() == 6
    assert MatchEvent.objects.count() == 6
    assert writer.readings == 4


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
class TestBaseline:
    def test_serves_our_matches_to_its_users_only(self, settings, tmp_path):
        """The real baseline under granian: it must be correct for a valid comparison."""
        match = make_match(title="Kenya vs Nepal")
        config, database = settings.CONFIG, connection.settings_dict["NAME"]
        env = {
            **clean_environment(),
            "DATABASE_URL": f"{config.database_url.rpartition('/')[0]}/{database}",
            "REDIS_URL": config.redis_url,
            "SECRET_KEY": "s" * 50,
            "JWT_SIGNING_KEY": "j" * 50,
            "DJANGO_SETTINGS_MODULE": f"{api.PLAIN}.settings",
        }
        command = python("-m", f"{api.PLAIN}.users", "1")
        expected = subprocess.run(command, cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, check=True).stdout
        (token,) = json.loads(expected)
        with WebServer("plain", f"{api.PLAIN}.wsgi:application", env=env, folder=tmp_path, ready="/matches/") as web:
            asked = [
                http_connections.request_once(web.address, http_connections.request("127.0.0.1", path, token=held))
                for path, held in ((f"/matches/{match.pk}/", token), ("/matches/", token), ("/matches/", ""))
            ]
        assert [answer.status for answer in asked] == [200, 200, 401]
        one, page = (json.loads(answer.body) for answer in asked[:2])
        assert (one["title"], one["payload"]) == ("Kenya vs Nepal", match.payload)
        assert [row["id"] for row in page["results"]] == [match.pk]


class TestLoad:
    def results(self, **other: object) -> load.ClientResults:
        requests = {"error_count": 0, "errors": [], "late_ms": [0.2, 1.1]}
        health = {"codes": {"200": 60}}
        return load.ClientResults(
            **{"requests": requests, "lags": {"lags_ms": [12.0], "never": []}, "health": health} | other
        )

    def test_has_no_problems_without_errors(self):
        assert load._problems(self.results()) == []

    @pytest.mark.parametrize(
        ("other", "expected"),
        [
            ({"requests": {"error_count": 3, "errors": ["/x: 500"], "late_ms": []}}, "3 errors, the first: /x: 500"),
            (
                {"requests": {"error_count": 0, "errors": [], "late_ms": [351.9]}},
                "the machine was too busy: requests were sent up to 352 ms late (p95)",
            ),
            ({"lags": {"lags_ms": [1.0], "never": ["match 8 #1"]}}, "never served: match 8 #1"),
            ({"lags": {"lags_ms": [], "never": []}}, "no match has changed"),
            ({"health": {"codes": {"200": 59, "503": 1}}}, "/health: 1 responses with 503"),
        ],
    )
    def test_reports_problems(self, other, expected):
        assert load._problems(self.results(**other)) == [expected]


@pytest.mark.requirement("NFR-006")
class TestHealthUnderLoad:
    def test_serves_the_last_document_without_a_query_while_the_next_is_built(self, monkeypatch):
        """Eight threads, 200 requests, while a build does not end: no response waits for a build."""
        may_end, builders, queries = threading.Event(), [], []

        def build(_: Evaluation) -> Published:
            builders.append(threading.current_thread().name)
            if len(builders) > 1:
                may_end.wait(stretched(60))
            return Published(b'{"status":"healthy"}', 200, timezone.now())

        def ask(_: int) -> int:
            with connection.execute_wrapper(lambda *question: queries.append(question)):
                return Client().get("/health").status_code

        publisher = HealthPublisher()
        publisher.enable()
        document = PublishedDocument("test", build, fresh_seconds=0.001, max_age_seconds=60, publisher=publisher)
        monkeypatch.setattr(views, "published_health", document)
        try:
            assert ask(0) == 200
            wait_for(lambda: len(builders) == 2, seconds=20, what="the next document is being built")
            with ThreadPoolExecutor(8) as pool:
                codes = list(pool.map(ask, range(200)))
        finally:
            may_end.set()
            publisher.stop()
        assert codes == [200] * 200
        assert queries == []
        assert set(builders[1:]) == {"publisher"}
