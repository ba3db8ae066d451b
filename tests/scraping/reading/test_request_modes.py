"""The mode of a source's requests: learned from refusals, tried again at growing intervals, shared between workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from scraping.errors import PageCrashed, ScrapingError
from scraping.models import Source
from scraping.reading.access import SourceAccess, error_in, is_refusal
from scraping.reading.request_modes import LONGEST_PAUSE_SECONDS, MAX_REASON, LearnedMode, RequestModes
from scraping.reading.tokens import Tokens
from scraping.readings import PAGE, Document, Reading, ReadMode, RefInfo, Site
from scraping.worker.upkeep import RequestModeRows
from tests.factories import NOW, make_source

DIRECT, IN_PAGE, VISIT = ReadMode.DIRECT, ReadMode.IN_PAGE, ReadMode.VISIT
REF = RefInfo("1", "https://crex.test/1")
CHALLENGE = b"<title>Just a moment...</title><div id=challenge-form>"
REFUSED = "blocked: live answered 403"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def modes(clock: Clock) -> RequestModes:
    return RequestModes(clock=clock)


def learned(modes: RequestModes) -> LearnedMode:
    found = modes.learned("crex")
    assert found is not None
    return found


class TestRequestModes:
    def test_begin_with_direct_requests(self, modes: RequestModes) -> None:
        assert modes.next_mode("crex") == (DIRECT, False)
        assert not modes.is_visited_only("crex")

    def test_pauses_of_direct_requests_grow_from_ten_minutes_to_six_hours(
        self, modes: RequestModes, clock: Clock
    ) -> None:
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        pauses = []
        for _ in range(8):
            pauses.append(learned(modes).pause_seconds / 60)
            clock.wait(learned(modes).pause_seconds - 1)
            assert modes.next_mode("crex") == (IN_PAGE, False)
            clock.wait(1)
            assert modes.next_mode("crex") == (DIRECT, True)
            modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        assert pauses == [10, 20, 40, 80, 160, 320, 360, 360]
        assert (learned(modes).since, learned(modes).pause_seconds) == (NOW, LONGEST_PAUSE_SECONDS)

    def test_one_caller_tries_the_direct_request(self, modes: RequestModes, clock: Clock) -> None:
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        clock.wait(600)
        assert [modes.next_mode("crex") for _ in range(3)] == [(DIRECT, True), (IN_PAGE, False), (IN_PAGE, False)]

    def test_visits_end_with_the_pause(self, modes: RequestModes, clock: Clock) -> None:
        modes.refused("crex", accepted=VISIT, reason=REFUSED)
        assert modes.is_visited_only("crex")
        clock.wait(60)
        assert not modes.is_visited_only("crex")

    def test_an_accepted_direct_request_ends_what_was_learned(self, modes: RequestModes) -> None:
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        modes.accepted("crex", IN_PAGE)
        assert learned(modes).mode is IN_PAGE
        modes.accepted("crex", DIRECT)
        assert modes.learned("crex") is None

    def test_other_sources_are_not_affected(self, modes: RequestModes) -> None:
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        assert modes.next_mode("espn") == (DIRECT, False)

    def test_a_reason_is_cut_to_the_length_of_its_column(self, modes: RequestModes) -> None:
        modes.refused("crex", accepted=IN_PAGE, reason="x" * 1000)
        assert len(learned(modes).reason) == MAX_REASON == Source._meta.get_field("request_mode_reason").max_length


def document(status: int, name: str = "live", body: bytes = b"{}", kind: str = "application/json") -> Document:
    return Document(name, f"https://crex.test/{name}", status, kind, body)


class TestRefusals:
    @pytest.mark.parametrize(
        ("found", "code"),
        [
            (document(200), None),
            (document(403), "blocked"),
            (document(401), "auth"),
            (document(403, body=b'{"error":{"code":403,"reason":"challenge"}}'), "challenge"),
            (
                document(200, body=CHALLENGE, kind="text/html"),
                "challenge",
            ),
            (document(403, PAGE), "blocked"),
            (document(200, PAGE, body=CHALLENGE, kind="text/html"), "challenge"),
            (document(403, "feed"), None),  # not required
            (document(429), None),  # a request to ask less often
            (document(404), None),
            (document(503), None),
        ],
    )
    def test_of_a_reading(self, found: Document, code: str | None) -> None:
        error = error_in(Reading(REF, DIRECT, NOW, {found.name: found}), {"live"})
        assert (error.error_code if error and is_refusal(error) else None) == code


class Source403:
    """A source that accepts requests in some modes; records those that it gets."""

    def __init__(self, *accepted: ReadMode) -> None:
        self.accepted, self.asked = set(accepted), list[ReadMode]()
        self.failure: ScrapingError | None = None  # of requests in a page
        self.refusal = 403

    async def ask(self, _: Any, mode: ReadMode) -> Reading:
        self.asked.append(mode)
        await asyncio.sleep(0)
        if mode is IN_PAGE and self.failure is not None:
            raise self.failure
        found = document(200 if mode in self.accepted else self.refusal)
        return Reading(REF, mode, NOW, {"live": found}, bytes_in=10, requests_made=1)


class Asking:
    """Asks a source as the reader does, each time through the same session."""

    def __init__(self, source: Source403, modes: RequestModes, read_way: str = "auto") -> None:
        self.source = source
        self.access = SourceAccess(SimpleNamespace(), Tokens(), None)  # type: ignore[arg-type]
        self.access.modes = modes
        self.required = ["live"]
        self.site = Site("crex", "https://crex.test", read_way=read_way)
        self.new_session()

    def new_session(self) -> None:
        self.session: Any = SimpleNamespace(site=self.site, session_id=uuid4().hex, accepted_modes=set())

    def __call__(self, number: int = 1) -> list[Reading]:
        async def ask() -> list[Reading]:
            one = self.access._ask_as_learned
            return await asyncio.gather(
                *(one(self.session, ask=self.source.ask, required=self.required) for _ in range(number))
            )

        self.source.asked.clear()
        return asyncio.run(ask())


Make = Callable[..., Asking]


class TestLearning:
    def test_accepted_direct_requests_teach_nothing(self, modes: RequestModes) -> None:
        asking = Asking(Source403(DIRECT, IN_PAGE), modes)
        assert [asking()[0].mode for _ in range(2)] == [DIRECT, DIRECT]
        assert modes.learned("crex") is None

    def test_a_refused_request_is_repeated_in_a_page_and_later_ones_begin_there(self, modes: RequestModes) -> None:
        asking = Asking(Source403(IN_PAGE), modes)
        (first,) = asking()
        assert (first.mode, first.documents["live"].status, first.reason) == (IN_PAGE, 200, REFUSED)
        assert (first.requests_made, first.bytes_in) == (2, 20)
        assert asking.source.asked == [DIRECT, IN_PAGE]
        (second,) = asking()
        assert (second.reason, second.requests_made) == (REFUSED, 1)
        assert asking.source.asked == [IN_PAGE]

    def test_of_many_requests_at_once_is_done_by_one(self, modes: RequestModes) -> None:
        asking = Asking(Source403(IN_PAGE), modes)
        assert {one.mode for one in asking(20)} == {IN_PAGE}
        assert asking.source.asked.count(IN_PAGE) == 20
        assert learned(modes).pause_seconds == 600

    def test_where_both_are_refused_in_two_sessions_the_source_is_visited(self, modes: RequestModes) -> None:
        asking = Asking(Source403(), modes)
        assert {one.documents["live"].status for one in asking(3)} == {403}
        assert asking.source.asked == [DIRECT] * 3 + [IN_PAGE], "one session is tried once in a page"
        assert modes.learned("crex") is None, "that may be the session's fault"
        asking.new_session()
        asking()
        assert (learned(modes).mode, learned(modes).reason) == (VISIT, REFUSED)

    def test_a_session_that_is_accepted_between_two_refused_ones_ends_the_doubt(self, modes: RequestModes) -> None:
        asking = Asking(Source403(), modes)
        for accepted in (set(), {DIRECT}, set[ReadMode]()):
            asking.source.accepted = accepted
            asking.new_session()
            asking()
        assert modes.learned("crex") is None

    @pytest.mark.parametrize("status", [404, 429, 503])
    def test_other_errors_teach_nothing(self, modes: RequestModes, clock: Clock, status: int) -> None:
        asking = Asking(Source403(), modes)
        asking.source.refusal = status
        assert asking()[0].documents["live"].status == status
        assert asking.source.asked == [DIRECT]
        assert (modes.learned("crex"), asking.session.accepted_modes) == (None, set())
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        clock.wait(600)
        asking()
        assert asking.source.asked == [DIRECT]
        assert learned(modes).mode is IN_PAGE, "nor does a trial that got one"

    def test_refused_documents_that_are_not_required_are_no_accepted_ones(
        self, modes: RequestModes, clock: Clock
    ) -> None:
        asking = Asking(Source403(IN_PAGE), modes)
        asking.required = []
        asking()
        assert asking.session.accepted_modes == set()
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        clock.wait(600)
        asking()
        assert asking.source.asked == [DIRECT], "the trial"
        assert learned(modes).mode is IN_PAGE

    def test_a_refusal_in_a_session_that_was_accepted_is_about_the_session(self, modes: RequestModes) -> None:
        asking = Asking(Source403(DIRECT, IN_PAGE), modes)
        asking()
        asking.source.accepted.clear()
        assert asking()[0].documents["live"].status == 403
        assert asking.source.asked == [DIRECT]
        assert modes.learned("crex") is None

    def test_refusals_in_the_pages_of_two_new_sessions_lead_to_visits(self, modes: RequestModes) -> None:
        asking = Asking(Source403(IN_PAGE), modes)
        asking()
        asking.source.accepted.clear()
        asking()
        asking.new_session()
        asking()
        assert learned(modes).mode is IN_PAGE, "the sessions' time may be over"
        asking.new_session()
        asking()
        assert learned(modes).mode is VISIT

    def test_a_lost_browser_teaches_nothing(self, modes: RequestModes) -> None:
        asking = Asking(Source403(), modes)
        asking.source.failure = PageCrashed("gone")
        assert asking()[0].mode is DIRECT
        assert modes.learned("crex") is None

    def test_a_direct_request_is_tried_again_and_costs_no_poll(self, modes: RequestModes, clock: Clock) -> None:
        asking = Asking(Source403(IN_PAGE), modes)
        asking()
        clock.wait(600)
        assert asking()[0].documents["live"].status == 200
        assert asking.source.asked == [DIRECT, IN_PAGE]
        asking.source.accepted.add(DIRECT)
        clock.wait(1200)
        assert asking()[0].mode is DIRECT
        assert asking()[0].mode is DIRECT
        assert modes.learned("crex") is None

    @pytest.mark.parametrize("way", ["direct", "in_page"])
    def test_does_not_take_place_where_the_mode_is_set(self, modes: RequestModes, way: str) -> None:
        asking = Asking(Source403(), modes, way)
        asking()
        assert asking.source.asked == [ReadMode(way)]
        assert modes.learned("crex") is None


@pytest.mark.django_db
@pytest.mark.both
class TestRows:
    def rows(self, modes: RequestModes) -> RequestModeRows:
        return RequestModeRows(modes, on_loop=lambda call: call())

    def test_hand_what_one_worker_has_learned_to_others(self, modes: RequestModes, clock: Clock) -> None:
        make_source()
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        self.rows(modes).sync()
        other = RequestModes(clock=clock)
        self.rows(other).sync()
        assert other.learned("crex") == modes.learned("crex")
        assert other.next_mode("crex") == (IN_PAGE, False)
        other.accepted("crex", DIRECT)
        self.rows(other).sync()
        self.rows(modes).sync()
        assert modes.learned("crex") is None
        assert Source.objects.get(key="crex").learned_mode == ""

    def test_show_mode_reason_and_times(self, modes: RequestModes) -> None:
        make_source()
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        self.rows(modes).sync()
        source = Source.objects.get(key="crex")
        assert (source.request_mode, source.request_mode_reason) == ("in_page", REFUSED)
        assert source.direct_again_at == NOW + timedelta(minutes=10)
        assert source.learned_mode.startswith("in_page since ")
        assert source.learned_mode.endswith(f"({REFUSED})")

    def test_do_not_replace_what_was_learned_meanwhile(self, modes: RequestModes) -> None:
        make_source()
        waiting: list[Callable[[], None]] = []
        RequestModeRows(modes, on_loop=waiting.append).sync()
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        waiting[0]()
        assert learned(modes).mode is IN_PAGE
        self.rows(modes).sync()
        assert Source.objects.get(key="crex").request_mode == "in_page"

    def test_of_a_deleted_source_are_left_out(self, modes: RequestModes) -> None:
        modes.refused("crex", accepted=IN_PAGE, reason=REFUSED)
        self.rows(modes).sync()
        assert modes.learned("crex") is None
