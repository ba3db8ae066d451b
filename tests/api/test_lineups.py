"""GET /api/v1/matches/{id}/lineups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping.documents.cache import documents
from scraping.matches import lineups
from scraping.models import Lineup, Match, MatchRef
from scraping.payloads import Status
from tests.api_fixtures import Caller
from tests.factories import football_state, make_match, make_ref, make_source
from tests.scraping.scripted_lineups import lineups_of, player, side_of
from victoryline.lib import availability

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FS-19")]


def upcoming() -> MatchRef:
    now = timezone.now()
    state = football_state(status=Status.UPCOMING)
    match = make_match(state=state, now=now, start_time=now + timedelta(hours=1))
    ref = make_ref(match, source="sofascore", now=now)
    lineups.store(lineups_of(ref, side_of("team_a"), side_of("team_b", starters=9), at=now), ref_id=ref.pk, now=now)
    return ref


def path(ref: MatchRef) -> str:
    return f"/api/v1/matches/{ref.match_id}/lineups"


class TestBody:
    def test_lists_the_players(self, caller: Caller) -> None:
        ref = upcoming()
        answer = caller.get(path(ref))
        assert answer.status_code == 200
        body = answer.json()
        home = next(row for row in body["lineups"] if row["side"] == "team_a")
        assert (home["team"], home["source"], home["formation"]) == ("Arsenal", "sofascore", "4-3-3")
        assert (home["snapshot_type"], home["xi_missing"], len(home["players"])) == ("pre_match", False, 13)
        assert home["captured_at"] < home["kickoff"]
        assert home["players"][0]["player_id"] == "a1"
        assert body["xi_missing"] == {"team_a": False, "team_b": True}
        assert body["_metadata"]["sequence"] == 1

    @pytest.mark.requirement("FS-1")
    def test_pre_match_line_ups_can_be_requested_alone(self, caller: Caller) -> None:
        ref = upcoming()
        Match.objects.update(status=Status.COMPLETED)
        rated = side_of("team_a", players=tuple(player(number, rating=7.5) for number in range(1, 12)))
        lineups.store(lineups_of(ref, rated, at=timezone.now()), ref_id=ref.pk, now=timezone.now())
        both = caller.get(path(ref)).json()["lineups"]
        before = caller.get(path(ref), {"snapshot_type": "pre_match"}).json()["lineups"]
        after = caller.get(path(ref), {"snapshot_type": "post_match"}).json()
        assert (len(both), len(before), len(after["lineups"])) == (3, 2, 1)
        assert {one["rating"] for row in before for one in row["players"]} == {None}
        assert after["lineups"][0]["players"][0]["rating"] == 7.5
        assert after["xi_missing"] == {"team_a": False, "team_b": True}

    def test_a_match_without_line_ups_has_an_empty_list(self, caller: Caller) -> None:
        ref = make_ref()
        body = caller.get(path(ref)).json()
        assert (body["lineups"], body["xi_missing"]) == ([], {"team_a": True, "team_b": True})

    def test_the_heavier_source_comes_first(self, caller: Caller) -> None:
        ref = upcoming()
        other = make_ref(ref.match, source=make_source("heavy", sport="football", precedence_weight=90))
        lineups.store(lineups_of(other, at=timezone.now()), ref_id=other.pk, now=timezone.now())
        found = [(row["source"], row["side"]) for row in caller.get(path(ref)).json()["lineups"]]
        assert found[:2] == [("heavy", "team_a"), ("heavy", "team_b")]


class TestRequests:
    def test_unchanged_costs_no_quota(self, caller: Caller) -> None:
        ref = upcoming()
        etag = caller.get(path(ref))["ETag"]
        assert caller.get(path(ref), If_None_Match=etag).status_code == 304
        Lineup.objects.filter(side="team_a").update(captured_at=timezone.now() - timedelta(minutes=1))
        documents.clear()  # a tenth of a second later
        assert caller.get(path(ref), If_None_Match=etag).status_code == 200

    def test_line_ups_of_the_other_type_change_the_etag(self, caller: Caller) -> None:
        ref, now = upcoming(), timezone.now()
        before = caller.get(path(ref), {"snapshot_type": "post_match"})
        lineups.store(lineups_of(ref, side_of("team_b"), at=now), ref_id=ref.pk, now=now)
        documents.clear()  # a tenth of a second later
        address = f"{path(ref)}?snapshot_type=post_match"
        after = caller.get(address, If_None_Match=before["ETag"])
        assert (before.json()["xi_missing"]["team_b"], after.status_code) == (True, 200)
        assert after.json()["xi_missing"]["team_b"] is False

    @pytest.mark.parametrize("asked", [{"snapshot_type": "live"}, {"type": "pre_match"}])
    def test_refuses_unknown_parameters(self, caller: Caller, asked: dict[str, Any]) -> None:
        assert caller.get(path(upcoming()), asked).status_code == 400

    def test_an_unknown_match_is_a_404(self, caller: Caller) -> None:
        assert caller.get("/api/v1/matches/999999/lineups").status_code == 404

    def test_needs_a_token(self, anonymous: Any) -> None:
        assert anonymous.get(path(upcoming())).status_code == 401

    def test_is_served_from_the_cache_while_the_database_is_away(self, caller: Caller, monkeypatch: Any) -> None:
        ref = upcoming()
        known = caller.get(path(ref)).json()["lineups"]
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        answer = caller.get(path(ref))
        assert (answer.status_code, answer["X-Data-Source"]) == (200, "cache")
        assert answer.json()["lineups"] == known
        documents.clear()
        assert caller.get(path(ref)).status_code == 503

    def test_makes_few_queries_for_any_number_of_players(
        self, caller: Caller, django_assert_max_num_queries: Any
    ) -> None:
        ref = upcoming()
        caller.get(path(ref))
        with django_assert_max_num_queries(8):
            caller.get(path(ref))
