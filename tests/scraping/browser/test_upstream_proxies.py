"""Upstream proxies: choice, rotation, quarantine, and passwords that appear on connections only."""

from __future__ import annotations

import logging
import traceback
from itertools import count

import pytest
from django.conf import settings
from django.test import override_settings

from scraping import checks
from scraping.browser.egress.upstream_proxies import (
    LONGEST_QUARANTINE_SECONDS,
    FailureCause,
    FailureOutcome,
    Proxy,
    ProxyError,
    ProxyPlan,
    ProxyPool,
    cause_of,
    parse,
)
from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import AuthExpired, Blocked, Gone, ReadTimeout, ResourceLost, SchemaBreak, ScrapingError, Transient
from scraping.reading.access import error_for
from scraping.reading.reader import Reader, Target
from scraping.readings import ReadMode, RefInfo, Site
from scraping.sources import adapter_for
from tests.scraping.browser.places import LIVE, LocalProxy, LocalSite, Worker
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
        pool.failed(A.hash, FailureCause.REFUSED, 0.0)
        assert [taken(pool, now) for now in (1.0, 2.0, 3.0)] == [B, C, B]

    def test_takes_released_proxies_again(self) -> None:
        pool = pool_of(A, B)
        pool.failed(A.hash, FailureCause.REFUSED, 0.0)
        assert taken(pool, 599.0) == B
        assert taken(pool, 600.0) == A

    def test_takes_the_first_to_be_released_if_all_are_in_quarantine(self) -> None:
        pool = pool_of(A, B, C)
        for now, proxy in enumerate((B, A, C)):
            pool.failed(proxy.hash, FailureCause.REFUSED, float(now))
        pick = pool.take(10.0)
        assert pick == (B, True)
        pool.failed(B.hash, FailureCause.REFUSED, 11.0)  # it was used, and refused again: now another one is less bad
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

    def test_a_refusal_rotates_at_once(self) -> None:
        assert pool_of(A).failed(A.hash, FailureCause.REFUSED, 5.0) == FailureOutcome(
            rotates=True, quarantined_until=605.0
        )

    def test_the_second_timeout_in_a_row_rotates(self) -> None:
        pool = pool_of(A)
        assert not pool.failed(A.hash, FailureCause.NO_ANSWER, 1.0).rotates
        assert pool.failed(A.hash, FailureCause.NO_ANSWER, 2.0) == FailureOutcome(rotates=True, quarantined_until=602.0)

    def test_a_success_resets_the_timeouts(self) -> None:
        pool = pool_of(A)
        pool.failed(A.hash, FailureCause.NO_ANSWER, 1.0)
        pool.succeeded(A.hash, 2.0)
        assert not pool.failed(A.hash, FailureCause.NO_ANSWER, 3.0).rotates

    def test_concurrent_timeouts_count_once(self) -> None:
        pool = pool_of(A)
        assert not any(
            pool.failed(A.hash, FailureCause.NO_ANSWER, 10.0 + one / 100, began=0.0).rotates for one in range(24)
        )
        assert pool.failed(A.hash, FailureCause.NO_ANSWER, 20.0, began=11.0).rotates

    @pytest.mark.parametrize(("cause", "rotates"), [(FailureCause.SESSION, True), (FailureCause.OTHER, False)])
    def test_other_faults_quarantine_no_proxy(self, cause: FailureCause, rotates: bool) -> None:
        pool = pool_of(A)
        assert pool.failed(A.hash, cause, 1.0) == FailureOutcome(rotates=rotates)
        assert pool.quarantined_count(1.0) == 0

    def test_without_a_proxy_a_refusal_rotates_and_a_timeout_does_not(self) -> None:
        assert pool_of().failed("", FailureCause.REFUSED, 1.0) == FailureOutcome(rotates=True)
        assert not any(pool_of().failed("", FailureCause.NO_ANSWER, float(now)).rotates for now in range(5))


