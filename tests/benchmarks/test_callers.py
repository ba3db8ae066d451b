"""Those who ask in the benches `api` and `load`, against a small real server: what they count is what was asked."""

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

from benchmarks.sides import caller, crowd, sight, wire
from tests.system import wait_for

Reply = tuple[int, bytes, dict[str, str]]


class Site(ThreadingHTTPServer):
    """Answers as `reply` says and remembers what it was asked: path, token, ETag."""

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
        with suppress(ConnectionError):  # whoever asks leaves when it has heard enough
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
    """As our API answers: a sequence, an ETag, an age; 304 to whoever has it."""
    if etag == '"5"':
        return 304, b"", {"ETag": '"5"', "X-Data-Age-Seconds": "2"}
    return 200, b'{"sequence": 5, "next_since": 9}', {"ETag": '"5"', "X-Data-Age-Seconds": "2"}


class TestWire:
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
    def test_an_answer_is_there_when_all_of_it_is(self, received, expected):
        found = wire.parse(received)
        assert (found and (found[0].status, found[0].body)) == expected
        assert found is None or found[1] == len(received)

    def test_an_answer_of_unknown_length_is_an_error(self):
        with pytest.raises(wire.HungUpError):
            wire.parse(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhello")

    def test_headers_are_found_however_they_are_written(self):
        answer = wire.Answer(200, b'HTTP/1.1 200 OK\r\netag: "7"\r\nX-Data-Age-Seconds: 3', b"")
        assert (answer.header("ETag"), answer.header("x-data-age-seconds"), answer.header("Age")) == ('"7"', "3", "")
        assert answer.headers() == {"etag": '"7"', "x-data-age-seconds": "3"}


class TestLines:
    def test_one_that_is_hung_up_while_it_is_idle_is_no_answer_and_is_not_used_again(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            lines = wire.Lines(server.getsockname(), 2)
            ends = [server.accept()[0] for _ in range(2)]
            ends[0].close()
            assert list(lines.answers(1.0)) == []
            assert len(lines.free) == 1
            lines.free.pop().ask(b"GET / HTTP/1.1\r\n\r\n")
            ends[1].recv(100)
            ends[1].close()
            ((_, answer),) = lines.answers(1.0)
            assert isinstance(answer, OSError)
            lines.close()


class TestCaller:
    def orders(self, site, **fields):
        values = {"paths": ["/a", "/b", "/c"], "tokens": ["t1", "t2"], "seconds": 0.2, "connections": 3}
        return caller.Orders(*site.address, **values | {"warm_seconds": 0.0} | fields)

    def test_counts_every_request_and_measures_those_after_the_warm_up(self, site):
        one = site(match_reply)
        asking = caller.Caller(self.orders(one))
        asking.run()
        assert asking.seen.asked == len(one.asked) == asking.seen.statuses["200"]
        assert 0 < len(asking.seen.milliseconds) < asking.seen.asked
        assert {path for path, _, _ in one.asked} == {"/a", "/b", "/c"}
        assert {token for _, token, _ in one.asked} == {"t1", "t2"}
        assert asking.seen.samples[0]["headers"]["x-data-age-seconds"] == "2"

    def test_asks_with_the_etag_that_it_had_last(self, site):
        one = site(match_reply)
        asking = caller.Caller(self.orders(one, is_conditional=True))
        asking.run()
        # The first answers of all connections may be under way at once, before any ETag is known.
        assert asking.seen.measured["304"] > 0
        assert asking.seen.statuses["304"] == sum(etag == '"5"' for _, _, etag in one.asked)

    def test_a_connection_that_is_cut_is_counted_and_replaced(self, site):
        cut = iter([True] * 2)

        def reply(path: str, etag: str) -> Reply:
            if next(cut, False):
                raise ConnectionAbortedError  # ends the connection without an answer
            return match_reply(path, etag)

        one = site(reply)
        asking = caller.Caller(self.orders(one))
        asking.run()
        assert sum(asking.seen.statuses.values()) == len(one.asked)
        assert sum(number for status, number in asking.seen.statuses.items() if status != "200") == 2


class TestCrowd:
    def run(self, site, *, rate=100.0, seconds=0.3, matches=(1, 2)):
        orders = crowd.Orders(*site.address, list(matches), ["t1", "t2"], rate, seconds)
        asking = crowd.Crowd(orders)
        asking.run()
        return asking.seen

    def test_asks_at_its_rate_however_slow_the_answers_are(self, site):
        """One that waited for answers would have asked eight times in a stretch like this."""
        together, numbers = threading.Barrier(30), itertools.count()

        def reply(path: str, etag: str) -> Reply:
            if next(numbers) >= 2:  # the crowd has met both matches
                together.wait(30)  # nobody is answered before all have asked
            return match_reply(path, etag)

        one = site(reply)
        seen = self.run(one)
        assert sum(map(len, seen.milliseconds.values())) == 30
        # The first was due 290 ms before the last, and its time runs from then.
        assert max(value for values in seen.milliseconds.values() for value in values) > 250
        assert seen.errors == []

    def test_asks_for_what_consumers_ask_for_and_goes_on_from_what_it_has_seen(self, site):
        one = site(match_reply)
        seen = self.run(one, rate=1000, seconds=0.4, matches=(1,))
        paths = Counter(path for path, _, _ in one.asked)
        assert seen.milliseconds.keys() == crowd.SHARES.keys()
        assert paths["/api/v1/matches/1/delta?since=5"] == len(seen.milliseconds["delta"])
        assert paths["/api/v1/matches/1/events?since=9"] >= 1
        again = [etag for path, _, etag in one.asked if path == "/api/v1/matches/1"]
        assert again.count('"5"') == len(seen.milliseconds["match_again"]) == seen.statuses["304"]
        assert set(seen.ages) == {2.0}

    def test_what_the_access_log_must_know_is_all_but_the_open_pages(self, site):
        one = site(match_reply)
        seen = self.run(one, rate=1000, seconds=0.3)
        assert seen.errors == []
        assert seen.logged == sum(not path.startswith(("/health", "/status")) for path, _, _ in one.asked)
        assert all(bool(token) is not path.startswith(("/health", "/status")) for path, token, _ in one.asked)

    def test_any_other_answer_is_an_error(self, site):
        one = site(lambda path, etag: (429, b"slow down", {}) if "events" in path else match_reply(path, etag))
        seen = self.run(one, rate=1000, seconds=0.3)
        assert len(seen.errors) == seen.statuses["429"] == len(seen.milliseconds["events"]) > 0
        assert "429 slow down" in seen.errors[0]


class TestSight:
    def test_the_lag_runs_from_the_commit_to_the_answer_that_has_it_or_a_later_state(self):
        watch = sight.Watch()
        watch.found([(1, 7, 3, 100.0), (2, 7, 4, 100.5), (3, 8, 1, 100.6)])
        watch.found([(1, 7, 3, 100.0)])
        watch.shown(7, 2, 100.55)
        assert watch.lags_ms == []
        watch.shown(7, 4, 100.75)
        assert watch.lags_ms == pytest.approx([750.0, 250.0])
        assert [change.match for change in watch.waiting] == [8]

    def test_all_that_waits_is_asked_for_at_once_and_again_until_it_is_there(self, site):
        """Nobody is answered before both were asked for; the first answers are still of the state before."""
        together, numbers = threading.Barrier(2), itertools.count()

        def reply(path: str, etag: str) -> Reply:
            number = next(numbers)
            if number < 2:
                together.wait(30)
            return 200, b'{"sequence": %d}' % (4 if number < 2 else 5), {}

        one = site(reply)
        watch = sight.Watch()
        now = time.time()
        watch.found([(1, 7, 5, now), (2, 8, 5, now)])
        looker = sight.Looker(sight.Orders(*one.address, "t1", 1.0), watch)
        wait_for(lambda: looker.look() or not watch.waiting, seconds=20, what="both were seen")
        looker.close()
        assert len(watch.lags_ms) == 2
        assert watch.asked == len(one.asked) == 4
        assert {path for path, _, _ in one.asked} == {"/api/v1/matches/7", "/api/v1/matches/8"}

    def test_what_is_never_served_is_told(self):
        watch = sight.Watch()
        watch.found([(3, 8, 1, 100.0)])
        watch.give_up(100.0 + sight.GIVE_UP_SECONDS - 1)
        assert watch.never == []
        watch.give_up(100.0 + sight.GIVE_UP_SECONDS + 1)
        assert (watch.never, watch.waiting) == (["match 8 #1"], [])
