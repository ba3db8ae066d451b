"""A real web process whose PostgreSQL and Redis are frozen, stopped and brought back."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from scripts.test import clean_environment
from tests.patience import stretched, wait_for
from tests.processes import end_group
from tests.servers import PostgresServer, RedisServer, free_port
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.availability import READ_SECONDS, REDIS_TIMEOUT_SECONDS
from victoryline.lib.processes import python, spawn

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.requirement("EC-2")]

Report = Callable[[str, float], None]
PREPARE = """
import json, django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
from django.utils import timezone
from apiauth import keys, tokens
from scraping.documents.publisher import Publisher
from tests.factories import make_match, make_ref
now = timezone.now()
issued = keys.issue(consumer_name="acme", tier="premium", scopes=("read", "operate"), now=now)
refs = [make_ref(make_match(now=now), now=now) for _ in range(3)]
assert Publisher().sweep() == 3
print(json.dumps({"key": issued.text, "token": tokens.make(issued.key, now).text, "ids": [r.match_id for r in refs]}))
"""


@dataclass
class Web:
    """A granian process as in the Dockerfile, and the match that was stored before it started."""

    url: str
    key: str
    token: str
    ids: list[int]
    database_url: str

    def get(self, path: str) -> tuple[int, bytes, dict[str, str], float]:
        """Status, body, headers and seconds."""
        return self._ask(urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"}))

    def post(self, path: str, body: Any) -> tuple[int, bytes, dict[str, str], float]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return self._ask(urllib.request.Request(self.url + path, json.dumps(body).encode(), headers))

    def _ask(self, request: urllib.request.Request) -> tuple[int, bytes, dict[str, str], float]:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=stretched(30)) as answer:
                return answer.status, answer.read(), dict(answer.headers), time.monotonic() - began
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read(), dict(refusal.headers), time.monotonic() - began

    def source(self, number: int = 0) -> str:
        """Returns the present source of a match: "" is the database."""
        status, _, headers, _ = self.get(f"/api/v1/matches/{self.ids[number]}")
        assert status == 200
        return headers.get("x-data-source", "")

    def is_back(self) -> bool:
        return self.source() == ""

    def logged(self, path: str) -> int:
        with psycopg2.connect(self.database_url) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM apiauth_accesslog WHERE endpoint = %s", (path,))
            (count,) = cursor.fetchone()
        connection.close()
        return int(count)


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def web(
    own_postgres: PostgresServer, own_redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    folder: Path = tmp_path_factory.mktemp("web")
    port = free_port()
    env = {
        **clean_environment(),
        "DJANGO_SETTINGS_MODULE": "victoryline.settings",
        "VAR_DIR": str(folder),
        "DATABASE_URL": own_postgres.url,
        "REDIS_URL": own_redis.url,
        "SECRET_KEY": "for this test only, and long enough for everyone who counts",
        "JWT_SIGNING_KEY": "for this test only too, and just as long as the other one is",
    }
    done = subprocess.run(python("-c", PREPARE), cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    prepared = json.loads(done.stdout.splitlines()[-1])
    command = ("-m", "granian", "--interface", "wsgi", "victoryline.wsgi:application", "--port", str(port))
    with (folder / "web.log").open("wb") as log:
        process = spawn(
            python(*command, "--workers", "1", "--blocking-threads", "8"),
            cwd=PROJECT_ROOT,
            env={**os.environ, **env},
            stdout=log,
            stderr=log,
        )
    running = Web(f"http://127.0.0.1:{port}", database_url=own_postgres.url, **prepared)
    try:
        wait_for(lambda: _is_live(running), seconds=60, what="the web is up")
        yield running
    finally:
        end_group(process, grace_seconds=8)


def _is_live(web: Web) -> bool:
    try:
        return web.get("/health/live")[0] == 200
    except (OSError, urllib.error.URLError):
        return False


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    def say(what: str, seconds: float) -> None:
        with capsys.disabled():
            print(f"\n    {what}: {seconds:.2f} s", flush=True)  # noqa: T201 - the figure is the point

    return say


@pytest.fixture(autouse=True)
def healed(own_postgres: PostgresServer, own_redis: RedisServer, web: Web) -> Iterator[None]:
    """Starts and ends each test with all servers running."""
    yield
    for server in (own_postgres, own_redis):
        if server.process is None:
            server.start()
        server.resume()
    wait_for(web.is_back, seconds=20, what="answers come from the database again")


class TestDatabase:
    def test_frozen_delays_only_the_requests_that_wait_for_it(
        self, web: Web, own_postgres: PostgresServer, report: Report
    ) -> None:
        assert web.source() == ""
        own_postgres.pause()
        with ThreadPoolExecutor(16) as crowd:
            first = list(crowd.map(lambda _: web.get(f"/api/v1/matches/{web.ids[0]}"), range(16)))
        assert {status for status, *_ in first} == {200}
        assert {headers.get("x-data-source") for _, _, headers, _ in first} <= {"cache", None}
        slowest = max(seconds for *_, seconds in first)
        report("PostgreSQL frozen, slowest of the first 16 answers", slowest)
        assert slowest < 10
        wait_for(lambda: web.source() == "cache", seconds=10, what="the outage is noticed")
        began = time.monotonic()
        with ThreadPoolExecutor(8) as crowd:
            then = list(crowd.map(lambda _: web.get(f"/api/v1/matches/{web.ids[0]}"), range(100)))
        assert {(status, headers["x-data-source"]) for status, _, headers, _ in then} == {(200, "cache")}
        # If each of them waited for the database, eight at a time, this would take 25 seconds.
        assert time.monotonic() - began < 100 / 8 * READ_SECONDS / 2
        self.every_probe_answers(web)
        own_postgres.resume()
        wait_for(web.is_back, seconds=10, what="answers come from the database again")

    def test_stopped_is_replaced_by_the_documents_published_in_redis(
        self, web: Web, own_postgres: PostgresServer
    ) -> None:
        before = web.logged("/api/v1/matches")
        web.get("/health")
        own_postgres.stop()
        wait_for(lambda: web.source(1) == "cache", seconds=10, what="the outage is noticed")
        status, body, headers, _ = web.get("/api/v1/matches?status=live&sport=cricket")
        assert (status, headers["x-data-source"]) == (200, "cache")
        assert [match["id"] for match in json.loads(body)["matches"]] == sorted(web.ids, reverse=True)
        status, body, headers, _ = web.get("/cricket-data/live-matches")
        assert (status, len(json.loads(body)["matches"])) == (200, 3)
        assert json.loads(body)["matches"][0]["_metadata"]["source"] == "cache"
        assert web.get("/api/v1/matches?limit=1&team=nobody")[0] == 200
        one, other = (int(web.get(f"/api/v1/matches/{web.ids[0]}")[2]["x-data-age-seconds"]) for _ in range(2))
        assert 0 <= one <= other
        assert web.get("/api/v1/matches/999999")[0] == 503
        self.every_probe_answers(web)
        own_postgres.start()
        wait_for(web.is_back, seconds=10, what="answers come from the database again")
        wait_for(
            lambda: web.logged("/api/v1/matches") == before + 2,
            seconds=10,
            what="the access log of the outage is written",
        )

    def every_probe_answers(self, web: Web) -> None:
        assert web.get("/health/live")[0] == 200
        wait_for(lambda: b"the database is away" in web.get("/health")[1], seconds=3, what="/health reports it")
        status, body, _, seconds = web.get("/health")
        assert (status, json.loads(body)["status"]) == (503, "down")
        assert seconds < READ_SECONDS
        assert web.get("/health/ready")[0] == 503
        wait_for(lambda: b"the database is away" in web.get("/status")[1], seconds=3, what="/status reports it")
        status, body, _, seconds = web.get("/metrics")
        assert status == 200
        assert b"victoryline_database_up 0\n" in body
        assert seconds < READ_SECONDS
        status, _, headers, _ = web.post("/token/generate-token", {"api_key": web.key})
        assert (status, headers["retry-after"]) == (503, "5")
        assert web.post(f"/api/v1/matches/{web.ids[0]}/pause", {})[0] == 503
        status, body, _, _ = web.get("/admin/")
        assert status == 503
        assert b"Nothing is lost" in body


class TestRedis:
    @pytest.mark.parametrize("how", ["frozen", "stopped"])
    def test_away_delays_one_response_by_at_most_a_quarter_of_a_second(
        self, web: Web, own_redis: RedisServer, how: str, report: Report
    ) -> None:
        path = f"/api/v1/matches/{web.ids[2]}"
        usual = sorted(web.get(path)[3] for _ in range(11))[5]
        own_redis.pause() if how == "frozen" else own_redis.stop()
        first = web.get(path)
        rest = [web.get(path) for _ in range(20)]
        report(f"Redis {how}, first answer", first[3])
        assert [status for status, *_ in (first, *rest)] == [200] * 21
        assert first[3] < usual + 12 * REDIS_TIMEOUT_SECONDS  # a busy machine has slow moments of its own
        assert sorted(seconds for *_, seconds in rest)[10] < usual + REDIS_TIMEOUT_SECONDS
        wait_for(
            lambda: b"victoryline_redis_up 0\n" in web.get("/metrics")[1], seconds=10, what="the metrics report it"
        )

    def test_and_the_database_away_leave_the_memory_of_the_process(
        self, web: Web, own_redis: RedisServer, own_postgres: PostgresServer
    ) -> None:
        web.get(f"/api/v1/matches/{web.ids[0]}")
        own_redis.stop()
        own_postgres.stop()
        wait_for(lambda: web.source(0) == "cache", seconds=10, what="the outage is noticed")
        status, body, _, _ = web.get("/api/v1/matches?team=never+asked")
        assert (status, json.loads(body).get("matches", body)) == (200, [])  # it holds all of them
        assert web.get("/api/v1/matches/999999")[0] == 503
