"""Keeps the board of a web process in step with what is committed: by hearing of it, and by looking.

Hearing is a thread that listens to the channel on which workers tell what they have committed: a few milliseconds. It
may miss something (Redis restarts, nobody tells of what the scheduler did), so another thread looks at the database,
once a second while hearing works. Where there is no Redis, or it is away, the same thread looks many times a second;
with SQLite it asks first whether anybody has written at all. Either way an answer is right within a tenth of a second.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from contextlib import suppress

from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.db.utils import Error
from redis.client import PubSub
from redis.exceptions import RedisError

from scraping.documents import channel, looking
from scraping.documents.board import IN_STEP_SECONDS, Board, board
from scraping.documents.channel import Word
from scraping.models import Match, MatchLifecycle
from scraping.signals import match_paused, match_resumed, matches_joined, watch_began, watch_ended
from victoryline.lib import availability, pg_wait
from victoryline.lib.database_errors import DATABASE_AWAY

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
QUICK_SECONDS = 0.05
SLOWEST_SHARE = 5  # looking may take one part of so many of the time
HEAR_SECONDS = 0.5
SILENT_SECONDS = 2.0
STOP_SECONDS = 2.0
MAX_UNKNOWN = 10_000  # the next look at all of them finds the rest


class Hearing:
    """Listens to the channel. `is_good` while words would reach us: a frozen Redis is found out by its silence."""

    def __init__(self, to: Board, *, ask_to_look: threading.Event) -> None:
        self._board, self._ask_to_look = to, ask_to_look
        self._heard_at = float("-inf")
        self._asked_at = float("-inf")
        self.unknown: deque[int] = deque(maxlen=MAX_UNKNOWN)  # matches that were spoken of and that we must look up
        self.may_have_missed = False  # what was said before we listened

    @property
    def is_good(self) -> bool:
        return time.monotonic() - self._heard_at < SILENT_SECONDS

    def run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            listener = self._begin()
            if listener is not None:
                try:
                    self._listen(listener, stopping)
                except Exception:  # a word that nobody foresaw must not end the thread
                    logger.exception("What was told of a match could not be taken", extra={"action": "hear_failed"})
                with suppress(RedisError, OSError):
                    listener.close()
            self._heard_at = float("-inf")
            stopping.wait(HEAR_SECONDS)

    def _begin(self) -> PubSub | None:
        if channel.is_away():
            return None
        try:
            return channel.subscribe()
        except (RedisError, OSError) as error:
            availability.redis(settings.CONFIG.redis_url).report(error)
            return None

    def _listen(self, listener: PubSub, stopping: threading.Event) -> None:
        self._heard_at = self._asked_at = time.monotonic()
        while not stopping.is_set() and self.is_good:
            try:
                if time.monotonic() - self._asked_at >= HEAR_SECONDS:
                    self._asked_at = time.monotonic()
                    listener.ping()
                message = listener.get_message(timeout=HEAR_SECONDS)
            except (RedisError, OSError) as error:
                availability.redis(settings.CONFIG.redis_url).report(error)
                return
            if message is not None:
                self._heard_at = time.monotonic()
                self._take(message)

    def _take(self, message: dict[str, object]) -> None:
        data = message["data"]
        if message["type"] == "subscribe":
            self.may_have_missed = True
            self._ask_to_look.set()
        elif message["type"] == "message" and isinstance(data, bytes):
            for word in channel.read(data):
                self._note(word)

    def _note(self, word: Word) -> None:
        if word.whole is not None and word.whole.lifecycle == MatchLifecycle.ARCHIVED:
            self._look_up(word.whole.id)  # such are not held
        elif word.whole is not None:
            self._board.put(word.whole)
        elif word.bare is not None and not self._board.renew(word.bare):
            self._look_up(word.bare.id)
        elif word.look_at is not None:
            self._look_up(word.look_at)

    def _look_up(self, match_id: int) -> None:
        self.unknown.append(match_id)
        self._ask_to_look.set()


class Follower:
    def __init__(self, to: Board = board) -> None:
        self.board = to
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._pid = 0
        self._moved: int | None = None
        self.hearing = Hearing(to, ask_to_look=self._wake)

    def start(self) -> None:
        """For the life of a process that answers requests."""
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._stopping.clear()
        self._threads = [threading.Thread(target=self._look_on, name="board-looking", daemon=True)]
        if settings.CONFIG.redis_url:
            listen = threading.Thread(
                target=self.hearing.run, args=(self._stopping,), name="board-hearing", daemon=True
            )
            self._threads.append(listen)
        for thread in self._threads:
            thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        self._threads, self._pid = [], 0

    @property
    def is_running(self) -> bool:
        return self._pid == os.getpid() and not self._stopping.is_set()

    def look_again_at(self, *match_ids: int) -> None:
        """This process has done something to these: its own next answer shows it, those of others in a moment."""
        if self.is_running:
            self.board.expect(match_ids)
            self.hearing.unknown.extend(match_ids)
            self._wake.set()
        channel.tell([Word(look_at=match_id) for match_id in match_ids])

    def look(self, *, is_whole: bool) -> None:
        """Raises what the database raises."""
        with pg_wait.within(availability.READ_SECONDS):
            unknown = self.hearing.unknown
            if some := {unknown.popleft() for _ in range(len(unknown))}:
                looking.take(self.board, sorted(some))
            if is_whole:
                self.hearing.may_have_missed = False
                looking.look(self.board)
            elif not self.hearing.is_good:
                self._look_quickly()

    def _look_quickly(self) -> None:
        has_moved, self._moved = looking.has_moved(self._moved)
        if has_moved:
            looking.look_at_hot(self.board)

    def _look_on(self) -> None:
        whole_at = float("-inf")
        while not self._stopping.is_set():
            began = time.monotonic()
            is_whole = self.wants_everything(began - whole_at)
            if self._try(is_whole=is_whole) and is_whole:
                whole_at = began
            self._wake.wait(self.pause_after(time.monotonic() - began))
            self._wake.clear()
        connection.close()

    def wants_everything(self, since: float) -> bool:
        """Is the next look to be one at all matches? `since`: seconds from the last such look."""
        return since >= LOOK_SECONDS or not self.board.is_in_step or self.hearing.may_have_missed

    def pause_after(self, took: float) -> float:
        """How long to rest after a look. A long one (the first of very many matches, a database that froze) does not
        earn a long rest: the board would be out of step before its end."""
        usual = LOOK_SECONDS if self.hearing.is_good else QUICK_SECONDS
        return min(LOOK_SECONDS, max(usual, SLOWEST_SHARE * took))

    def _try(self, *, is_whole: bool) -> bool:
        """A database that is away, or a bug here, must not end the thread."""
        if availability.database.is_away():
            if self.board.was_filled:
                self.board.stay_in_step(IN_STEP_SECONDS)  # nobody can commit anything: this is what is known last
            return False
        try:
            self.look(is_whole=is_whole)
        except DATABASE_AWAY as error:
            availability.database.report(error)
            connection.close()
            return False
        except Error as error:
            logger.debug("The matches could not be looked at: %s", error, extra={"action": "look_failed"})
            connection.close()
            return False
        except Exception:
            logger.exception("The matches could not be looked at", extra={"action": "look_failed"})
            close_old_connections()
            return False
        return True


follower = Follower()


def _note(sender: object, match_id: int = 0, gone_id: int = 0, **_: object) -> None:
    """After the transaction that it was done in: whoever looks before sees the match as it was, and leaves it so."""
    touched = [each for each in (match_id, gone_id) if each]
    transaction.on_commit(lambda: follower.look_again_at(*touched), robust=True)


def connect() -> None:
    """What this process does to a match shows in its next answer; called once, when the app is ready."""
    for signal in (match_paused, match_resumed, matches_joined, watch_began, watch_ended):
        signal.connect(_note, sender=Match, dispatch_uid="scraping.documents.follower")
