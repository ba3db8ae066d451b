"""GET /api/v1/matches/{id}/conflicts, `include=provenance`, and matches that became part of another one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping.documents.cache import documents
from scraping.matches import conflicts, pairing
from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import FieldConflict, SourceView
from scraping.models import Match
from tests.api_fixtures import Caller
from tests.factories import cricket_state, make_match, make_ref, make_source
from victoryline.lib import availability
from victoryline.lib.times import as_utc_iso

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("BX-5")]


def read_by_two_sources() -> Match:
    """By crex (95 runs) and, five seconds before, by espn (80 runs and the venue)."""
    now = timezone.now()
    state = cricket_state().model_dump(mode="json")
    other = cricket_state(venue="Perth").model_dump(mode="json")
    other["innings"][1]["runs"] = other["score"]["team_b"]["runs"] = 80
    views = [SourceView("crex", 100, now, state), SourceView("espn", 80, now - timedelta(seconds=5), other)]
    found = reconcile(views)
    match = make_match(now=now, payload=found.state, provenance=found.provenance)
    for view in views:
        source = make_source(view.source, precedence_weight=view.weight)
        make_ref(match, source=source, payload=view.state, captured_at=view.captured_at, now=now)
    conflicts.note(match.pk, found.conflicts, now=now)
    return match


def path(match: Match, rest: str = "/conflicts") -> str:
    return f"/api/v1/matches/{match.pk}{rest}"


class TestConflicts:
    def test_lists_the_fields_that_the_sources_disagree_about(self, caller: Caller) -> None:
        answer = caller.get(path(read_by_two_sources()))
        assert answer.status_code == 200
        (row,) = answer.json()["conflicts"]
        assert {
            name: row[name] for name in ("field", "chosen_source", "chosen_value", "other_source", "other_value")
        } == {
            "field": "innings.2.runs",
            "chosen_source": "crex",
            "chosen_value": 95,
            "other_source": "espn",
            "other_value": 80,
        }
        assert (row["difference_percent"], row["times_seen"], row["resolved_at"]) == (15.8, 1, None)
        assert answer.json()["_metadata"]["sequence"] == 1
        assert answer["X-Data-State"] == "fresh"

    def test_lists_ended_conflicts_on_request(self, caller: Caller) -> None:
        match = read_by_two_sources()
        conflicts.note(match.pk, (), now=timezone.now())
        assert caller.get(path(match)).json()["conflicts"] == []
        (row,) = caller.get(path(match), {"state": "all"}).json()["conflicts"]
        assert row["resolved_at"] is not None

    def test_is_unchanged_until_a_conflict_opens_or_closes(self, caller: Caller) -> None:
        match = read_by_two_sources()
        etag = caller.get(path(match))["ETag"]
        assert caller.get(path(match), If_None_Match=etag).status_code == 304
        new = FieldConflict("status", "crex", "live", "espn", "completed")
        conflicts.note(match.pk, [new], now=timezone.now())
        documents.clear()  # a tenth of a second later
        assert caller.get(path(match), If_None_Match=etag).status_code == 200

    @pytest.mark.parametrize("query", [{"state": "closed"}, {"states": "all"}])
    def test_refuses_unknown_parameters(self, caller: Caller, query: dict[str, str]) -> None:
        assert caller.get(path(read_by_two_sources()), query).status_code == 400

    def test_of_an_unknown_match_is_a_404(self, caller: Caller) -> None:
        assert caller.get("/api/v1/matches/999999/conflicts").status_code == 404

    def test_is_answered_from_memory_while_the_database_is_away(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        documents.clear()
        match = read_by_two_sources()
        before = caller.get(path(match)).json()["conflicts"]
        caller.get(path(match, ""), {"include": "provenance"})
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        answer = caller.get(path(match))
        assert (answer.json()["conflicts"], answer["X-Data-Source"]) == (before, "cache")
        assert caller.get(path(match, ""), {"include": "provenance"}).json()["provenance"]
        assert caller.get(path(match), {"state": "all"}).status_code == 503


class TestProvenance:
    def test_is_included_on_request(self, caller: Caller) -> None:
        match = read_by_two_sources()
        assert "provenance" not in caller.get(path(match, "")).json()
        found = caller.get(path(match, ""), {"include": "provenance"}).json()["provenance"]
        assert (found["score"]["source"], found["venue"]["source"]) == ("crex", "espn")
        (other,) = found["innings"]["others"]
        assert (other["source"], other["value"]) == ("espn", "187/5 (20.0); 80/3 (12.3)")

    def test_responses_with_and_without_it_have_different_etags(self, caller: Caller) -> None:
        match = read_by_two_sources()
        etag = caller.get(path(match, ""))["ETag"]
        assert caller.get(path(match, ""), {"include": "provenance"}, If_None_Match=etag).status_code == 200

    def test_changes_the_etag_though_the_match_does_not_change(self, caller: Caller) -> None:
        match = read_by_two_sources()
        etag = caller.get(path(match, ""), {"include": "provenance"})["ETag"]
        assert caller.get(path(match, ""), {"include": "provenance"}, If_None_Match=etag).status_code == 304
        Match.objects.filter(pk=match.pk).update(provenance={"venue": {"source": "crex"}})
        documents.clear()  # a tenth of a second later
        assert caller.get(path(match, ""), {"include": "provenance"}, If_None_Match=etag).status_code == 200

    def test_refuses_an_unknown_value(self, caller: Caller) -> None:
        answer = caller.get(path(read_by_two_sources(), ""), {"include": "everything"})
        assert (answer.status_code, answer.json()["parameter"]) == (400, "include")


@pytest.mark.requirement("FS-8")
class TestReadings:
    def test_are_the_envelopes_of_all_sources_with_their_integrity(self, caller: Caller) -> None:
        match = read_by_two_sources()
        assert "readings" not in caller.get(path(match, "")).json()
        ref = match.refs.get(source__key="crex")
        integrity = {"missing_fields": ["venue"], "null_field_rate": 0.1, "fallback_selectors": []}
        match.refs.filter(pk=ref.pk).update(payload_schema="crex.v2", integrity=integrity)
        found = caller.get(path(match, ""), {"include": "readings"}).json()["readings"]
        assert [one["source"] for one in found] == ["crex", "espn"]
        assert found[0] == {
            "source": "crex",
            "schema_version": "crex.v2",
            "captured_at": as_utc_iso(ref.captured_at),
            "source_event_id": ref.source_event_id,
            "normalized": ref.payload,
            "integrity": integrity,
        }
        assert found[1]["integrity"] is None

    def test_of_the_past_are_not_there(self, caller: Caller) -> None:
        answer = caller.get(path(read_by_two_sources(), ""), {"include": "readings", "sequence": "1"}).json()
        assert not answer.keys() & {"readings", "provenance"}


class TestMerged:
    @pytest.mark.parametrize("rest", ["", "/events", "/conflicts"])
    def test_a_former_id_redirects_to_the_merged_match(self, caller: Caller, rest: str) -> None:
        now = timezone.now()
        keep, gone = make_match(now=now), make_match(now=now)
        for match, source in ((keep, "crex"), (gone, "espn")):
            make_ref(match, source=source, payload=match.payload, now=now)
        pairing.merge(keep.pk, gone.pk, actor="ann", now=now)
        answer: Any = caller.get(path(gone, rest))
        assert answer.status_code == 200
        if not rest:
            assert (answer.json()["id"], sorted(answer.json()["keys"])) == (
                keep.pk,
                sorted(ref.key for ref in keep.refs.all()),
            )
        assert caller.get("/api/v1/matches", {"lifecycle": "ARCHIVED"}).json()["matches"] == []
        listed = caller.get("/api/v1/matches").json()["matches"]
        assert [match["id"] for match in listed] == [keep.pk]
