"""Upstream proxies: choice, rotation, quarantine, and passwords that appear on connections only."""

from __future__ import annotations

import logging
import traceback
from itertools import count

import pytest
from aiohttp import web
from django.conf import settings
from django.test import override_settings

from scraping import apps
from scraping.browser.egress.upstream_proxies import (
    LONGEST_QUARANTINE_SECONDS,
    FailureCause,
    Proxy,
    ProxyError,
    ProxyPlan,
    ProxyPool,
    cause_of,
    parse,
)
from scraping.browser.session import Session
from scraping.browser.sessions import MIN_READINGS, Sessions, UsualSizes
from scraping.errors import AuthExpired, Blocked, Gone, ReadTimeout, ResourceLost, SchemaBreak, ScrapingError, Transient
from scraping.reading.access import error_for
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, ReadMode, RefInfo, Site
from scraping.sources import adapter_for
from tests.factories import NOW
from tests.scraping.browser.local_servers import LIVE, LocalProxy, LocalSite, Worker
from tests.stadium_process import StadiumProcess
from victoryline.configuration import load

SECRET = "geheim"
A, B, C = (Proxy(f"10.0.0.{one}", 8080, f"user{one}", SECRET) for one in (1, 2, 3))


def pool_of(*proxies: Proxy, seconds: float = 600.0) -> ProxyPool:
    return ProxyPool(proxies, quarantine_seconds=seconds)


def taken(pool: ProxyPool, now: float) -> Proxy:
    proxy, _ = pool.take(now)
    assert proxy is not None
    return proxy


@pytest.mark.requirement("FS-13")
class TestTake:
    def test_takes_the_least_recently_used(self) -> None:
        pool, clock = pool_of(A, B, C), count()
        assert [taken(pool, next(clock)) for _ in range(5)] == [A, B, C, A, B]

    def test_takes_none_from_an_empty_pool(self) -> None:
        assert pool_of().take(0.0) == (None, False)

    def test_skips_proxies_in_quarantine(self) -> None:
        pool = pool_of(A, B, C)
        pool.quarantine(A.hash, 0.0)
        assert [taken(pool, now) for now in (1.0, 2.0, 3.0)] == [B, C, B]

    def test_takes_released_proxies_again(self) -> None:
        pool = pool_of(A, B)
        pool.quarantine(A.hash, 0.0)
        assert taken(pool, 599.0) == B
        assert taken(pool, 600.0) == A

    def test_takes_the_first_to_be_released_if_all_are_in_quarantine(self) -> None:
        pool = pool_of(A, B, C)
        for now, proxy in enumerate((B, A, C)):
            pool.quarantine(proxy.hash, float(now))
        pick = pool.take(10.0)
        assert pick == (B, True)
        pool.quarantine(B.hash, 11.0)  # refused again: now another one is released first
        assert taken(pool, 12.0) == A


@pytest.mark.requirement("FS-11", "FS-13")
class TestFailureCauses:
    @pytest.mark.parametrize(
        ("error", "cause"),
        [
            (Blocked("x", http_status=403), FailureCause.REFUSED),
            (Blocked("x", http_status=429), FailureCause.REFUSED),
            (Blocked("the page is a bot challenge"), FailureCause.REFUSED),
            (AuthExpired("x", http_status=401), FailureCause.SESSION),
            (ReadTimeout("x"), FailureCause.NO_ANSWER),
            (Transient("connection reset"), FailureCause.NO_ANSWER),
            (Transient("x", http_status=503), FailureCause.OTHER),
            (Gone("x", http_status=404), FailureCause.OTHER),
            (SchemaBreak("x"), FailureCause.OTHER),
            (ResourceLost("x"), FailureCause.OTHER),
            (ValueError("x"), FailureCause.OTHER),
        ],
    )
    def test_the_cause_of_an_error(self, error: Exception, cause: FailureCause) -> None:
        assert cause_of(error) is cause

    def test_the_second_timeout_in_a_row_ends_the_session(self) -> None:
        pool = pool_of(A)
        assert [pool.timed_out(A.hash, began=now, now=now) for now in (1.0, 2.0)] == [False, True]

    def test_a_success_resets_the_timeouts(self) -> None:
        pool = pool_of(A)
        pool.timed_out(A.hash, began=1.0, now=1.0)
        pool.succeeded(A.hash, 2.0)
        assert not pool.timed_out(A.hash, began=3.0, now=3.0)

    def test_concurrent_timeouts_count_once(self) -> None:
        pool = pool_of(A)
        assert not any(pool.timed_out(A.hash, began=0.0, now=10.0 + one / 100) for one in range(24))
        assert pool.timed_out(A.hash, began=11.0, now=20.0)

    def test_without_a_proxy_a_timeout_ends_no_session(self) -> None:
        assert pool_of().quarantine("", 1.0) is None
        assert not any(pool_of().timed_out("", began=float(now), now=float(now)) for now in range(5))


