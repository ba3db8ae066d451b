"""Data without some of its parts: served, and marked as partial."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping.models import MatchRef
from scraping.payloads import BrokenPart, Integrity
from tests.factories import make_ref
from tests.scraping.builders import balls, chasing, payload_of, read

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("SO-12")]

PLAYER = BrokenPart(path="content.innings[].inningBatsmen[].player", expected="Field required", count=2)
BROKEN = Integrity(broken_parts=(PLAYER,))


def poll(ref: MatchRef, runs: int, integrity: Integrity = Integrity(), **fields: Any) -> None:  # noqa: B008 - frozen
    read(ref, payload_of(ref, chasing(runs), at=timezone.now(), integrity=integrity, **fields))


def metadata(caller, ref: MatchRef) -> dict[str, Any]:
    answer = caller.get(f"/api/v1/matches/{ref.match_id}")
    found: dict[str, Any] = answer.json()["_metadata"]
    assert answer.headers["X-Data-State"] == found["state"]
    return found


def test_a_broken_part_is_named_until_it_is_read_again(caller) -> None:
    ref = make_ref()
    poll(ref, 100, BROKEN)
    found = metadata(caller, ref)
    assert found["state"] == "partial"
    assert found["integrity"] == {"is_complete": False, "left_out": [PLAYER.path]}
    poll(ref, 101)
    assert metadata(caller, ref)["state"] == "fresh"
    assert metadata(caller, ref)["integrity"] == {"is_complete": True, "left_out": []}


def test_the_etag_changes_with_the_parts_though_the_match_does_not(caller) -> None:
    ref = make_ref()
    poll(ref, 100, BROKEN)
    address = f"/api/v1/matches/{ref.match_id}"
    first = caller.get(address)
    assert caller.get(address, If_None_Match=first["ETag"]).status_code == 304
    poll(ref, 100)
    second = caller.get(address, If_None_Match=first["ETag"])
    assert second.status_code == 200
    assert second.json()["sequence"] == first.json()["sequence"]
    assert second.json()["_metadata"]["integrity"]["is_complete"]


def test_a_score_without_events_is_served(caller) -> None:
    ref = make_ref()
    poll(ref, 100, Integrity(missing_fields=("events",)))
    found = metadata(caller, ref)
    assert (found["state"], found["integrity"]["left_out"]) == ("partial", ["events"])
    assert caller.get(f"/api/v1/matches/{ref.match_id}").json()["score"]["team_b"]["runs"] == 100


def test_one_source_that_has_everything_is_enough(caller) -> None:
    ref = make_ref()
    other = make_ref(ref.match, source="espn")
    poll(ref, 100, BROKEN)
    poll(other, 100, events=balls(1, 2))
    assert metadata(caller, ref)["state"] == "fresh"


def test_a_source_that_is_not_polled_any_more_is_not(caller) -> None:
    ref = make_ref()
    other = make_ref(ref.match, source="espn")
    poll(other, 99, events=balls(1, 2))
    MatchRef.objects.filter(pk=other.pk).update(is_watched=False)
    poll(ref, 100, BROKEN)
    assert metadata(caller, ref)["state"] == "partial"


def test_old_data_is_stale_and_names_the_parts_too(caller, settings) -> None:
    ref = make_ref()
    long_ago = timezone.now() - timedelta(seconds=settings.CONFIG.staleness_threshold_seconds + 5)
    read(ref, payload_of(ref, chasing(100), at=long_ago, integrity=BROKEN))
    found = metadata(caller, ref)
    assert (found["state"], found["integrity"]["is_complete"]) == ("stale", False)


def test_an_earlier_state_has_no_integrity(caller) -> None:
    ref = make_ref()
    poll(ref, 100, BROKEN)
    address = f"/api/v1/matches/{ref.match_id}"
    then = caller.get(f"{address}?sequence={caller.get(address).json()['sequence']}").json()
    assert then["_metadata"]["integrity"] is None
