"""Tokens for sources that need one, against the stadium's Crexpro site over HTTP, without a browser."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import Blocked, NoToken, SchemaBreak
from scraping.policies.retry import token_backoff_seconds
from scraping.policies.timeouts import Timeouts
from scraping.reading import token_cache
from scraping.reading.access import without_failed_documents
from scraping.reading.token_cache import TokenCache, lifetime_seconds, parse_answer
from scraping.reading.tokens import Tokens, with_token
from scraping.readings import Document, Reading, RefInfo, Request, Site
from stadium.access import CREDENTIAL, LIFETIME_SECONDS
from tests.stadium_process import StadiumProcess

T = TypeVar("T")
NOW = 1_800_000_000.0


class NeverLess(random.Random):
    """Pauses without jitter."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Clock:
    """Monotonic seconds, set by the test."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    with StadiumProcess(programme="members:2", pace=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _anew(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "arena" in request.fixturenames:
        request.getfixturevalue("arena").clear()


class Member:
    """A worker's tokens and its session at the members' site, with a clock for the tokens."""

    def __init__(self, arena: StadiumProcess, session: Session, tokens: Tokens, clock: Clock) -> None:
        self.arena, self.session, self.tokens, self.clock = arena, session, tokens, clock
        shown = arena.matches()[0]
        self.ref = RefInfo(shown["key"], shown["url"])
        base = session.site.base_url
        self.live = Request("live", f"{base}/api/v3/getSV3?key={self.ref.source_event_id}")
        body = json.dumps({"matchKey": self.ref.source_event_id, "lastDocId": "", "filters": [], "lang": "en"})
        self.feed = Request("feed", f"{base}/commentary/v2/getBallFeeds", "POST", body.encode())
        self.public = Request("public", f"{base}/api/v3/public/getSV3?key={self.ref.source_event_id}")

    async def read(self, *requests: Request, has_public: bool = True) -> Reading:
        asked = requests or (self.live, self.feed)
        return await self.tokens.request(self.session, self.ref, asked, public=(self.public,) if has_public else ())

    async def statuses(self, *requests: Request) -> dict[str, int]:
        return {name: one.status for name, one in (await self.read(*requests)).documents.items()}

    async def fetched(self) -> None:
        """Waits until the background fetch has ended."""
        fetching = self.cache._fetching
        assert fetching is not None
        await fetching

    @property
    def cache(self) -> TokenCache:
        return self.tokens.caches["crexpro"]

    def asked(self, target: str) -> int:
        """Returns the number of requests for a token."""
        counts = self.arena.requests()["sites"].get("crexpro", {"targets": {}})
        return int(counts["targets"].get(target, 0))


Scenario = Callable[[Member], Awaitable[T]]
Run = Callable[..., Any]
ALL = {"live": 200, "feed": 200}
BASIC = {"public": 200}


@pytest.fixture
def run(arena: StadiumProcess, tmp_path: Path) -> Run:
    def go(scenario: Scenario[T], *, credential: str = CREDENTIAL, **changes: Any) -> T:
        return asyncio.run(_play(scenario, arena, tmp_path, credential, changes))

    return go


async def _play(
    scenario: Scenario[T], arena: StadiumProcess, folder: Path, credential: str, changes: dict[str, Any]
) -> T:
    base = f"{arena.url}/crexpro"
    site = Site("crexpro", base, adapter_key="crex", allows_private=True, token_url=f"{base}/token/generate-token")
    options = BrowserOptions(executable=folder / "no-chromium", owner="tests", timeouts=Timeouts(request_seconds=3))
    sessions, clock = Sessions(BrowserHost(options)), Clock()
    sessions._version = "140.0.0.0"  # else a browser would be started for it
    tokens = Tokens({"crexpro": credential} if credential else {}, clock=clock, chance=NeverLess())
    try:
        session = await sessions.get(replace(site, **changes))
        return await scenario(Member(arena, session, tokens, clock))
    finally:
        await sessions.stop()


@pytest.mark.requirement("FR-018")
class TestTokenCache:
    def test_concurrent_reads_share_one_fetch(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            found = await asyncio.gather(*(member.statuses() for _ in range(20)))
            assert found == [ALL] * 20
            assert member.asked("token") == 1

        run(scenario)

    def test_uses_a_token_until_it_expires(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            assert [await member.statuses() for _ in range(3)] == [ALL] * 3
            member.clock.now += LIFETIME_SECONDS / 2
            assert await member.statuses() == ALL
            assert member.asked("token") == 1
            member.clock.now += LIFETIME_SECONDS / 2
            assert await member.statuses() == ALL
            assert member.asked("token") == 2

        run(scenario)

    def test_renews_a_token_before_it_expires(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            await member.read()
            old = member.cache._token
            member.clock.now += LIFETIME_SECONDS - 30
            assert await member.statuses() == ALL
            await member.fetched()
            assert member.cache._token is not old
            assert await member.statuses() == ALL
            assert member.asked("token") == 2

        run(scenario)


@pytest.mark.requirement("FR-018", "US2.3")
class TestRefused:
    def test_a_page_is_requested_without_the_token(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            page = Request("page", member.ref.url)
            assert await member.statuses(member.live, page) == {"live": 200, "page": 200}
            assert "authorization" not in with_token((page,), "x")[0].headers
            member.arena.ask("/control/tokens", {"revoke": True})
            assert await member.statuses(member.live, page) == {"live": 200, "page": 200}
            assert member.asked("token") == 2
            member.arena.fault(site="crexpro", target="live", kind="status", value=401)
            assert await member.statuses(member.live, page) == {"public": 200, "page": 200}

        run(scenario)

    def test_a_revoked_token_is_replaced_and_the_reading_repeated(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            await member.read()
            member.arena.ask("/control/tokens", {"revoke": True})
            reading = await member.read()
            assert {name: one.status for name, one in reading.documents.items()} == ALL
            assert member.asked("token") == 2
            assert (member.asked("live"), reading.requests_made) == (3, 4)

        run(scenario)

    def test_one_new_token_serves_all_refused_reads(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            await member.read()
            member.arena.ask("/control/tokens", {"revoke": True})
            assert await asyncio.gather(*(member.statuses() for _ in range(20))) == [ALL] * 20
            assert member.asked("token") == 2

        run(scenario)

    def test_a_403_gets_a_new_token_too(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            await member.read()
            member.arena.fault(site="crexpro", target="live", kind="status", value=403, count=1)
            assert await member.statuses(member.live) == {"live": 200}
            assert member.asked("token") == 2

        run(scenario)

    def test_one_forbidden_endpoint_keeps_the_token(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            member.arena.fault(site="crexpro", target="feed", kind="status", value=403)
            assert await member.statuses() == {"live": 200, "feed": 403}
            assert await member.statuses() == {"live": 200, "feed": 403}
            assert member.asked("token") == 1

        run(scenario)

    def test_backs_off_if_the_new_token_is_refused_too(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            await member.read()
            member.arena.fault(site="crexpro", target="live", kind="status", value=401)
            assert await member.statuses(member.live) == BASIC
            for _ in range(5):
                assert await member.statuses(member.live) == BASIC
            assert (member.asked("token"), member.asked("live")) == (2, 3)
            member.clock.now += 1.1
            assert await member.statuses(member.live) == BASIC  # fetched by another client
            await member.fetched()
            assert await member.statuses(member.live) == BASIC  # and refused
            assert (member.asked("token"), member.cache._failures) == (3, 2)
            member.arena.ask("/control/faults", method="DELETE")
            member.clock.now += 2.1
            await member.read(member.live)
            await member.fetched()
            assert await member.statuses(member.live) == {"live": 200}
            assert member.tokens.missing() == []

        run(scenario)

    def test_a_403_with_a_new_token_is_a_block(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            member.arena.fault(site="crexpro", kind="status", value=403, path="getSV3")
            reading = await member.read(member.live)
            with pytest.raises(Blocked):
                without_failed_documents(reading, ["live"])

        run(scenario)


@pytest.mark.requirement("EC-5")
class TestServiceAway:
    def test_a_valid_token_is_used_until_it_expires(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            await member.read()
            member.arena.fault(site="crexpro", target="token", kind="status", value=503)
            member.clock.now += LIFETIME_SECONDS - 30
            assert await member.statuses() == ALL
            await member.fetched()
            assert await member.statuses() == ALL
            assert member.tokens.missing() == []
            member.clock.now += 31
            assert await member.statuses() == BASIC
            (missing,) = member.tokens.missing()
            assert (missing.source_key, missing.reason) == ("crexpro", "its token service answered 503")

        run(scenario)

    def test_fetches_again_after_1_2_4_8_16_32_seconds(self, run: Run) -> None:
        async def scenario(member: Member) -> list[float]:
            member.arena.fault(site="crexpro", target="token", kind="status", value=500)
            assert await member.statuses() == BASIC
            waits = []
            for _ in range(7):
                began, asked = member.clock.now, member.asked("token")
                waits.append(member.cache._next_fetch_at - began)
                member.clock.now = member.cache._next_fetch_at - 0.01
                assert await member.statuses() == BASIC
                assert member.asked("token") == asked
                member.clock.now = began + waits[-1]
                assert await member.statuses() == BASIC
                await member.fetched()
                assert member.asked("token") == asked + 1
            return waits

        assert run(scenario) == [pytest.approx(wait) for wait in (1, 2, 4, 8, 16, 32, 32)]

    def test_honours_retry_after(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            member.arena.fault(site="crexpro", target="token", kind="status", value=503)  # with Retry-After: 5
            await member.read()
            assert member.cache._next_fetch_at - member.clock.now == pytest.approx(5)

        run(scenario)

    def test_no_read_waits_for_a_hung_service(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(token_cache, "MAX_WAIT_SECONDS", 0.3)

        async def scenario(member: Member) -> None:
            hanging = member.arena.fault(site="crexpro", target="token", kind="hang")
            async with asyncio.timeout(2.5):  # the service itself has three seconds
                assert await asyncio.gather(*(member.statuses() for _ in range(5))) == [BASIC] * 5
            assert member.asked("token") == 1
            member.arena.ask(f"/control/faults/{hanging['id']}", method="DELETE")
            await member.fetched()
            assert await member.statuses() == ALL

        run(scenario)

    def test_the_next_token_ends_the_shortage(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            member.arena.fault(site="crexpro", target="token", kind="reset", count=1)
            assert await member.statuses() == BASIC
            member.clock.now += 100
            (missing,) = member.tokens.missing()
            assert missing.seconds == pytest.approx(100)
            await member.read()
            await member.fetched()
            assert await member.statuses() == ALL
            assert member.tokens.missing() == []

        run(scenario)

    def test_a_source_that_is_not_read_misses_no_token(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            member.arena.fault(site="crexpro", target="token", kind="status", value=500)
            await member.read()
            member.clock.now += 599
            assert len(member.tokens.missing()) == 1
            member.clock.now += 2
            assert member.tokens.missing() == []

        run(scenario)

    def test_without_public_endpoints_raises_no_token(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            member.arena.fault(site="crexpro", target="token", kind="status", value=500)
            with pytest.raises(NoToken, match="its token service answered 500"):
                await member.read(has_public=False)

        run(scenario)


class TestPageToken:
    """A visit keeps the header that the page's own script sent."""

    def test_is_used_while_ours_is_missing(self, run: Run) -> None:
        async def scenario(member: Member) -> None:
            token = member.arena.ask("/crexpro/token/generate-token", {"api_key": CREDENTIAL})["token"]
            own = tuple(
                replace(request, headers={"Authorization": f"Bearer {token}"}) for request in (member.live, member.feed)
            )
            fault = member.arena.fault(site="crexpro", target="token", kind="status", value=500)
            assert await member.statuses(*own) == ALL
            member.arena.ask("/control/tokens", {"revoke": True})
            assert await member.statuses(*own) == BASIC
            member.arena.ask(f"/control/faults/{fault['id']}", method="DELETE")
            member.clock.now += 2
            await member.read(*own)
            await member.fetched()
            assert await member.statuses(*own) == ALL

        run(scenario)


