"""The publisher of /health and /status: built ahead while requests come, shared by processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from monitoring import views
from monitoring.health import publisher as publishing
from monitoring.health.evaluation import Evaluation
from monitoring.health.publisher import HealthPublisher, Published, PublishedDocument
from scraping.documents import redis_store
from tests.monitoring.rows import make_watched, make_worker
from tests.patience import stretched, wait_for
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline.lib import availability


@pytest.fixture
def publisher() -> Iterator[HealthPublisher]:
    publisher = HealthPublisher()
    publisher.enable()
    yield publisher
    publisher.stop()


def published(text: str = "", age: float = 0.0) -> Published:
    return Published(text.encode(), 200, timezone.now() - timedelta(seconds=age))


class Builder:
    """Counts its calls, and notes the thread of each."""

    def __init__(self, fails: Callable[[int], bool] = lambda _: False) -> None:
        self.threads: list[str] = []
        self._fails = fails

    def __call__(self, _: Evaluation) -> Published:
        self.threads.append(threading.current_thread().name)
        if self._fails(len(self.threads)):
            raise ValueError("a bug")
        return published(str(len(self.threads)))


@pytest.mark.requirement("NFR-016")
class TestPublisher:
    def test_builds_ahead_so_that_only_the_first_request_waits(self, publisher: HealthPublisher) -> None:
        build = Builder()
        document = PublishedDocument("key", build, fresh_seconds=0.01, publisher=publisher)
        document.get()
        wait_for(lambda: len(build.threads) > 3, seconds=10, what="built ahead three times")
        assert [int(document.get().body) > 3 for _ in range(5)] == [True] * 5
        assert build.threads.count("MainThread") <= 1

    def test_builds_all_requested_documents_from_one_evaluation(self, publisher: HealthPublisher) -> None:
        evaluations: dict[str, list[Evaluation]] = {"one": [], "two": []}

        def build(name: str) -> Callable[[Evaluation], Published]:
            def note(evaluation: Evaluation) -> Published:
                evaluations[name].append(evaluation)
                return published()

            return note

        documents = [
            PublishedDocument(name, build(name), fresh_seconds=0.01, publisher=publisher) for name in evaluations
        ]
        for document in documents:
            document.get()
        wait_for(lambda: all(len(seen) > 3 for seen in evaluations.values()), seconds=10, what="published three times")
        publisher.stop()
        assert len(set(evaluations["one"]) & set(evaluations["two"])) >= 2

    def test_ends_when_no_requests_come_and_starts_again(self) -> None:
        publisher = HealthPublisher(requested_seconds=0.05)
        publisher.enable()
        document = PublishedDocument("key", Builder(), fresh_seconds=0.01, publisher=publisher)
        document.get()
        wait_for(lambda: not publisher.is_running, seconds=10, what="the thread ends")
        document.get()
        assert publisher.is_running
        publisher.stop()
        assert not publisher.is_running

    def test_survives_a_bug_in_a_document(self, publisher: HealthPublisher, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(publishing, "BUG_PAUSE_SECONDS", 0.01)
        build = Builder(fails=lambda number: number in {2, 3})
        PublishedDocument("key", build, fresh_seconds=0.01, publisher=publisher).get()
        wait_for(lambda: len(build.threads) > 5, seconds=10, what="built again")
        assert publisher.is_running

    def test_is_disabled_in_a_process_that_serves_no_requests(self) -> None:
        publisher = HealthPublisher()
        PublishedDocument("key", Builder(), publisher=publisher).get()
        assert not publisher.is_running


class TestPublishedDocument:
    def test_is_built_once_for_concurrent_requests(self) -> None:
        built: list[int] = []

        def build(_: Evaluation) -> Published:
            built.append(1)
            time.sleep(0.05)
            return published()

        document = PublishedDocument("key", build, fresh_seconds=60, publisher=HealthPublisher())
        threads = [threading.Thread(target=document.get) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert built == [1]

    def test_is_built_again_when_it_is_old(self) -> None:
        document = PublishedDocument("key", Builder(), fresh_seconds=0, publisher=HealthPublisher())
        assert (document.get().body, document.get().body) == (b"1", b"2")

    def test_is_served_while_the_next_one_is_being_built(self) -> None:
        may_finish, is_building = threading.Event(), threading.Event()
        texts = iter(("old", "new"))

        def build(_: Evaluation) -> Published:
            text = next(texts)
            if text == "new":
                is_building.set()
                may_finish.wait(stretched(10))
            return published(text)

        document = PublishedDocument("key", build, fresh_seconds=0, max_age_seconds=60, publisher=HealthPublisher())
        assert document.get().body == b"old"
        builder = threading.Thread(target=document.get)
        builder.start()
        is_building.wait(stretched(10))
        assert document.get().body == b"old"
        may_finish.set()
        builder.join()

    def test_is_built_by_the_request_when_the_publisher_hangs(self, publisher: HealthPublisher) -> None:
        may_go_on = threading.Event()

        def build(_: Evaluation) -> Published:
            name = threading.current_thread().name
            if name == "publisher":
                may_go_on.wait(stretched(10))
            return published(name)

        document = PublishedDocument("key", build, fresh_seconds=0.01, max_age_seconds=0.0, publisher=publisher)
        assert document.get().body == b"MainThread"
        may_go_on.set()
        assert document.get().body in {b"MainThread", b"publisher"}

    def test_of_another_process_counts_its_age_there(self) -> None:
        answers = iter([published("old", age=3.9), published("new")])
        document = PublishedDocument("key", lambda _: next(answers), publisher=HealthPublisher())
        assert (document.get().body, document.get().body) == (b"old", b"new")


class TestPublished:
    def test_survives_encoding(self) -> None:
        answer = Published(b'{"a": "b\\n c"}\n', 503, datetime(2026, 11, 16, 12, 0, 0, 123000, tzinfo=UTC))
        assert Published.decode(answer.encode()) == answer

    @pytest.mark.parametrize("data", [b"", b"nonsense", b"1 2 3\n", b"x 200\n{}", b"9" * 40 + b" 200\n{}"])
    def test_ignores_an_unknown_format(self, data: bytes) -> None:
        assert Published.decode(data) is None


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("NFR-016", "NFR-023")
class TestProbes:
    @pytest.mark.parametrize("path", ["/health", "/status", "/health/live", "/health/ready"])
    def test_may_use_head_and_get_an_answer_that_is_not_cached(self, client: Client, path: str) -> None:
        make_worker()
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert "no-store" in answer["Cache-Control"]

    def test_read_the_time_of_the_figures(self, client: Client) -> None:
        before = timezone.now()
        evaluated = datetime.fromisoformat(client.get("/health").json()["timestamp"])
        generated = datetime.fromtimestamp(client.get("/status").json()["generated_at"], UTC)
        for moment in (evaluated, generated):
            assert before - timedelta(milliseconds=1) <= moment <= timezone.now() + timedelta(milliseconds=1)

    def test_see_a_change_within_five_seconds(self, client: Client) -> None:
        """A published document of four seconds is not served any more."""
        make_worker()
        make_watched()
        assert client.get("/health").json()["active_scraper_count"] == 1
        make_watched()
        held = views.published_health._held
        assert held is not None
        views.published_health._held = (held[0] - 4.0, held[1])
        assert client.get("/health").json()["active_scraper_count"] == 2


@pytest.mark.django_db
@pytest.mark.scaled
@pytest.mark.requirement("SO-11", "SO-5")
class TestShared:
    @pytest.fixture(autouse=True)
    def empty(self) -> None:
        if redis_store.is_configured():
            availability.redis_client(settings.CONFIG.redis_url).flushdb()

    def test_one_process_builds_and_all_serve_it_for_five_seconds(self) -> None:
        make_worker()
        first = views.published_status.build_shared(Evaluation(timezone.now()))
        make_watched()
        again = views.published_status.build_shared(Evaluation(timezone.now()))
        assert again == Published.decode(first.encode())
        views.published_health.build_shared(Evaluation(timezone.now()))
        client = availability.redis_client(settings.CONFIG.redis_url)
        for key in ("health_summary", "health_document"):
            assert 0 < client.ttl(redis_store.PREFIX + key) <= 5

    def test_a_document_older_than_a_second_is_built_anew(self) -> None:
        old = Published(b"{}", 200, timezone.now() - timedelta(seconds=1.5))
        redis_store.put_text("health_document", old.encode(), seconds=5)
        built = views.published_health.build_shared(Evaluation(timezone.now()))
        assert orjson.loads(built.body)["status"] == "healthy"

    @pytest.mark.usefixtures("known_to_be_away")
    def test_an_outage_that_one_process_sees_is_not_shared(self) -> None:
        assert views.published_health.build_shared(Evaluation(timezone.now())).status_code == 503
        assert redis_store.get_text("health_document") is None


@pytest.mark.django_db
def test_a_failed_query_gives_a_document_that_is_kept_for_a_second(client: Client) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(refuse):
        assert client.get("/health").status_code == 503
    held = views.published_health._held
    assert held is not None
    views.published_health._held = (held[0] - 1.0, held[1])
    assert client.get("/health").status_code == 200
