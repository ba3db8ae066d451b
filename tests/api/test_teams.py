"""Stable ids of teams: which names mean one team, what an alias changes, and the two addresses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping.documents.cache import documents
from scraping.matches import teams
from scraping.models import Match, Team, TeamAlias
from scraping.names import identity, squeezed
from scraping.payloads import Team as Named
from scraping.payloads import Teams
from tests.api_fixtures import Caller
from tests.factories import NOW, cricket_state, make_match, make_unread_match
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture

pytestmark = [pytest.mark.django_db, pytest.mark.both]
ADDRESS = "/api/v1/teams"


def match_of(one: str, other: str, **fields: Any) -> Match:
    pair = Teams(team_a=Named(name=one), team_b=Named(name=other))
    return make_match(state=cricket_state(teams=pair), **fields)


def alias(text: str, name: str) -> TeamAlias:
    return TeamAlias.objects.create(sport="cricket", alias=text, name=name, squeezed=squeezed(text))


def ids_of(match: Match) -> tuple[int | None, int | None]:
    match.refresh_from_db()
    return match.known_team_a_id, match.known_team_b_id


@pytest.fixture(autouse=True)
def fresh_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request reads the teams anew."""
    monkeypatch.setattr("scraping.api.teams.KEPT_SECONDS", 1e-9)


class TestIdentity:
    ALIASES = {"ind": "India", "rcb": "Royal Challengers Bengaluru"}

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("India", "INDIA"), ("India", "IND"), ("India Women", "IND W"), ("India A", "IND A"),
            ("Royal Challengers Bengaluru", "RCB"), ("São Paulo", "Sao Paulo"), ("St. Kitts", "St Kitts"),
        ],
    )  # fmt: skip
    def test_of_one_team_is_one(self, one: str, other: str) -> None:
        assert identity(one, self.ALIASES) == identity(other, self.ALIASES) != ""

    @pytest.mark.parametrize(
        ("one", "other"),
        [("India", "India Women"), ("India A", "India"), ("EC Vitória", "Vitória SC"), ("India U19", "India U23")],
    )
    def test_of_two_teams_are_two(self, one: str, other: str) -> None:
        assert identity(one, self.ALIASES) != identity(other, self.ALIASES)

    @pytest.mark.parametrize("name", ["", " ", "TBC", "Winner of A1", "Semi-final 2"])
    def test_of_a_placeholder_is_empty(self, name: str) -> None:
        assert identity(name) == ""


class TestAssign:
    def test_one_team_has_one_id_in_all_its_matches(self) -> None:
        alias("IND", "India")
        one, other = match_of("India", "Australia"), match_of("Kenya", "IND")
        assert teams.assign_new(NOW) == 2
        assert ids_of(one)[0] == ids_of(other)[1]
        assert len({*ids_of(one), *ids_of(other)}) == 3
        assert Team.objects.get(pk=ids_of(one)[0]).name == "India"
        assert teams.assign_new(NOW) == teams.assign_all(NOW) == 0

    def test_a_placeholder_has_no_id_until_the_team_is_known(self) -> None:
        match = match_of("TBC", "Australia", last_changed_at=NOW - timedelta(days=1))
        teams.assign_new(NOW)
        assert ids_of(match)[0] is None
        Match.objects.filter(pk=match.pk).update(team_a="Kenya")
        teams.assign_new(NOW)
        assert Team.objects.get(pk=ids_of(match)[0]).name == "Kenya"

    def test_a_corrected_name_changes_the_id(self) -> None:
        match = match_of("Kenia", "Australia")
        teams.assign_new(NOW)
        before = ids_of(match)
        Match.objects.filter(pk=match.pk).update(team_a="Kenya", last_changed_at=NOW)
        teams.assign_new(NOW)
        assert (ids_of(match)[0] != before[0], ids_of(match)[1]) == (True, before[1])

    def test_a_discovered_match_has_ids_too(self) -> None:
        match = make_unread_match(team_a="Kenya", team_b="Nepal")
        assert teams.assign_new(NOW) == 1
        assert None not in ids_of(match)

    def test_an_alias_joins_two_teams_and_the_old_id_leads_to_the_other(self, caller: Caller) -> None:
        one, other = match_of("Kenya", "Australia"), match_of("Kenya National XI Team", "Australia")
        teams.assign_all(NOW)
        kenya, former = ids_of(one)[0], ids_of(other)[0]
        assert kenya != former
        row = alias("Kenya National XI Team", "Kenya")
        teams.assign_all(NOW)
        assert ids_of(other)[0] == kenya
        found = caller.get(f"{ADDRESS}/{former}").json()
        assert (found["id"], found["former_ids"], found["aliases"]) == (kenya, [former], ["Kenya National XI Team"])
        row.delete()
        teams.assign_all(NOW)
        assert (ids_of(other)[0], caller.get(f"{ADDRESS}/{former}").json()["id"]) == (former, former)

    def test_a_team_without_a_match_is_deleted_after_a_year(self) -> None:
        match_of("Kenya", "Australia")
        teams.assign_all(NOW)
        Match.objects.filter(team_a="Kenya").delete()
        make_unread_match(team_a="Nepal", team_b="TBC")
        teams.assign_all(NOW)
        teams.assign_all(NOW + timedelta(days=366))
        assert [team.name for team in Team.objects.all()] == ["Nepal"]