@pytest.mark.requirement("FS-13")
class TestQuarantine:
    def test_doubles_for_a_repeat_offender_up_to_a_day(self) -> None:
        pool, now, lengths = pool_of(A), 0.0, []
        for _ in range(10):
            pool.take(now)
            until = pool.quarantine(A.hash, now)
            assert until is not None
            lengths.append(until - now)
            now = until + 1
            pool.succeeded(A.hash, now)  # one success does not clear the offences
        assert lengths[:4] == [600.0, 1200.0, 2400.0, 4800.0]
        assert lengths[-1] == LONGEST_QUARANTINE_SECONDS

    def test_offences_are_cleared_after_as_long_without_one(self) -> None:
        pool = pool_of(A)
        pool.quarantine(A.hash, 0.0)
        pool.succeeded(A.hash, 1200.0)
        pool.take(1300.0)
        assert pool.quarantine(A.hash, 1300.0) == 1900.0

    def test_refusals_of_earlier_reads_count_once(self) -> None:
        pool = pool_of(A, B)
        pool.take(0.0)
        assert {pool.quarantine(A.hash, now) for now in (1.0, 1.1, 1.2)} == {601.0}

    def test_a_gateway_is_quarantined_after_three_refused_sessions(self) -> None:
        door = Proxy("gate.example", 1, "u", SECRET, "de", is_gateway=True)
        pool = pool_of(door)
        ends = []
        for now in range(3):
            pool.take(float(now))
            ends.append(pool.quarantine(door.hash, now + 0.5))
        assert ends == [None, None, 602.5]


class TestParse:
    @pytest.mark.requirement("FS-13", "FS-14")
    def test_reads_the_list(self) -> None:
        found = parse("http://u:p%40ss@one.example:8080#de  https://two.example:443")
        assert [(one.scheme, one.host, one.port, one.country) for one in found] == [
            ("http", "one.example", 8080, "de"),
            ("https", "two.example", 443, ""),
        ]
        assert (found[0].username, found[0].password) == ("u", "p@ss")
        assert found[0].url == "http://u:p%40ss@one.example:8080"

    @pytest.mark.requirement("FS-5")
    @pytest.mark.parametrize(
        "url",
        [
            f"socks5://u:{SECRET}@h:1",
            f"http://u:{SECRET}@h",
            f"http://u:{SECRET}@:80",
            f"http://u:{SECRET}@h:port",
            f"http://u:{SECRET}@h:1#nowhere",
        ],
    )
    def test_errors_name_a_proxy_by_its_position(self, url: str) -> None:
        with pytest.raises(ProxyError, match="proxy 2: ") as caught:
            parse(f"http://fine.example:80 {url}")
        assert SECRET not in "".join(traceback.format_exception(caught.value))

    @pytest.mark.requirement("FS-13")
    def test_the_password_of_a_gateway_names_session_and_lifetime(self) -> None:
        door = Proxy("geo.example", 12321, "u", "p", "de", is_gateway=True)
        first, again, other = (door.for_session(name, seconds=600) for name in ("a", "a", "b"))
        assert first.password == again.password != other.password
        prefix, _, rest = first.password.partition("_country-de_session-")
        session, _, lifetime = rest.partition("_lifetime-")
        assert (prefix, len(session), session.isalnum(), lifetime) == ("p", 8, True, "20m")
        assert first.hash == door.hash, "all its sessions are one proxy"

    def test_any_other_proxy_is_the_same_for_every_session(self) -> None:
        assert A.for_session("a", seconds=600) == A

    @pytest.mark.requirement("FS-5")
    def test_repr_contains_no_credentials(self) -> None:
        assert SECRET not in repr(A)
        assert "user1" not in repr(A)
        assert len(A.hash) == 12
        assert len({A.hash, B.hash, Proxy("10.0.0.1", 8080, "other").hash}) == 3