class TestSecrets:
    def test_logs_contain_neither_token_nor_credential(self, run: Run, caplog: pytest.LogCaptureFixture) -> None:
        seen: list[str] = [CREDENTIAL]

        async def scenario(member: Member) -> None:
            await member.read()
            seen.append(member.cache._token.text)  # type: ignore[union-attr]
            member.arena.ask("/control/tokens", {"revoke": True})
            reading = await member.read()
            seen.append(member.cache._token.text)  # type: ignore[union-attr]
            assert seen[-1] not in repr(reading)
            member.arena.fault(site="crexpro", target="token", kind="status", value=401)
            member.clock.now += LIFETIME_SECONDS
            await member.read()

        with caplog.at_level(logging.DEBUG, logger="scraping"):
            run(scenario)
        steps = [step for record in caplog.records if (step := getattr(record, "action", "")).startswith("token_")]
        again = ["token_asked", "token_received"]
        assert steps == [*again, "token_refused", *again, "token_asked", "token_failed"]
        assert all(getattr(record, "source", "") == "crexpro" for record in caplog.records)
        written = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
        assert not [secret for secret in seen if secret in written]

    @pytest.mark.parametrize(
        ("credential", "words"),
        [("wrong", "refuses the credential (401)"), ("", "SOURCE_CREDENTIALS has none (401)")],
    )
    def test_errors_name_a_missing_or_wrong_credential(self, run: Run, credential: str, words: str) -> None:
        async def scenario(member: Member) -> None:
            assert await member.statuses() == BASIC
            assert member.cache.reason.endswith(words)

        run(scenario, credential=credential)

    def test_a_token_service_at_another_host_is_refused(self, run: Run, arena: StadiumProcess) -> None:
        async def scenario(member: Member) -> None:
            assert await member.statuses() == BASIC
            assert member.asked("token") == 0
            assert "is not a host of crexpro" in member.cache.reason

        run(scenario, token_url=f"http://localhost:{arena.port}/crexpro/token/generate-token")