class TestAddresses:
    @pytest.fixture
    def match(self) -> Match:
        alias("IND", "India")
        found = match_of("India", "Australia", now=timezone.now())
        teams.assign_new(timezone.now())
        return found

    def test_a_match_has_the_ids_of_its_teams(self, caller: Caller, match: Match) -> None:
        india, australia = ids_of(match)
        document = caller.get(f"/api/v1/matches/{match.pk}").json()
        (item,) = caller.get("/api/v1/matches", {"fields": "team_b_id"}).json()["matches"]
        assert (document["team_a_id"], document["team_b_id"], item["team_b_id"]) == (india, australia, australia)

    def test_the_etag_changes_with_the_id(self, caller: Caller, match: Match) -> None:
        address = f"/api/v1/matches/{match.pk}"
        etag = caller.get(address)["ETag"]
        Match.objects.filter(pk=match.pk).update(known_team_a=None)
        assert caller.get(address, If_None_Match=etag).status_code == 200

    def test_lists_filter_by_id(self, caller: Caller, match: Match) -> None:
        match_of("Kenya", "Nepal")
        for team_id in ids_of(match):
            found = caller.get("/api/v1/matches", {"team_id": team_id}).json()["matches"]
            assert [each["id"] for each in found] == [match.pk]
        assert caller.get("/api/v1/matches", {"team_id": 0}).json()["parameter"] == "team_id"

    def test_the_list_has_filters_and_pages(self, caller: Caller, match: Match) -> None:
        india, australia = ids_of(match)
        both = caller.get(ADDRESS).json()["teams"]
        assert sorted(team["id"] for team in both) == sorted((india, australia))
        for query, expected in (
            ({"name": "ind"}, [india]), ({"name": "austral"}, [australia]), ({"ids": f"{india},999"}, [india]),
            ({"sport": "football"}, []), ({"name": "nowhere"}, []),
        ):  # fmt: skip
            assert [team["id"] for team in caller.get(ADDRESS, query).json()["teams"]] == expected, query
        first = caller.get(ADDRESS, {"limit": 1}).json()
        second = caller.get(first["next"]).json()
        assert [*first["teams"], *second["teams"]] == both
        assert second["next"] is None

    def test_answers_are_conditional_and_need_a_token(self, caller: Caller, match: Match) -> None:
        for address in (ADDRESS, f"{ADDRESS}/{ids_of(match)[0]}"):
            etag = caller.get(address)["ETag"]
            assert caller.get(address, If_None_Match=etag).status_code == 304
            assert caller.client.get(address).status_code == 401
        assert caller.get(f"{ADDRESS}/999999").status_code == 404

    def test_lists_mean_the_same_while_the_database_is_away(
        self, caller: Caller, match: Match, request: pytest.FixtureRequest
    ) -> None:
        before = caller.get(ADDRESS).json()
        caller.get("/api/v1/matches")
        request.getfixturevalue("known_to_be_away")
        away = caller.get(ADDRESS)
        assert (away.json(), away["X-Data-Source"]) == (before, "cache")
        assert len(caller.get(ADDRESS, {"name": "ind"}).json()["teams"]) == 1
        found = caller.get("/api/v1/matches", {"team_id": ids_of(match)[0]}).json()["matches"]
        assert [each["id"] for each in found] == [match.pk]
        documents.clear()
        assert caller.get(ADDRESS).status_code == 503
