"""A scraper that has lived its time is replaced, and its match is read as if for the first time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from scraping.browser.host import BrowserHost
from scraping.browser.options import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.models import MatchRef, Scraper
from scraping.reading.memory import Visited
from scraping.reading.reader import Reader
from scraping.scheduler.restarts import replace_worn_scrapers
from scraping.scrape import target_of
from scraping.scrapers import ensure_active
from tests.factories import NOW, make_ref
from tests.scraping.builders import claimed, engine_with, open_task

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.mark.requirement("US1.3", "FR-010")
def test_after_six_hours_a_fresh_one_begins_with_a_visit() -> None:
    ref = make_ref(read_mode="direct", read_mode_since=NOW - timedelta(hours=6))
    worn = ensure_active(ref, now=NOW - timedelta(hours=6, seconds=1))
    Scraper.objects.update(last_update_time=NOW)
    engine, claim = engine_with(ValueError("never read")), claimed(open_task(ref))
    before = target_of(claim, MatchRef.objects.select_related("source", "match").get(), engine)
    assert replace_worn_scrapers(NOW) == 1
    ref = MatchRef.objects.select_related("source", "match").get()
    after = target_of(claim, ref, engine)
    assert (before.is_fresh, after.is_fresh) == (False, True)
    assert (ref.next_poll_at, ref.read_mode) == (NOW, "")
    assert "lifetime of 6 h is over" in ref.read_mode_reason
    assert Scraper.objects.filter(stopped_at__isnull=True).exclude(pk=worn.pk).count() == 1

    reader = Reader(Sessions(BrowserHost(BrowserOptions(executable=Path("chromium"), owner="w"))), _never_run)
    reader._ways.memory.put(ref.pk, Visited({}, None, 0.0))
    plan = reader._ways.plan(after)
    assert (plan.visited, plan.reason) == (None, "it begins anew")
    assert reader._ways.memory.get(ref.pk) is None, "what the worn one had learnt is forgotten"


def _never_run(coroutine: object) -> object:
    raise AssertionError("nothing is read here")
