"""A consumer's way to VictoryLine's API. Standard library only; safe to use from many threads."""

from __future__ import annotations

import json
import logging
import random
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from victoryline_client.answers import Answer, Document, freshness_of, freshness_of_item
from victoryline_client.connection import Connections, Raw
from victoryline_client.errors import ClientError, Unreachable, problem_of
from victoryline_client.following import Change, follow
from victoryline_client.memory import Memory
from victoryline_client.patience import Patience
from victoryline_client.tokens import Tokens
from victoryline_client.version import __version__

logger = logging.getLogger("victoryline_client")

MATCHES = "/api/v1/matches"
SUBMISSIONS = "/cricket-data"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
HEADERS = {"Accept": "application/json", "User-Agent": f"victoryline-client/{__version__}"}
JSON = {"Content-Type": "application/json"}
MatchId = int | str


@dataclass(frozen=True)
class Received:
    """An answer that was understood. `asked_at` is when it was asked for, by our clock."""

    status: int
    headers: Mapping[str, str]
    data: Document
    asked_at: float


class Client:
    """`base_url` is the server's address, `api_key` what its operator gave you.

    A call waits and tries again when the server says so or does not answer, within `patience`; then it raises. With
    `Patience(attempts=1)` it raises at once. `timeout`: seconds of silence after which an attempt has failed.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 10.0,
        patience: Patience | None = None,
        remembered: int = 256,
        context: ssl.SSLContext | None = None,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connections = Connections(base_url, timeout=timeout, context=context)
        self._tokens = Tokens(api_key, self._post_for_token, clock)
        self._memory = Memory(remembered)
        self._patience = patience or Patience()
        self.sleep, self.clock, self.chance = sleep, clock, chance
        if not self._connections.is_encrypted and self._connections.host not in LOOPBACK:
            logger.warning("The key for %s goes over the network in the clear: use https", self._connections.host)

    def __repr__(self) -> str:
        return f"<Client of {self._connections.host}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that nobody uses now. A later call opens new ones."""
        self._connections.close()

    # Reading

    def matches(self, **filters: Any) -> Iterator[Answer]:
        """Every match that fits, newest first, page after page: `status`, `sport`, `series`, `team`, `source` ...

        Each is an Answer with an age of its own. Asked anew each time: a remembered list has remembered ages.
        """
        for page in self._pages(MATCHES, filters):
            for item in page.data.get("matches", ()):
                yield Answer(data=item, freshness=freshness_of_item(item, page.freshness), request_id=page.request_id)

    def match(
        self,
        match_id: MatchId,
        *,
        max_age: int | None = None,
        as_of: datetime | str | None = None,
        sequence: int | None = None,
        include: str | None = None,
        patience: Patience | None = None,
    ) -> Answer:
        """A match as it is, or as it was at a time or at a sequence. Older than `max_age` seconds: TooStale."""
        asked = {"max_age": max_age, "as_of": as_of, "sequence": sequence, "include": include}
        return self._get(_path(match_id), asked, patience=patience)

    def events(
        self, match_id: MatchId, since: int = 0, *, limit: int | None = None, patience: Patience | None = None
    ) -> Answer:
        """One page of the feed: the rows after `since`. Go on with its `next_since` while `has_more`."""
        return self._get(_path(match_id, "events"), {"since": since, "limit": limit}, patience=patience)

    def delta(self, match_id: MatchId, since: int, *, patience: Patience | None = None) -> Answer:
        """What changed since a sequence. Gone: too long ago, read the match whole."""
        return self._get(_path(match_id, "delta"), {"since": since}, patience=patience)

    def snapshots(self, match_id: MatchId, **params: Any) -> Iterator[Document]:
        """Every state of the match that is still kept, newest first, without its contents."""
        for page in self._pages(_path(match_id, "snapshots"), params):
            yield from page.data.get("snapshots", ())

    def snapshot(self, match_id: MatchId, sequence: int) -> Answer:
        """One state of the match with its contents and their checksum."""
        return self._get(_path(match_id, "snapshots", sequence))

    def lineups(self, match_id: MatchId, **params: Any) -> Answer:
        return self._get(_path(match_id, "lineups"), params)

    def conflicts(self, match_id: MatchId, **params: Any) -> Answer:
        """What its sources disagree about."""
        return self._get(_path(match_id, "conflicts"), params)

    def usage(self) -> Answer:
        """Where you stand with your limit. Costs nothing."""
        return self._get("/api/v1/usage", is_remembered=False)

    def follow(
        self,
        match_id: MatchId,
        *,
        after: int = 0,
        every_look: bool = False,
        final_wait: float = 60.0,
        sleep: Callable[[float], object] | None = None,
    ) -> Iterator[Change]:
        """The changes of a match until it is over, each exactly once; see `following`."""
        return follow(
            self, match_id, after=after, every_look=every_look, final_wait=final_wait, sleep=sleep or self.sleep
        )

    # Sending in

    def submit(self, match: Mapping[str, Any], *, idempotency_key: str | None = None) -> Answer:
        """Send a match (or {"matches": [...]}) in; needs the scope ingest. However often it is tried, it counts once.

        Give an `idempotency_key` of your own to make that so over restarts of your program too.
        """
        headers = {**JSON, "Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        received = self._call("POST", SUBMISSIONS, headers, body=json.dumps(match).encode())
        return self._answer(received, received.data)

    def submission(self, submission_id: str) -> Answer:
        """What has become of what you sent in."""
        return self._get(f"{SUBMISSIONS}/submissions/{quote(str(submission_id), safe='')}", is_remembered=False)

    # How

    def _pages(self, path: str, params: Mapping[str, Any]) -> Iterator[Answer]:
        """Of the address of the next page only the question counts: a token never goes where an answer points."""
        asked: Mapping[str, Any] | None = params
        seen: set[str] = set()
        while asked is not None:
            page = self._get(path, asked, is_remembered=False)
            yield page
            following = str(page.data.get("next") or "")
            if following in seen:
                raise Unreachable("The pages of the list lead in a circle: the server is not in order.")
            seen.add(following)
            asked = dict(parse_qsl(urlsplit(following).query)) if following else None

    def _get(
        self,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        is_remembered: bool = True,
        patience: Patience | None = None,
    ) -> Answer:
        target = _target(path, params or {})
        held = self._memory.get(target) if is_remembered else None
        received = self._call("GET", target, {"If-None-Match": held.etag} if held else {}, patience=patience)
        if received.status != 304:
            answer = self._answer(received, received.data)
            if is_remembered and answer.etag:
                self._memory.put(target, answer.etag, answer.data)
            return answer
        if held is None:
            raise Unreachable("The answer is that nothing has changed, to a question that did not ask for it.")
        return self._answer(received, held.data)

    def _answer(self, received: Received, data: Document) -> Answer:
        return Answer(
            data=data,
            freshness=freshness_of(received.headers, asked_at=received.asked_at, clock=self.clock),
            etag=received.headers.get("etag", ""),
            is_unchanged=received.status == 304,
            request_id=received.headers.get("x-request-id", ""),
        )

    def _call(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        patience: Patience | None = None,
    ) -> Received:
        attempt, waited, limits = 1, 0.0, patience or self._patience
        while True:
            asked_at = self.clock()
            try:
                raw = self._authorized(method, target, headers, body)
                return Received(raw.status, raw.headers, {} if raw.status == 304 else _document(raw), asked_at)
            except ClientError as error:
                wait = limits.wait(error, attempt, waited, self.chance)
                if wait is None:
                    raise
                logger.info("Attempt %d failed (%s); the next one is in %.1f s", attempt, error, wait)
            self.sleep(wait)
            attempt, waited = attempt + 1, waited + wait

    def _authorized(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Raw:
        """A token that is refused is replaced once: it may have ended, or the server has a new signing key."""
        token = self._tokens.get()
        raw = self._ask(method, target, headers, body, token)
        if raw.status == 401:
            self._tokens.refused(token)
            raw = self._ask(method, target, headers, body, self._tokens.get())
        if raw.status >= 400:
            raise problem_of(raw.status, raw.headers, raw.body)
        if raw.status != 304 and not 200 <= raw.status < 300:
            raise Unreachable(f"The server answers with {raw.status} instead of data: is its address right?")
        return raw

    def _ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, token: str) -> Raw:
        return self._connections.ask(method, target, {**HEADERS, **headers, "Authorization": f"Bearer {token}"}, body)

    def _post_for_token(self, path: str, headers: Mapping[str, str]) -> Raw:
        return self._connections.ask("POST", path, {**HEADERS, **headers}, b"")


def _path(match_id: MatchId, *more: str | int) -> str:
    return "/".join((MATCHES, quote(str(match_id), safe=""), *(str(each) for each in more)))


def _target(path: str, params: Mapping[str, Any]) -> str:
    asked = [(name, _text(value)) for name, value in sorted(params.items()) if value is not None]
    return f"{path}?{urlencode(asked)}" if asked else path


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            if value.tzinfo is None:
                raise ValueError(f"{value} has no time zone, so it may be any moment of a day: give it one")
            return value.isoformat()
        case list() | tuple() | set() | frozenset():
            return ",".join(_text(each) for each in value)
    return str(value)


def _document(raw: Raw) -> Document:
    try:
        data = json.loads(raw.body)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise Unreachable(f"The answer ({raw.status}) is not JSON as VictoryLine sends it: is its address right?")
    return data
