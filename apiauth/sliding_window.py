"""Two counters a bucket: this window's and the one before, of which the part still inside the last minute counts.

A fixed window lets twice the limit through at the edge of two of them. With these two counters a consumer that saves up
gets, in any stretch of t seconds up to a window, the limit and what a steady caller would have got in t seconds more;
never two bursts. A window begins with its bucket's first request, so consumers don't all start anew together.

Ours and not those of `limits`: that library asks Redis twice for one request (to count, and to tell how many are left),
and its counters in memory start threads to clear themselves. Both kinds here follow one rule, written in Python and,
where Redis itself decides, in Lua; tests hold one against the other.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redis import Redis
from redis import exceptions as redis_errors
from redis.connection import ConnectionInterface

from victoryline.lib import presence

WINDOW_SECONDS = 60.0
MAX_BUCKETS = 50_000
# Between "not yet" and "now" lies a tick of Redis's clock of milliseconds.
TICK_SECONDS = 0.01
KEY_PREFIX = "victoryline:window:"


class Window(NamedTuple):
    previous: int
    current: int
    elapsed: float  # seconds since this window began
    length: float

    def used(self) -> int:
        return int(self.previous * (self.length - self.elapsed) / self.length) + self.current

    def seconds_left(self) -> float:
        return self.length - self.elapsed

    def seconds_until_room(self, limit: int) -> float:
        """How long until one more request fits, if none comes in between."""
        if self.used() < limit:
            return 0.0
        if self.current < limit:
            # The weight of the previous window falls evenly; rounding down lets us in just below the whole number.
            return max(0.0, self.seconds_left() - (limit - self.current) * self.length / self.previous) + TICK_SECONDS
        return self.seconds_left() + self.length * (1 - limit / self.current) + TICK_SECONDS


class Question(NamedTuple):
    bucket: str
    limit: int
    is_counted: bool = True


class Count(NamedTuple):
    """`had_room` for one request; `window` is how things stand after it, if it was counted."""

    had_room: bool
    window: Window


class MemoryWindows:
    """The counters of this process. Buckets stand in the order in which their windows began, so the oldest go first."""

    def __init__(self, length: float = WINDOW_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._length, self._clock = length, clock
        self._lock = threading.Lock()
        self._buckets: dict[str, list[Any]] = {}  # start of the window, its count, the count before

    def ask(self, questions: Sequence[Question]) -> list[Count]:
        now = self._clock()
        with self._lock:
            return [self._ask(*question, now) for question in questions]

    def _ask(self, bucket: str, limit: int, is_counted: bool, now: float) -> Count:
        kept, length = self._buckets.get(bucket), self._length
        if kept is None or not 0.0 <= now - kept[0] < length:
            kept = self._turn(bucket, kept, now, is_kept=is_counted)
        start, current, previous = kept
        window = Window(previous, current, now - start, length)
        if window.used() >= limit:
            return Count(False, window)
        if is_counted:
            kept[1] = current + 1
            window = Window(previous, current + 1, now - start, length)
        return Count(True, window)

    def _turn(self, bucket: str, kept: list[Any] | None, now: float, *, is_kept: bool) -> list[Any]:
        """The window that `now` is in; the one before is behind it, unless it is too long ago to matter."""
        if kept is None or now - kept[0] >= 2 * self._length:
            turned = [now, 0, 0]
        elif now < kept[0]:  # a clock that was set back
            turned = [now, kept[1], kept[2]]
        else:
            turned = [kept[0] + self._length, 0, kept[1]]
        if is_kept:
            self._buckets.pop(bucket, None)
            self._buckets[bucket] = turned
            self._clear(now)
        return turned

    def _clear(self, now: float) -> None:
        while self._buckets:
            first = next(iter(self._buckets))
            if now - self._buckets[first][0] < 2 * self._length and len(self._buckets) <= MAX_BUCKETS:
                return
            del self._buckets[first]

    def reset(self) -> None:
        """For tests: as if nobody had ever asked."""
        with self._lock:
            self._buckets.clear()


# KEYS: the buckets. ARGV: a window's length in milliseconds; for each bucket its limit, and 1 to count or 0 to look.
# Answers for each bucket: whether there was room, the counts before and now, milliseconds since the window began.
SCRIPT = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local length = tonumber(ARGV[1])
local answer = {}
for i, key in ipairs(KEYS) do
    local limit, is_counted = tonumber(ARGV[2 * i]), ARGV[2 * i + 1] == '1'
    local start, current, previous = now, 0, 0
    local kept = redis.call('GET', key)
    if kept then
        local a, b, c = string.match(kept, '^(%d+) (%d+) (%d+)$')
        start, current, previous = tonumber(a), tonumber(b), tonumber(c)
    end
    if now - start >= 2 * length then
        start, current, previous = now, 0, 0
    elseif now < start then
        start = now
    elseif now - start >= length then
        start, current, previous = start + length, 0, current
    end
    local had_room = math.floor(previous * (length - (now - start)) / length) + current < limit
    if had_room and is_counted then
        current = current + 1
        redis.call('SET', key, string.format('%d %d %d', start, current, previous), 'PX', 2 * length)
    end
    answer[#answer + 1] = had_room and 1 or 0
    answer[#answer + 1] = previous
    answer[#answer + 1] = current
    answer[#answer + 1] = now - start
end
return answer
"""