class TestSettings:
    @pytest.mark.requirement("FS-5", "FS-13")
    def test_become_a_plan(self) -> None:
        environ = {
            "SCRAPER_PROXIES": f"http://u:{SECRET}@one.example:8080#de",
            "IPROYAL_HOST": "geo.example",
            "IPROYAL_PORT": "12321",
            "IPROYAL_PASSWORD": SECRET,
            "SCRAPER_PROXY_MODE": "rotating",
            "SCRAPER_STICKY_TTL_SECONDS": "120",
        }
        with override_settings(CONFIG=load(environ)):
            plan = ProxyPlan.of(settings.CONFIG)
            assert apps.check_proxies() == []
        assert [(one.host, one.is_gateway) for one in plan.proxies] == [("one.example", False), ("geo.example", True)]
        assert (plan.is_rotating, plan.sticky_seconds, plan.quarantine_seconds) == (True, 120, 600)
        assert SECRET not in repr(plan)

    @pytest.mark.parametrize(
        "environ",
        [{"SCRAPER_PROXIES": f"u:{SECRET}@h:1"}, {"IPROYAL_HOST": "h", "IPROYAL_PORT": "1", "IPROYAL_COUNTRY": "mars"}],
    )
    def test_invalid_settings_stop_every_command_with_a_hint(self, environ: dict[str, str]) -> None:
        with override_settings(CONFIG=load(environ)):
            found = apps.check_proxies()
        assert [one.id for one in found] == ["scraping.E001"]
        assert SECRET not in str(found)


def used(proxies: list[LocalProxy]) -> list[int]:
    """Returns the requests of each proxy since the last call."""
    numbers = [len(proxy.seen) for proxy in proxies]
    for proxy in proxies:
        proxy.seen.clear()
    return numbers


def which(session: Session, proxies: list[LocalProxy]) -> int:
    assert session.proxy is not None
    return [proxy.proxy.hash for proxy in proxies].index(session.proxy.hash)


@pytest.mark.requirement("FS-13")
class TestUsualSizes:
    @staticmethod
    def read(sizes: UsualSizes, size: int, *, match: str = "a", requests: int = 1) -> bool:
        reading = Reading(RefInfo(match, ""), ReadMode.DIRECT, NOW, {}, bytes_in=size, requests_made=requests)
        return sizes.is_abnormal("crex", reading)

    @pytest.mark.parametrize(
        ("size", "requests", "expected"),
        [
            pytest.param(500_001, 1, True, id="six times"),
            pytest.param(1_000_002, 2, True, id="of each request"),
            pytest.param(1_000_000, 4, False, id="more requests"),
            pytest.param(400_000, 1, False, id="four times"),
        ],
    )
    def test_many_times_the_usual_bytes_of_a_request_are_abnormal(
        self, size: int, requests: int, expected: bool
    ) -> None:
        sizes = UsualSizes()
        assert not any(self.read(sizes, 100_000) for _ in range(MIN_READINGS))
        assert self.read(sizes, size, requests=requests) == expected

    def test_small_answers_may_grow(self) -> None:
        sizes = UsualSizes()
        assert not any(self.read(sizes, 100) for _ in range(MIN_READINGS))
        assert not self.read(sizes, 90_000)

    def test_each_match_has_its_own(self) -> None:
        sizes = UsualSizes()
        assert not any(self.read(sizes, 1_000) for _ in range(MIN_READINGS))
        assert not self.read(sizes, 900_000, match="b")

    def test_data_that_have_grown_are_learned_anew(self) -> None:
        sizes = UsualSizes()
        readings = [1_000] * MIN_READINGS + [900_000] * 3 * MIN_READINGS
        assert [self.read(sizes, size) for size in readings].count(True) == 1


