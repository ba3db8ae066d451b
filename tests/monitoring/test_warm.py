"""Answers that are built ahead while somebody asks, and shared by processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from monitoring import warm
from monitoring.api import views
from monitoring.health import rendered
from monitoring.health.rendered import Rendered
from monitoring.warm import Keeper, WarmBrief
from scraping.documents import redis_store
from tests.absence import known_to_be_away  # noqa: F401 - a fixture
from tests.monitoring.rows import make_watched, make_worker
from tests.system import wait_for


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    keeper.switch_on()
    yield keeper
    keeper.stop()


class Builder:
    """Counts, and says in which thread it was called."""

    def __init__(self, fails: Callable[[int], bool] = lambda _: False) -> None:
        self.threads: list[str] = []
        self._fails = fails

    def __call__(self) -> int:
        self.threads.append(threading.current_thread().name)
        if self._fails(len(self.threads)):
            raise ValueError("a bug")
        return len(self.threads)


@pytest.mark.requirement("NFR-016")
class TestKeeper:
    def test_builds_ahead_so_that_only_the_first_who_asks_waits(self, keeper: Keeper) -> None:
        build = Builder()
        brief = WarmBrief(build, seconds=0.01, keeper=keeper)
        brief.get()
        wait_for(lambda: len(build.threads) > 3, seconds=10, what="built ahead three times")
        assert [brief.get() > 3 for _ in range(5)] == [True] * 5
        assert build.threads.count("MainThread") <= 1

    def test_ends_when_nobody_has_asked_for_a_while_and_begins_again(self) -> None:
        keeper = Keeper(wanted_seconds=0.05)
        keeper.switch_on()
        brief = WarmBrief(Builder(), seconds=0.01, keeper=keeper)
        brief.get()
        wait_for(lambda: not keeper.is_running, seconds=10, what="the thread ends")
        brief.get()
        assert keeper.is_running
        keeper.stop()
        assert not keeper.is_running

    def test_outlives_a_bug(self, keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(warm, "MOST_SECONDS_APART", 0.01)
        build = Builder(fails=lambda number: number in {2, 3})
        brief = WarmBrief(build, seconds=0.01, keeper=keeper)
        brief.get()
        wait_for(lambda: len(build.threads) > 5, seconds=10, what="built again")
        assert keeper.is_running

    def test_lets_nobody_have_what_is_too_old(self, keeper: Keeper) -> None:
        """The thread is stuck, so who asks builds."""
        may_go_on = threading.Event()

        def build() -> str:
            if threading.current_thread().name == "keep-warm":
                may_go_on.wait(10)
            return threading.current_thread().name

        brief = WarmBrief(build, seconds=0.01, at_most_seconds=0.0, keeper=keeper)
        assert brief.get() == "MainThread"
        may_go_on.set()
        assert brief.get() in {"MainThread", "keep-warm"}

    def test_is_off_where_nobody_is_served(self) -> None:
        keeper = Keeper()
        WarmBrief(Builder(), keeper=keeper).get()
        assert not keeper.is_running

    def test_takes_a_tenth_of_the_time_at_most(self) -> None:
        brief = WarmBrief(Builder(), keeper=Keeper())
        brief.get()
        brief.took_seconds = 0.15
        assert 1.4 < brief.due_in_seconds < 1.5 + warm.OUT_OF_STEP_SECONDS
        brief.took_seconds = 10.0
        assert brief.due_in_seconds <= warm.MOST_SECONDS_APART + warm.OUT_OF_STEP_SECONDS < 4.0


class TestRendered:
    def test_is_the_same_after_a_way_through_the_cache(self) -> None:
        answer = Rendered(b'{"a": "b\\n c"}\n', 503, datetime(2026, 11, 16, 12, 0, 0, 123000, tzinfo=UTC))
        assert Rendered.of_text(answer.as_text()) == answer

    @pytest.mark.parametrize("text", [b"", b"nonsense", b"1 2 3\n", b"x 200\n{}", b"9" * 40 + b" 200\n{}"])
    def test_what_is_not_ours_is_not_read(self, text: bytes) -> None:
        assert Rendered.of_text(text) is None

    def test_an_answer_from_another_process_is_as_old_as_it_says(self) -> None:
        made_at = timezone.now() - timedelta(seconds=3.9)
        answers = iter([Rendered(b"old", 200, made_at), Rendered(b"new", 200, timezone.now())])
        brief = WarmBrief(lambda: next(answers), age_of=lambda answer: answer.age_seconds, keeper=Keeper())
        assert (brief.get().body, brief.get().body) == (b"old", b"new")


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("NFR-016", "NFR-023")
class TestProbes:
    @pytest.mark.parametrize("path", ["/health", "/status", "/health/live", "/health/ready"])
    def test_may_ask_by_head_and_nobody_keeps_the_answer(self, client: Client, path: str) -> None:
        make_worker()
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert "no-store" in answer["Cache-Control"]

    def test_tell_when_their_figures_were_true(self, client: Client) -> None:
        before = timezone.now()
        said = [client.get("/health").json()["timestamp"], client.get("/status").json()["generated_at"]]
        for moment in said:
            assert before - timedelta(milliseconds=1) <= datetime.fromisoformat(moment) <= timezone.now()

    def test_see_a_change_within_five_seconds(self, client: Client) -> None:
        """What was held may be four seconds old at most; what is older is not answered with."""
        make_worker()
        make_watched()
        assert client.get("/health").json()["active_scraper_count"] == 1
        make_watched()
        held = views._health._value
        assert held is not None
        views._health._value = (held[0] - 4.0, held[1])
        assert client.get("/health").json()["active_scraper_count"] == 2


@pytest.mark.django_db
@pytest.mark.scaled
@pytest.mark.requirement("SO-11", "SO-5")
class TestShared:
    @pytest.fixture(autouse=True)
    def empty(self) -> Iterator[None]:
        cache.clear()
        yield
        cache.clear()

    def test_one_process_builds_and_all_serve_it_for_five_seconds(self) -> None:
        make_worker()
        first = rendered.status(is_shared=True)
        make_watched()
        assert rendered.status(is_shared=True) == Rendered.of_text(first.as_text())
        for key in (rendered.SUMMARY_KEY, rendered.DOCUMENT_KEY):
            rendered.health(is_shared=True)
            client = redis_store._client(settings.CONFIG.redis_url)
            assert 0 < client.ttl(redis_store.PREFIX + key) <= 5

    def test_what_is_older_than_a_second_is_built_anew(self) -> None:
        old = Rendered(b"{}", 200, timezone.now() - timedelta(seconds=1.5))
        redis_store.put_text(rendered.DOCUMENT_KEY, old.as_text(), seconds=5)
        assert orjson.loads(rendered.health(is_shared=True).body)["status"] == "healthy"

    @pytest.mark.usefixtures("known_to_be_away")
    def test_an_outage_that_one_process_sees_is_not_told_to_others(self) -> None:
        assert rendered.health(is_shared=True).code == 503
        assert redis_store.get_text(rendered.DOCUMENT_KEY) is None


@pytest.mark.django_db
def test_a_failing_query_is_an_answer_that_is_not_kept_for_long(client: Client) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(refuse):
        assert client.get("/health").status_code == 503
    held = views._health._value
    assert held is not None
    views._health._value = (held[0] - 1.0, held[1])
    assert client.get("/health").status_code == 200
