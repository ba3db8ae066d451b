"""The client processes of the benches `api` and `load`, against a small real server."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.programs import closed_loop_client, commit_lag, http_connections, open_loop_client
from tests.patience import stretched, wait_for

Reply = tuple[int, bytes, dict[str, str]]


class Site(ThreadingHTTPServer):
    """Responds with `reply` and stores path, token and ETag of each request."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, reply: Callable[[str, str], Reply]) -> None:
        self.reply, self.asked = reply, []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> tuple[str, int]:
        return self.server_address[0], self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        etag, token = self.headers.get("If-None-Match", ""), self.headers.get("Authorization", "")
        self.server.asked.append((self.path, token.removeprefix("Bearer "), etag))
        status, body, headers = self.server.reply(self.path, etag)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client closes its connections
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Callable[[Callable[[str, str], Reply]], Site]]:
    opened = []

    def open_one(reply: Callable[[str, str], Reply]) -> Site:
        one = Site(reply)
        threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
        opened.append(one)
        return one

    yield open_one
    for one in opened:
        one.shutdown()
        one.server_close()


def match_reply(path: str, etag: str) -> Reply:
    """Responds like our API: a sequence, an ETag, an age; 304 for the current ETag."""
    if etag == '"5"':
        return 304, b"", {"ETag": '"5"', "X-Data-Age-Seconds": "2"}
    return 200, b'{"sequence": 5, "next_since": 9}', {"ETag": '"5"', "X-Data-Age-Seconds": "2"}