class RedisWindows:
    """The counters that all processes share: one round trip for all questions of a request.

    Each thread has a connection of its own and speaks over it directly: the pool and the client around it cost twice
    what the question itself does, on every request. Raises RedisError or OSError when Redis can't answer, also when it
    is full. One that was restarted, or has forgotten the script, costs that thread's next request a second question.
    """

    def __init__(self, url: str, length: float = WINDOW_SECONDS) -> None:
        self._length = length
        self._length_ms = str(round(length * 1000))
        self._client = Redis.from_url(url, **presence.BOUNDED)
        self._sha = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
        self._threads = threading.local()

    def ask(self, questions: Sequence[Question]) -> list[Count]:
        args = [str(len(questions)), *(KEY_PREFIX + each.bucket for each in questions), self._length_ms]
        for _, limit, is_counted in questions:
            args += (str(limit), "1" if is_counted else "0")
        told = self._told(args)
        return [
            Count(told[at] == 1, Window(told[at + 1], told[at + 2], told[at + 3] / 1000, self._length))
            for at in range(0, len(told), 4)
        ]

    def _told(self, args: list[str]) -> list[int]:
        connection = self._connection()
        try:
            return _call(connection, "EVALSHA", self._sha, *args)
        except redis_errors.NoScriptError:
            return _call(connection, "EVAL", SCRIPT, *args)
        except redis_errors.ConnectionError:  # not TimeoutError: of one that is frozen, one is enough
            connection.disconnect()  # type: ignore[no-untyped-call]
            return _call(connection, "EVAL", SCRIPT, *args)  # restarted, so it has no script either

    def _connection(self) -> ConnectionInterface:
        """This thread's own; a forked process makes its own, too."""
        kept: tuple[int, ConnectionInterface] | None = getattr(self._threads, "kept", None)
        if kept is None or kept[0] != os.getpid():
            kept = self._threads.kept = (os.getpid(), self._client.connection_pool.make_connection())
        return kept[1]

    def reset(self) -> None:
        """For tests: as if nobody had ever asked."""
        for key in self._client.scan_iter(f"{KEY_PREFIX}*", count=1000):
            self._client.delete(key)


def _call(connection: ConnectionInterface, *parts: str) -> list[int]:
    packed = "".join([f"*{len(parts)}\r\n", *(f"${len(part.encode())}\r\n{part}\r\n" for part in parts)])
    connection.send_packed_command([packed.encode()], check_health=False)  # type: ignore[no-untyped-call]
    told: list[int] = connection.read_response()
    return told
