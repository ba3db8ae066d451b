"""A source's list is written as rows, each match once, for pages of the source only."""

from __future__ import annotations

import pytest

from scraping.matches import discovery
from scraping.models import Match, MatchRef
from scraping.payloads import DiscoveredMatch, Sport, Status
from tests.factories import NOW, make_source

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def found(key: str, url: str) -> DiscoveredMatch:
    return DiscoveredMatch(source_event_id=key, url=url, sport=Sport.CRICKET, status=Status.LIVE)


def test_each_match_gets_one_row_however_often_it_is_seen() -> None:
    source = make_source(key="crex")
    rows = [found("A1", f"{source.base_url}/match/A1"), found("A1", f"{source.base_url}/match/A1")]
    assert [discovery.register(source, rows, now=NOW) for _ in range(2)] == [1, 0]
    assert (Match.objects.count(), MatchRef.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/secret", "https://elsewhere.example/match/A1", "file:///etc/passwd"]
)
def test_a_link_to_another_host_is_not_followed(url: str) -> None:
    assert discovery.register(make_source(key="crex"), [found("A1", url)], now=NOW) == 0