class TestParse:
    @pytest.mark.parametrize(
        ("received", "expected"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Le", None),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel", None),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", (200, b"hello")),
            (b"HTTP/1.1 503 Away\r\nX-A: b\r\nContent-Length:2\r\n\r\nno", (503, b"no")),
            (b'HTTP/1.1 304 Not Modified\r\netag: "1"\r\n\r\n', (304, b"")),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", None),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", (200, b"2\r\nhi\r\n")),
        ],
    )
    def test_returns_a_response_when_it_is_complete(self, received, expected):
        found = http_connections.parse(received)
        assert (found and (found[0].status, found[0].body)) == expected
        assert found is None or found[1] == len(received)

    def test_refuses_a_response_of_unknown_length(self):
        with pytest.raises(http_connections.ConnectionClosedError):
            http_connections.parse(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhello")

    def test_finds_headers_regardless_of_case(self):
        response = http_connections.Response(200, b'HTTP/1.1 200 OK\r\netag: "7"\r\nX-Data-Age-Seconds: 3', b"")
        assert (response.header("ETag"), response.header("x-data-age-seconds"), response.header("Age")) == (
            '"7"',
            "3",
            "",
        )
        assert response.headers() == {"etag": '"7"', "x-data-age-seconds": "3"}


class TestConnections:
    def test_drops_an_idle_connection_that_the_server_closed(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            connections = http_connections.Connections(server.getsockname(), 2)
            ends = [server.accept()[0] for _ in range(2)]
            ends[0].close()
            assert list(connections.responses(1.0)) == []
            assert len(connections.free) == 1
            connections.free.pop().send(b"GET / HTTP/1.1\r\n\r\n")
            ends[1].recv(100)
            ends[1].close()
            ((_, response),) = connections.responses(1.0)
            assert isinstance(response, OSError)
            connections.close()


class TestClosedLoopClient:
    def plan(self, site, **fields):
        values = {"paths": ["/a", "/b", "/c"], "tokens": ["t1", "t2"], "seconds": 0.2, "connections": 3}
        return closed_loop_client.RequestPlan(*site.address, **values | {"warm_seconds": 0.0} | fields)

    def test_counts_every_request_and_measures_those_after_the_warm_up(self, site):
        one = site(match_reply)
        client = closed_loop_client.ClosedLoopClient(self.plan(one))
        client.run()
        assert client.counts.asked == len(one.asked) == client.counts.statuses["200"]
        assert 0 < len(client.counts.milliseconds) < client.counts.asked
        assert {path for path, _, _ in one.asked} == {"/a", "/b", "/c"}
        assert {token for _, token, _ in one.asked} == {"t1", "t2"}
        assert client.counts.samples[0]["headers"]["x-data-age-seconds"] == "2"

    def test_sends_the_last_etag(self, site):
        one = site(match_reply)
        client = closed_loop_client.ClosedLoopClient(self.plan(one, is_conditional=True))
        client.run()
        # The first requests of all connections may be open at once, before any ETag is known.
        assert client.counts.measured["304"] > 0
        assert client.counts.statuses["304"] == sum(etag == '"5"' for _, _, etag in one.asked)

    def test_counts_and_replaces_a_broken_connection(self, site):
        cut = iter([True] * 2)

        def reply(path: str, etag: str) -> Reply:
            if next(cut, False):
                raise ConnectionAbortedError  # ends the connection without a response
            return match_reply(path, etag)

        one = site(reply)
        client = closed_loop_client.ClosedLoopClient(self.plan(one))
        client.run()
        assert sum(client.counts.statuses.values()) == len(one.asked)
        assert sum(number for status, number in client.counts.statuses.items() if status != "200") == 2


class TestOpenLoopClient:
    def run(self, site, *, rate=100.0, seconds=0.3, matches=(1, 2)):
        plan = open_loop_client.RequestPlan(*site.address, list(matches), ["t1", "t2"], rate, seconds)
        client = open_loop_client.OpenLoopClient(plan)
        client.run()
        return client.counts

    def test_keeps_its_rate_while_responses_are_slow(self, site):
        """A client that waited for responses would send eight requests in this time."""
        together, numbers = threading.Barrier(30), itertools.count()

        def reply(path: str, etag: str) -> Reply:
            if next(numbers) >= 2:  # both matches were read once
                together.wait(stretched(30))  # no response before all requests were sent
            return match_reply(path, etag)

        one = site(reply)
        counts = self.run(one)
        assert sum(map(len, counts.milliseconds.values())) == 30
        # The first was due 290 ms before the last, and its time runs from then.
        assert max(value for values in counts.milliseconds.values() for value in values) > 250
        assert counts.errors == []

    def test_sends_all_kinds_and_continues_from_earlier_responses(self, site):
        one = site(match_reply)
        counts = self.run(one, rate=1000, seconds=0.4, matches=(1,))
        paths = Counter(path for path, _, _ in one.asked)
        assert counts.milliseconds.keys() == open_loop_client.SHARES.keys()
        assert paths["/api/v1/matches/1/delta?since=5"] == len(counts.milliseconds["delta"])
        assert paths["/api/v1/matches/1/events?since=9"] >= 1
        again = [etag for path, _, etag in one.asked if path == "/api/v1/matches/1"]
        assert again.count('"5"') == len(counts.milliseconds["match_again"]) == counts.statuses["304"]
        assert set(counts.ages) == {2.0}

    def test_counts_requests_that_must_be_in_the_access_log(self, site):
        one = site(match_reply)
        counts = self.run(one, rate=1000, seconds=0.3)
        assert counts.errors == []
        assert counts.logged == sum(not path.startswith(("/health", "/status")) for path, _, _ in one.asked)
        assert all(bool(token) is not path.startswith(("/health", "/status")) for path, token, _ in one.asked)

    def test_counts_any_other_status_as_an_error(self, site):
        one = site(lambda path, etag: (429, b"slow down", {}) if "events" in path else match_reply(path, etag))
        counts = self.run(one, rate=1000, seconds=0.3)
        assert len(counts.errors) == counts.statuses["429"] == len(counts.milliseconds["events"]) > 0
        assert "429 slow down" in counts.errors[0]


class TestCommitLag:
    def test_measures_from_the_commit_to_a_response_with_that_or_a_later_state(self):
        lags = commit_lag.CommitLags()
        lags.add([(1, 7, 3, 100.0), (2, 7, 4, 100.5), (3, 8, 1, 100.6)])
        lags.add([(1, 7, 3, 100.0)])
        lags.served(7, 2, 100.55)
        assert lags.lags_ms == []
        lags.served(7, 4, 100.75)
        assert lags.lags_ms == pytest.approx([750.0, 250.0])
        assert [change.match for change in lags.waiting] == [8]

    def test_reads_all_waiting_matches_concurrently_until_they_are_served(self, site):
        """No response before both requests were sent; the first responses have the earlier state."""
        together, numbers = threading.Barrier(2), itertools.count()

        def reply(path: str, etag: str) -> Reply:
            number = next(numbers)
            if number < 2:
                together.wait(stretched(30))
            return 200, b'{"sequence": %d}' % (4 if number < 2 else 5), {}

        one = site(reply)
        lags = commit_lag.CommitLags()
        now = time.time()
        lags.add([(1, 7, 5, now), (2, 8, 5, now)])
        reader = commit_lag.MatchReader(commit_lag.RequestPlan(*one.address, "t1", 1.0), lags)
        wait_for(lambda: reader.read() or not lags.waiting, seconds=20, what="both were served")
        reader.close()
        assert len(lags.lags_ms) == 2
        assert lags.asked == len(one.asked) == 4
        assert {path for path, _, _ in one.asked} == {"/api/v1/matches/7", "/api/v1/matches/8"}

    def test_reports_a_state_that_is_never_served(self):
        lags = commit_lag.CommitLags()
        lags.add([(3, 8, 1, 100.0)])
        lags.time_out(100.0 + commit_lag.TIMEOUT_SECONDS - 1)
        assert lags.never == []
        lags.time_out(100.0 + commit_lag.TIMEOUT_SECONDS + 1)
        assert (lags.never, lags.waiting) == (["match 8 #1"], [])