def jwt(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.c2ln"


class TestAnswer:
    @pytest.mark.parametrize(
        ("token", "expires_in", "seconds"),
        [
            pytest.param(jwt(exp=NOW + 90), None, 90, id="its end"),
            pytest.param(jwt(exp=NOW + 90), 5000, 90, id="its exp counts before the response's lifetime"),
            pytest.param(jwt(iat=NOW - 10, exp=NOW + 90), None, 90, id="an older token"),
            pytest.param(jwt(iat=NOW + 500, exp=NOW + 600), None, 100, id="our clock is late"),
            pytest.param(jwt(iat=NOW - 600, exp=NOW - 500), None, 100, id="our clock is early"),
            pytest.param(jwt(exp=NOW - 500), None, 600, id="our clock is early, no iat"),
            pytest.param(jwt(sub="me"), 120, 120, id="no end in it, but beside it"),
            pytest.param(jwt(exp="tomorrow"), None, 600, id="an end that is none"),
            pytest.param("opaque", None, 600, id="nothing known"),
            pytest.param("opaque", True, 600, id="nothing sensible known"),
            pytest.param("a.!!!.c", -5, 600, id="rubbish"),
            pytest.param("opaque", 10_000_000, 86_400, id="for ever"),
            pytest.param("opaque", 0.01, 1, id="for no time"),
        ],
    )
    def test_lifetime(self, token: str, expires_in: object, seconds: float) -> None:
        assert lifetime_seconds(token, expires_in, now=NOW) == pytest.approx(seconds)

    @pytest.mark.parametrize("name", ["token", "access_token", "accessToken", "jwt"])
    def test_accepts_several_field_names(self, name: str) -> None:
        assert parse_answer(answer({name: "abc", "expires_in": 60}), now=NOW).text == "abc"

    @pytest.mark.parametrize("body", ["{", "[]", "null", '{"token": 5}', '{"token": ""}', '{"token": "a\\r\\nb"}'])
    def test_an_answer_without_token_is_rejected_and_not_shown(self, body: str) -> None:
        with pytest.raises(SchemaBreak, match="the answer of the token service") as failure:
            parse_answer(Document("token", "", 200, "application/json", body.encode()), now=NOW)
        assert (failure.value.evidence, failure.value.__cause__) == ("", None)


@pytest.mark.parametrize(
    ("failures", "asked", "least", "most"),
    [(1, None, 0.75, 1), (2, None, 1.5, 2), (6, None, 24, 32), (9, None, 24, 32), (5000, None, 24, 32), (1, 7.0, 7, 7)],
)
def test_pauses_double_up_to_32_seconds(failures: int, asked: float | None, least: float, most: float) -> None:
    chance = random.Random(7)
    found = [token_backoff_seconds(failures, chance, retry_after=asked) for _ in range(200)]
    assert least <= min(found)
    assert max(found) <= most
    assert asked is not None or len(set(found)) > 100


def answer(body: dict[str, Any]) -> Document:
    return Document("token", "", 200, "application/json", json.dumps(body).encode())