@pytest.mark.slow
@pytest.mark.requirement("FS-11", "FS-13")
class TestThroughRealProxies:
    @pytest.fixture
    def clock(self) -> list[float]:
        return [1000.0]

    @pytest.fixture
    def sessions(self, browser_worker: Worker, local_proxies: list[LocalProxy], clock: list[float]) -> Sessions:
        plan = ProxyPlan(tuple(one.proxy for one in local_proxies), sticky_seconds=600, quarantine_seconds=60)
        return browser_worker.sessions(plan, clock=lambda: clock[0])

    def test_visits_and_direct_reads_use_the_sessions_proxy_only(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy], sessions: Sessions
    ) -> None:
        async def read() -> None:
            session = await sessions.get(local_site.as_source("one"), is_visit=True)
            reading = await session.visit(local_site.match, (LIVE,))
            assert reading.documents["live"].json() == {"score": "92/1"}
            await session.request(local_site.match, (local_site.request,))

        browser_worker.run(read())
        assert used(local_proxies)[1:] == [0, 0]
        assert len(local_site.seen) >= 4
        assert {one.client_port for one in local_site.seen} <= local_proxies[0].ports, "every request used the proxy"

    def test_a_source_without_proxies_uses_none(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy], sessions: Sessions
    ) -> None:
        async def read() -> None:
            session = await sessions.get(local_site.as_source("bare", uses_proxy=False), is_visit=True)
            await session.visit(local_site.match, (LIVE,))
            await session.request(local_site.match, (local_site.request,))

        browser_worker.run(read())
        assert used(local_proxies) == [0, 0, 0]
        assert local_site.paths().count("/api/live.json") == 2

    @pytest.mark.parametrize("status", [403, 429])
    def test_a_refusal_rotates_at_once_and_back_after_the_quarantine(  # noqa: PLR0917 - fixtures
        self,
        browser_worker: Worker,
        local_site: LocalSite,
        local_proxies: list[LocalProxy],
        sessions: Sessions,
        clock: list[float],
        status: int,
    ) -> None:
        source = local_site.as_source()

        async def poll() -> int:
            session = await sessions.get(source)
            reading = await session.request(local_site.match, (local_site.request,))
            error = error_for(reading.documents["live"])
            if error is not None:
                sessions.drop(session, cause=error)
                raise error
            return which(session, local_proxies)

        def refused() -> None:
            with pytest.raises(Blocked):
                browser_worker.run(poll())

        local_proxies[0].behaviour = str(status)
        refused()
        order = [browser_worker.run(poll())]
        local_proxies[1].behaviour = str(status)
        refused()
        order.append(browser_worker.run(poll()))
        local_proxies[2].behaviour = str(status)
        refused()
        local_proxies[0].behaviour = "pass"
        clock[0] += 10  # all three are in quarantine still: the first one comes out first
        order.append(browser_worker.run(poll()))
        assert order == [1, 2, 0]
        clock[0] += 600
        browser_worker.loop.call_soon_threadsafe(sessions.drop, browser_worker.run(sessions.get(source)))
        local_proxies[1].behaviour = "pass"
        assert browser_worker.run(poll()) == 1, "released, and not used for longest"

    @pytest.mark.faults_only
    def test_the_reader_rotates_after_a_refusal(
        self, browser_worker: Worker, stadium: StadiumProcess, local_proxies: list[LocalProxy], sessions: Sessions
    ) -> None:
        shown = next(match for match in stadium.matches() if (match["site"], match["status"]) == ("crex", "live"))
        site = Site("crex", f"{stadium.url}/crex", allows_private=True)
        target = Target(1, site, RefInfo(shown["key"], shown["url"]), adapter_for("crex"))
        reader = Reader(sessions, browser_worker.run)
        local_proxies[0].behaviour = "403"
        with pytest.raises(Blocked):
            reader.scorecard(target)
        assert [number > 0 for number in used(local_proxies)] == [True, False, False]
        modes = [reader.scorecard(target)[0].mode for _ in range(2)]
        assert modes == [ReadMode.VISIT, ReadMode.DIRECT]
        assert [number > 0 for number in used(local_proxies)] == [False, True, False]
        ended = [record for record in sessions.records() if record.ended_at is not None]
        assert [(one.end_reason, one.proxy_hash) for one in ended] == [("blocked (403)", local_proxies[0].proxy.hash)]
        assert ended[0].quarantined_until is not None

    def test_the_second_timeout_rotates(
        self,
        browser_worker: Worker,
        local_site: LocalSite,
        local_proxies: list[LocalProxy],
        sessions: Sessions,
        clock: list[float],
    ) -> None:
        local_proxies[0].behaviour = "hang"
        source = local_site.as_source()

        async def poll(factor: float = 0.1) -> int:
            session = await sessions.get(source)
            number = which(session, local_proxies)
            await session.request(local_site.match, (local_site.request,), timeout_factor=factor)
            return number

        for _ in range(2):
            assert which(browser_worker.run(sessions.get(source)), local_proxies) == 0
            with pytest.raises(ReadTimeout):
                browser_worker.run(poll())
            clock[0] += 100  # more than the read took: the next one begins after this timeout
        assert browser_worker.run(poll(5.0)) == 1  # generous for a busy machine

    def test_several_sessions_read_in_turn_each_through_its_proxy(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy], clock: list[float]
    ) -> None:
        plan = ProxyPlan(tuple(one.proxy for one in local_proxies), sessions_per_source=3)
        sessions, source = browser_worker.sessions(plan, clock=lambda: clock[0]), local_site.as_source()

        async def visit() -> int:
            session = await sessions.get(source, is_visit=True)
            await session.visit(local_site.match, (LIVE,))
            return which(session, local_proxies)

        async def poll() -> int:
            clock[0] += 1
            session = await sessions.get(source)
            await session.request(local_site.match, (local_site.request,))
            return which(session, local_proxies)

        assert [browser_worker.run(visit()), browser_worker.run(poll())] == [0, 0]
        assert sessions.wants_visit(source.key)
        assert [browser_worker.run(visit()) for _ in range(2)] == [1, 2]
        clock[0] += 60
        assert not sessions.wants_visit(source.key), "there are enough"
        assert [browser_worker.run(poll()) for _ in range(4)] in ([0, 1, 2, 0], [1, 2, 0, 1])
        second = next(one for one in sessions._by_site[source.key] if which(one, local_proxies) == 1)
        browser_worker.loop.call_soon_threadsafe(lambda: sessions.drop(second, cause=Blocked("no", http_status=403)))
        assert {browser_worker.run(poll()) for _ in range(4)} == {0, 2}
        assert sessions.wants_visit(source.key)

    def test_many_times_the_usual_bytes_rotate_once(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy], sessions: Sessions
    ) -> None:
        source, size = local_site.as_source(), [10]
        local_site.answers["/api/live.json"] = lambda _: web.json_response({"score": "x" * size[0]})

        async def poll() -> int:
            session = await sessions.get(source)
            await session.request(local_site.match, (local_site.request,))
            return which(session, local_proxies)

        assert {browser_worker.run(poll()) for _ in range(MIN_READINGS)} == {0}
        size[0] = 150_000
        assert [browser_worker.run(poll()) for _ in range(3)] == [0, 1, 1]
        (ended,) = (record for record in sessions.records() if record.ended_at is not None)
        assert (ended.end_reason, ended.quarantined_until) == ("abnormal_bytes", None)

    @pytest.mark.faults_only
    def test_rotating_mode_uses_another_proxy_for_every_visit(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy]
    ) -> None:
        plan = ProxyPlan(tuple(one.proxy for one in local_proxies), is_rotating=True)
        sessions, source = browser_worker.sessions(plan), local_site.as_source()

        async def visit() -> tuple[int, int]:
            session = await sessions.get(source, is_visit=True)
            await session.visit(local_site.match, (LIVE,))
            present = await sessions.get(source)
            await present.request(local_site.match, (local_site.request,))
            return which(session, local_proxies), which(present, local_proxies)

        assert [browser_worker.run(visit()) for _ in range(4)] == [(0, 0), (1, 1), (2, 2), (0, 0)]

    def test_a_gateway_gets_another_password_for_every_session(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy]
    ) -> None:
        there = local_proxies[0]
        door = Proxy("127.0.0.1", there.port, there.username, there.password, "de", is_gateway=True)
        sessions, source = browser_worker.sessions(ProxyPlan((door,))), local_site.as_source()

        async def poll() -> None:
            session = await sessions.get(source)
            await session.visit(local_site.match, (LIVE,))
            await session.request(local_site.match, (local_site.request,))
            sessions.drop(session, cause=Blocked("no", http_status=403))

        passwords = []
        for _ in range(2):
            browser_worker.run(poll())
            recorded = {one.password for one in there.seen if one.user}
            there.seen.clear()
            assert len(recorded) == 1, "one session, one address: the page and the direct read"
            passwords += recorded
        assert passwords[0] != passwords[1]
        assert all(one.startswith(f"{SECRET}_country-de_session-") for one in passwords)