@pytest.mark.requirement("FS-13")
class TestQuarantine:
    def test_doubles_for_a_repeat_offender_up_to_a_day(self) -> None:
        pool, now, lengths = pool_of(A), 0.0, []
        for _ in range(10):
            pool.take(now)
            until = pool.failed(A.hash, FailureCause.REFUSED, now).quarantined_until
            assert until is not None
            lengths.append(until - now)
            now = until + 1
            pool.succeeded(A.hash, now)  # one good answer is not yet good conduct
        assert lengths[:4] == [600.0, 1200.0, 2400.0, 4800.0]
        assert lengths[-1] == LONGEST_QUARANTINE_SECONDS

    def test_offences_are_cleared_after_as_long_without_one(self) -> None:
        pool = pool_of(A)
        pool.failed(A.hash, FailureCause.REFUSED, 0.0)
        pool.succeeded(A.hash, 1200.0)
        pool.take(1300.0)
        assert pool.failed(A.hash, FailureCause.REFUSED, 1300.0).quarantined_until == 1900.0

    def test_refusals_of_earlier_reads_count_once(self) -> None:
        pool = pool_of(A, B)
        pool.take(0.0)
        assert {pool.failed(A.hash, FailureCause.REFUSED, now).quarantined_until for now in (1.0, 1.1, 1.2)} == {601.0}

    def test_a_gateway_is_quarantined_after_three_refused_sessions(self) -> None:
        door = Proxy("gate.example", 1, "u", SECRET, "de", is_gateway=True)
        pool = pool_of(door)
        verdicts = []
        for now in range(3):
            pool.take(float(now))
            verdicts.append(pool.failed(door.hash, FailureCause.REFUSED, now + 0.5))
        assert [one.rotates for one in verdicts] == [True, True, True]
        assert [one.quarantined_until for one in verdicts] == [None, None, 602.5]


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
            assert checks.proxies_can_be_used() == []
        assert [(one.host, one.is_gateway) for one in plan.proxies] == [("one.example", False), ("geo.example", True)]
        assert (plan.is_rotating, plan.sticky_seconds, plan.quarantine_seconds) == (True, 120, 600)
        assert SECRET not in repr(plan)

    @pytest.mark.parametrize(
        "environ",
        [{"SCRAPER_PROXIES": f"u:{SECRET}@h:1"}, {"IPROYAL_HOST": "h", "IPROYAL_PORT": "1", "IPROYAL_COUNTRY": "mars"}],
    )
    def test_invalid_settings_stop_every_command_with_a_hint(self, environ: dict[str, str]) -> None:
        with override_settings(CONFIG=load(environ)):
            found = checks.proxies_can_be_used()
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
            await session.direct(local_site.match, (local_site.request,))

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
            await session.direct(local_site.match, (local_site.request,))

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
            reading = await session.direct(local_site.match, (local_site.request,))
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
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy], sessions: Sessions
    ) -> None:
        local_proxies[0].behaviour = "hang"
        source = local_site.as_source()

        async def poll(factor: float = 0.1) -> int:
            session = await sessions.get(source)
            number = which(session, local_proxies)
            await session.direct(local_site.match, (local_site.request,), timeout_factor=factor)
            return number

        for _ in range(2):
            assert which(browser_worker.run(sessions.get(source)), local_proxies) == 0
            with pytest.raises(ReadTimeout):
                browser_worker.run(poll())
        assert browser_worker.run(poll(5.0)) == 1  # the other proxy answers, on a busy machine too

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
            await present.direct(local_site.match, (local_site.request,))
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
            await session.direct(local_site.match, (local_site.request,))
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
                        await session.direct(local_site.match, (local_site.request,), timeout_factor=0.3)
                except ScrapingError as error:
                    recorded.append("".join(traceback.format_exception(error)))
                    sessions.drop(session, cause=error)
                recorded.append(repr(vars(session)))

        browser_worker.run(read())
        recorded += [repr(record) for record in sessions.records()]
        recorded += [record.getMessage() + repr(vars(record)) for record in caplog.records]
        assert any(proxy.hash in one for one in recorded)
        assert not [one for one in recorded if SECRET in one]
