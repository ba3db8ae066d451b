"""DM-7: a snapshot has its scraper, its latency and its data source."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from scraping.models import Scraper, Snapshot
from tests.factories import NOW, make_ref
from tests.scraping.attempts import Clock, attempt, stopped_clock
from tests.scraping.builders import chasing, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("DM-7")]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


def test_a_state_names_its_scraper_its_latency_and_its_origin(clock: Clock) -> None:
    ref = make_ref(now=NOW, payload={})
    clock.forward(2)
    attempt(ref, clock, payload_of(ref, chasing(96), at=clock.now - timedelta(milliseconds=340)))
    snapshot, scraper = Snapshot.objects.get(), Scraper.objects.get()
    assert (snapshot.scraper_id, snapshot.update_latency_ms, snapshot.data_source) == (scraper.pk, 340, "scraper")
    assert (scraper.last_latency_ms, scraper.total_updates) == (340, 1)


def test_the_states_of_a_scraper_are_found_by_it(clock: Clock) -> None:
    ref = make_ref(now=NOW, payload={})
    for runs in (96, 97, 98):
        clock.forward(3)
        attempt(ref, clock, payload_of(ref, chasing(runs), at=clock.now))
    assert Snapshot.objects.filter(scraper_id=Scraper.objects.get().pk).count() == 3
    assert {index.name for index in Snapshot._meta.indexes} >= {"snapshot_scraper"}


def test_the_data_source_is_one_of_three_values() -> None:
    assert [word for word, _ in Snapshot._meta.get_field("data_source").choices or ()] == ["scraper", "cache", "manual"]