@pytest.mark.slow
@pytest.mark.requirement("FS-5")
class TestPasswords:
    @pytest.mark.parametrize("behaviour", ["pass", "403", "502", "hang", "wrong password", "gone"])
    def test_are_in_no_log_row_or_error(
        self,
        browser_worker: Worker,
        local_site: LocalSite,
        local_proxies: list[LocalProxy],
        caplog: pytest.LogCaptureFixture,
        behaviour: str,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        there = local_proxies[0]
        there.behaviour = behaviour if behaviour in ("hang", "403", "502") else "pass"
        proxy = there.proxy
        if behaviour == "wrong password":
            proxy = Proxy(proxy.host, proxy.port, "user0", f"x{SECRET}")
        if behaviour == "gone":
            proxy = Proxy(proxy.host, 1, "user0", SECRET)
        sessions, source = browser_worker.sessions(ProxyPlan((proxy,))), local_site.as_source()
        recorded: list[str] = []

        async def read() -> None:
            for way in ("visit", "direct"):
                session = await sessions.get(source)
                try:
                    if way == "visit":
                        await session.visit(local_site.match, (LIVE,), timeout_factor=0.3)
                    else:
                        await session.request(local_site.match, (local_site.request,), timeout_factor=0.3)
                except ScrapingError as error:
                    recorded.append("".join(traceback.format_exception(error)))
                    sessions.drop(session, cause=error)
                recorded.append(repr(vars(session)))

        browser_worker.run(read())
        recorded += [repr(record) for record in sessions.records()]
        recorded += [record.getMessage() + repr(vars(record)) for record in caplog.records]
        assert any(proxy.hash in one for one in recorded)
        assert not [one for one in recorded if SECRET in one]
