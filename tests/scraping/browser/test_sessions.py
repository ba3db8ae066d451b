"""Sessions: their time, their successors, their cookies in memory, their rows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import CookieJar, web
from yarl import URL

from scraping.browser.cookies import (
    Cookies,
    changed_cookies,
    cookies_of_context,
    cookies_of_jar,
    merged_cookies,
    replace_cookies,
)
from scraping.browser.egress.upstream_proxies import ProxyPlan
from scraping.browser.session import Session, SessionRecord
from scraping.browser.sessions import Sessions
from scraping.errors import Blocked, Challenged
from scraping.models import ProxySession
from scraping.reading.reader import Reader, Target
from scraping.readings import ReadMode, RefInfo, Site
from scraping.scheduler import retention
from scraping.sources import adapter_for
from scraping.worker import upkeep
from tests.factories import make_source
from tests.scraping.browser.local_servers import LIVE, LocalProxy, LocalSite, Worker
from tests.scraping.browser.loops import on_a_loop
from tests.stadium_process import StadiumProcess

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.mark.requirement("FS-20")
class TestCookieConversion:
    VISITED = cookies_of_context(
        [
            {"name": "sid", "value": 'a/b=c,"d"', "domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": True},
            {"name": "wide", "value": "x", "domain": ".example.com", "path": "/api", "expires": 4e9, "secure": True},
        ]
    )

    @on_a_loop
    async def test_are_sent_as_the_browser_would_send_them(self) -> None:
        jar = CookieJar(unsafe=True, quote_cookie=False)
        replace_cookies(jar, self.VISITED)
        sent = jar.filter_cookies(URL("http://127.0.0.1/x"))
        assert {name: morsel.coded_value for name, morsel in sent.items()} == {"sid": 'a/b=c,"d"'}
        assert set(jar.filter_cookies(URL("https://www.example.com/api/x"))) == {"wide"}
        for elsewhere in ("https://www.example.com/", "http://www.example.com/api", "https://example.org/api"):
            assert not jar.filter_cookies(URL(elsewhere))

    @on_a_loop
    async def test_convert_back_unchanged(self) -> None:
        jar = CookieJar(unsafe=True, quote_cookie=False)
        replace_cookies(jar, self.VISITED)
        assert changed_cookies(cookies_of_jar(jar), self.VISITED) == []
        assert cookies_of_jar(jar).keys() == self.VISITED.keys()

    @on_a_loop
    async def test_cookies_of_direct_responses_count_as_changed(self) -> None:
        jar = CookieJar(unsafe=True, quote_cookie=False)
        replace_cookies(jar, self.VISITED)
        jar.update_cookies_from_headers(["sid=new; Path=/", "more=1"], URL("http://127.0.0.1/"))
        found = changed_cookies(cookies_of_jar(jar), self.VISITED)
        assert {(one["name"], one["value"]) for one in found} == {("sid", "new"), ("more", "1")}

    @pytest.mark.parametrize(
        ("before", "direct", "visited", "kept"),
        [
            pytest.param("1", "1", "2", "2", id="changed by the page"),
            pytest.param("1", "2", "1", "2", id="changed by a direct response"),
            pytest.param("1", "2", "3", "3", id="changed by both: the page's counts"),
            pytest.param(None, "2", None, "2", id="set by a direct response only"),
            pytest.param("1", "1", None, None, id="deleted by the page"),
        ],
    )
    def test_the_newer_cookie_is_kept_after_a_visit(
        self, before: str | None, direct: str | None, visited: str | None, kept: str | None
    ) -> None:
        def held(value: str | None) -> Cookies:
            return {} if value is None else {("h", "/", "n"): {"name": "n", "value": value}}

        merged = merged_cookies(visited=held(visited), direct=held(direct), before=held(before))
        assert merged == held(kept)


def counting_site(site: LocalSite) -> None:
    """Sets a session cookie at every visit and another cookie at every direct response."""
    visits, answers = iter(range(1, 100)), iter(range(1, 100))

    def page(request: web.Request) -> web.Response:
        answer = web.Response(text="<script src=/app.js></script>", content_type="text/html")
        if "sid" not in request.cookies:
            answer.headers["set-cookie"] = f"sid=visitor/{next(visits)}; HttpOnly; Path=/"
        return answer

    def live(request: web.Request) -> web.Response:
        answer = web.json_response({"score": "1/0"})
        answer.set_cookie("roll", str(next(answers)))
        return answer

    site.answers.update({"/match": page, "/api/live.json": live})


@pytest.mark.slow
@pytest.mark.requirement("FS-20")
class TestCookiesInTheBrowser:
    def test_are_exchanged_between_visits_and_direct_reads(self, browser_worker: Worker, local_site: LocalSite) -> None:
        counting_site(local_site)
        sessions, source = browser_worker.sessions(), local_site.as_source()

        async def read() -> None:
            session = await sessions.get(source)
            await session.visit(local_site.match, (LIVE,))  # roll=1
            await session.request(local_site.match, (local_site.request,))  # roll=2
            await session.request(local_site.match, (local_site.request,))  # roll=3
            await session.visit(local_site.match, (LIVE,))

        browser_worker.run(read())
        sent = [one.headers.get("cookie", "") for one in local_site.seen if one.path in ("/match", "/api/live.json")]
        assert [sorted(one.split("; ")) if one else [] for one in sent] == [
            [],
            ["sid=visitor/1"],
            ["roll=1", "sid=visitor/1"],
            ["roll=2", "sid=visitor/1"],
            ["roll=3", "sid=visitor/1"],  # the second visit's page, with what direct reads were given
            ["roll=3", "sid=visitor/1"],
        ]

    @pytest.mark.faults_only
    def test_outlive_the_browser(self, browser_worker: Worker, local_site: LocalSite) -> None:
        counting_site(local_site)
        sessions, source, host = browser_worker.sessions(), local_site.as_source(), browser_worker.host

        async def read() -> tuple[int, int]:
            session = await sessions.get(source)
            await session.visit(local_site.match, (LIVE,))
            before = host.generation
            host.report_lost(before, "a test")
            await session.request(local_site.match, (local_site.request,))
            await session.visit(local_site.match, (LIVE,))
            return before, host.generation

        before, after = browser_worker.run(read())
        assert after == before + 1
        assert "sid=visitor/1" in local_site.last("/match").headers["cookie"]


@pytest.mark.slow
@pytest.mark.requirement("FS-13", "FS-20")
class TestRotation:
    @pytest.fixture
    def clock(self) -> list[float]:
        return [0.0]

    @pytest.fixture
    def sessions(self, browser_worker: Worker, clock: list[float]) -> Sessions:
        return browser_worker.sessions(ProxyPlan(sticky_seconds=600), clock=lambda: clock[0])

    def visit(self, worker: Worker, sessions: Sessions, site: LocalSite, source: Site) -> str:
        async def go() -> str:
            session = await sessions.get(source, is_visit=True)
            await session.visit(site.match, (LIVE,))
            return session.session_id

        return worker.run(go())

    def present(self, worker: Worker, sessions: Sessions, source: Site) -> Session:
        return worker.run(sessions.get(source))

    def test_is_sticky_until_its_time_is_over_and_then_replaced_by_a_visit(
        self, browser_worker: Worker, local_site: LocalSite, sessions: Sessions, clock: list[float]
    ) -> None:
        counting_site(local_site)
        source = local_site.as_source()
        first = self.visit(browser_worker, sessions, local_site, source)
        clock[0] = 599
        assert self.visit(browser_worker, sessions, local_site, source) == first
        assert not sessions.wants_visit(source.key)
        clock[0] = 600
        assert sessions.wants_visit(source.key)
        assert not sessions.wants_visit(source.key), "one visit suffices"
        assert self.present(browser_worker, sessions, source).session_id == first, "direct reads use the old session"
        second = self.visit(browser_worker, sessions, local_site, source)
        assert second != first
        assert self.present(browser_worker, sessions, source).session_id == second
        assert "sid=visitor/1" not in local_site.last("/match").headers.get("cookie", ""), "no cookies"
        ended = [record for record in sessions.records() if record.ended_at]
        assert [(one.session_id, one.end_reason, one.successes) for one in ended] == [(first, "renewed", 2)]

    @pytest.mark.faults_only
    def test_a_refused_successor_leaves_the_session_in_use(
        self, browser_worker: Worker, local_site: LocalSite, sessions: Sessions, clock: list[float]
    ) -> None:
        source = local_site.as_source()
        first = self.visit(browser_worker, sessions, local_site, source)
        clock[0] = 700
        local_site.answers["/match"] = lambda _: web.Response(status=403, text="no")

        async def refused() -> None:
            session = await sessions.get(source, is_visit=True)
            assert session.session_id != first
            await session.visit(local_site.match, (LIVE,))
            sessions.drop(session, cause=Blocked("no", http_status=403))

        browser_worker.run(refused())
        assert self.present(browser_worker, sessions, source).session_id == first
        assert sessions.is_warm(source.key)

    def test_reads_under_way_finish_after_a_drop(
        self, browser_worker: Worker, local_site: LocalSite, sessions: Sessions
    ) -> None:
        source = local_site.as_source()

        async def slow(request: web.Request) -> web.Response:
            await asyncio.sleep(0.3)
            return web.json_response({"score": "late"})

        local_site.answers["/api/live.json"] = slow

        async def read() -> tuple[object, int]:
            session = await sessions.get(source)
            reading = asyncio.ensure_future(session.request(local_site.match, (local_site.request,)))
            await asyncio.sleep(0.05)
            sessions.drop(session, cause=Blocked("no"))
            sessions.drop(session, cause=Blocked("no"))
            assert await sessions.get(source) is not session
            return (await reading).documents["live"].json(), len([one for one in sessions.records() if one.ended_at])

        assert browser_worker.run(read()) == ({"score": "late"}, 1)

    def test_changed_settings_open_another_session(
        self, browser_worker: Worker, local_site: LocalSite, sessions: Sessions
    ) -> None:
        source = local_site.as_source("one")
        first = self.present(browser_worker, sessions, source)
        assert self.present(browser_worker, sessions, source) is first
        assert self.present(browser_worker, sessions, replace(source, uses_proxy=False)) is not first

    def test_attached_pages_keep_their_session(
        self, browser_worker: Worker, local_site: LocalSite, sessions: Sessions, clock: list[float]
    ) -> None:
        source = local_site.as_source()

        async def stay() -> tuple[Session, Session, Session]:
            session = await sessions.get(source, is_visit=True)
            await session.visit(local_site.match, (LIVE,))
            page, _ = await session.open_page()
            clock[0] = 700
            during = await sessions.get(source, is_visit=True)
            await session.close_page(page)
            return session, during, await sessions.get(source, is_visit=True)

        first, during, after = browser_worker.run(stay())
        assert during is first
        assert after is not first


@pytest.mark.slow
@pytest.mark.requirement("FS-11", "FS-9")
def test_a_challenge_with_status_200_ends_one_session_and_no_more(
    browser_worker: Worker, stadium: StadiumProcess
) -> None:
    """The next session meets the challenge as well: a third one would only use up another proxy."""
    sessions = browser_worker.sessions()
    reader = Reader(sessions, browser_worker.run)
    shown = next(match for match in stadium.matches() if (match["site"], match["status"]) == ("crex", "live"))
    site = Site("crex", f"{stadium.url}/crex", allows_private=True)
    target = Target(1, site, RefInfo(shown["key"], shown["url"]), adapter_for("crex"))
    reader.scorecard(target)
    before = browser_worker.run(sessions.get(site)).session_id
    stadium.fault(site="crex", target="*", kind="challenge")
    try:
        for _ in range(3):
            with pytest.raises(Challenged):
                reader.scorecard(target)
    finally:
        stadium.clear()
    assert reader.scorecard(target)[0].mode is ReadMode.VISIT
    assert browser_worker.run(sessions.get(site)).session_id != before
    (ended,) = [one.end_reason for one in sessions.records() if one.ended_at]
    assert ended.startswith("challenge")


def record(session_id: str = "s1", **fields: object) -> SessionRecord:
    usual = SessionRecord(
        session_id=session_id,
        source="crex",
        proxy_hash="0123456789ab",
        geo="de",
        created_at=NOW,
        last_used_at=NOW,
        ended_at=None,
        end_reason="",
        successes=1,
        failures=0,
        bytes_in=100,
        quarantined_until=None,
    )
    return replace(usual, **fields)  # type: ignore[arg-type]


class FewSessions:
    """A double of a worker's sessions with given records."""

    def __init__(self, *records: SessionRecord) -> None:
        self.pending = list(records)

    def records(self) -> list[SessionRecord]:
        return list(self.pending)

    def written(self, records: list[SessionRecord]) -> None:
        done = {one.session_id for one in records if one.ended_at}
        self.pending = [one for one in self.pending if one.session_id not in done]


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("FS-13")
class TestRows:
    @pytest.fixture(autouse=True)
    def _source(self) -> None:
        make_source("crex")

    def test_follow_a_session_to_its_end(self) -> None:
        upkeep.write_sessions([record(), record("s2", source="unknown")], worker_id="w-1")
        until = NOW + timedelta(minutes=10)
        later = record(
            successes=5, bytes_in=900, ended_at=NOW, end_reason="blocked (403)", quarantined_until=until, geo="xx"
        )
        upkeep.write_sessions([later], worker_id="w-1")
        row = ProxySession.objects.get()
        assert (row.session_id, row.source.key, row.worker_id, row.proxy_hash) == ("s1", "crex", "w-1", "0123456789ab")
        assert (row.successes, row.bytes_in, row.end_reason, row.quarantined_until) == (5, 900, "blocked (403)", until)
        assert row.geo == "de", "the identity of a session does not change"

    def test_are_written_periodically_and_at_once_after_an_end(self) -> None:
        sessions = FewSessions(record())
        log = upkeep.SessionRows(sessions, worker_id="w-1")  # type: ignore[arg-type]
        assert [log.write(now=NOW + timedelta(seconds=second)) for second in (0, 3, 6, 15)] == [1, 0, 0, 1]
        sessions.pending.append(record("s2", ended_at=NOW, end_reason="renewed"))
        assert [log.write(now=NOW + timedelta(seconds=second)) for second in (18, 21)] == [1, 0]

    def test_the_last_write_of_a_worker_ends_them_all(self) -> None:
        log = upkeep.SessionRows(FewSessions(record()), worker_id="w-1")  # type: ignore[arg-type]
        log.write(now=NOW)
        log.write(now=NOW + timedelta(seconds=1), is_last=True)
        assert ProxySession.objects.get().ended_at == NOW + timedelta(seconds=1)

    def test_are_kept_for_a_week(self) -> None:
        upkeep.write_sessions([record(), record("s2", last_used_at=NOW - timedelta(days=8))], worker_id="w-1")
        rule = next(rule for rule in retention.rules() if rule.table == "proxy-sessions")
        rule.step(NOW)
        assert [row.session_id for row in ProxySession.objects.all()] == ["s1"]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.requirement("FS-5", "FS-13")
def test_the_row_of_a_session_contains_no_password(
    browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy]
) -> None:
    make_source("crex")
    proxy = local_proxies[0].proxy
    sessions = browser_worker.sessions(ProxyPlan((proxy,)))

    async def read() -> None:
        session = await sessions.get(local_site.as_source("crex"))
        await session.request(local_site.match, (local_site.request,))
        sessions.drop(session, cause=Blocked("no", http_status=429))

    browser_worker.run(read())
    log = upkeep.SessionRows(sessions, worker_id="w-1")
    assert log.write(now=datetime.now(UTC)) == 1
    assert log.write(now=datetime.now(UTC) + timedelta(minutes=1)) == 0, "an ended session is written once"
    row = ProxySession.objects.values().get()
    assert (row["proxy_hash"], row["geo"], row["end_reason"]) == (proxy.hash, "de", "blocked (429)")
    assert (row["successes"], row["failures"]) == (1, 0)
    assert row["bytes_in"] > 0
    assert row["quarantined_until"] > row["ended_at"]
    assert proxy.password not in str(row)
    assert proxy.username not in str(row)
