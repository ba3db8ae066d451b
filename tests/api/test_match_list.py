"""GET /api/v1/matches and the cricket-only surface."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.utils import timezone
from requests.utils import parse_header_links

from scraping.models import Match, MatchLifecycle
from scraping.models.source import PUSHED
from scraping.payloads import Sport, Team, Teams
from tests.api_fixtures import Caller
from tests.factories import NOW, cricket_state, make_match, make_ref, make_scraper, make_snapshot, make_unread_match

pytestmark = pytest.mark.django_db
LIST = "/api/v1/matches"
MILLISECOND = timedelta(milliseconds=1)
SERIES = "India tour of Australia"  # as the payload of the factories has it
LATE_THE_DAY_BEFORE = datetime(2026, 1, 9, 23, 59, tzinfo=UTC)


def ids(response: Any) -> list[int]:
    assert response.status_code == 200, response.json()
    return [match["id"] for match in response.json()["matches"]]


def links_of(response: Any) -> dict[str, str]:
    return {link["rel"]: link["url"] for link in parse_header_links(response["Link"])}


class TestFilters:
    @pytest.fixture
    def match_ids(self) -> dict[str, int]:
        names = Teams(team_a=Team(name="Kenya"), team_b=Team(name="100% Nepal"))
        return {
            "live": make_ref(make_match(series=SERIES, start_time=LATE_THE_DAY_BEFORE)).match_id,
            "football": make_ref(make_match(sport="football"), source="sofascore").match_id,
            "done": make_match(status="completed", lifecycle=MatchLifecycle.COMPLETED, series=SERIES).pk,
            "kenya": make_match(
                state=cricket_state(teams=names), last_changed_at=NOW + timedelta(hours=1), series=SERIES
            ).pk,
            "old": make_match(status="completed", lifecycle=MatchLifecycle.ARCHIVED).pk,
        }

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({}, ["kenya", "done", "football", "live"]),
            ({"status": "live"}, ["kenya", "football", "live"]),
            ({"sport": "football"}, ["football"]),
            ({"source": "sofascore"}, ["football"]),
            ({"source": "nowhere"}, []),
            ({"lifecycle": "ARCHIVED"}, ["old"]),
            ({"team": "aUSTRal"}, ["done", "live"]),
            ({"team": "0% n"}, ["kenya"]),
            ({"team": "%"}, ["kenya"]),
            ({"updated_since": "2026-01-10T13:00:00Z"}, ["kenya"]),
            ({"updated_since": "2026-01-10T14:00:00+01:00"}, ["kenya"]),
            ({"status": "live", "sport": "cricket", "source": "crex"}, ["live"]),
            ({"status": "completed,live"}, ["kenya", "done", "football", "live"]),
            ({"status": "upcoming,abandoned"}, []),
            ({"series": "TOUR of"}, ["kenya", "done", "live"]),
            ({"series": "ashes"}, []),
            ({"date": "2026-01-10"}, ["kenya", "done", "football"]),
            ({"date": "2026-01-09"}, ["live"]),
            ({"date": "9999-12-31"}, []),
            ({"start_from": "2026-01-10T10:00:00Z"}, ["kenya", "done", "football"]),
            ({"start_to": "2026-01-10T10:00:00Z"}, ["live"]),
            ({"start_from": "2026-01-09T23:59:00Z", "start_to": "2026-01-09T23:59:01Z"}, ["live"]),
        ],
        ids=str,
    )
    def test_select_matches(
        self, caller: Caller, match_ids: dict[str, int], query: dict[str, str], expected: list[str]
    ) -> None:
        assert ids(caller.get(LIST, query)) == [match_ids[name] for name in expected]

    def test_changes_committed_during_a_response_are_in_the_next_one(self, caller: Caller) -> None:
        began = timezone.now()
        asked = caller.get(LIST).json()["_metadata"]["generated_at"]
        match = make_match(last_changed_at=began)  # committed only now
        assert ids(caller.get(LIST, {"updated_since": asked})) == [match.pk]
        later = (began + timedelta(seconds=6)).isoformat()
        assert ids(caller.get(LIST, {"updated_since": later})) == []
        assert ids(caller.get(LIST, {"updated_since": "0001-01-01T00:00:00Z"})) == [match.pk]

    @pytest.mark.requirement("BX-22")
    @pytest.mark.parametrize(
        "query",
        [
            {"status": "running"},
            {"status": "live,running"},
            {"status": "live,"},
            {"status": ""},
            {"series": "\x00"},
            {"date": "2026-02-30"},
            {"date": "2026-01-10T10:00:00Z"},
            {"date": "2026-01-10", "start_from": "2026-01-10T10:00:00Z"},
            {"start_from": "soon"},
            {"sport": "chess"},
            {"source": "a b"},
            {"source": "\x00"},
            {"lifecycle": "live"},
            {"team": "\x00"},
            {"team": "x" * 121},
            {"updated_since": "yesterday"},
            {"updated_since": "9999-12-31T23:59:59-14:00"},
            {"updated_since": "0001-01-01T00:00:00+14:00"},
            {"limit": "0"},
            {"limit": "101"},
            {"limit": "1e1"},
            {"cursor": "\x00"},
            {"cursor": "nonsense"},
            {"cursor": "aWQ6MA"},  # id:0
            {"cursor": "aWQ6Nw"},  # id:7, as it was before cursors knew their filters
            {"cursor": "aWQ6OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk"},  # beyond 64 bits
            {"cursor": "x" * 101},
            {"ids": "1,,2"},
            {"ids": "a b"},
            {"ids": ",".join(map(str, range(101)))},
            {"sort": "title"},
            {"fields": "score,colour"},
            {"fields": "provenance"},
            {"cursor": "ü"},
            {"max_age": "-1"},
        ],
        ids=str,
    )
    def test_a_bad_value_is_a_400_that_names_it(self, caller: Caller, query: dict[str, str]) -> None:
        response = caller.get(LIST, query)
        problem = response.json()
        assert (response.status_code, problem["type"]) == (400, "/problems/bad-parameter")
        assert problem["parameter"] == next(iter(query))


class TestIds:
    def test_are_numbers_and_keys_of_matches(self, caller: Caller) -> None:
        one, two = make_match(), make_ref(source_event_id="13KM").match
        make_match()
        wanted = {"ids": f"{one.pk},crex_13KM,{two.pk},espn_1,99999999,0{one.pk}"}
        assert ids(caller.get(LIST, wanted)) == [two.pk, one.pk]
        assert ids(caller.get(LIST, {**wanted, "status": "completed"})) == []

    def test_in_another_order_are_the_same_request(self, caller: Caller) -> None:
        one, two = make_match().pk, make_match().pk
        first = caller.get(LIST, {"ids": f"{one},{two}"})
        assert caller.get(LIST, {"ids": f"{two},{one}"}, If_None_Match=first["ETag"]).status_code == 304


class TestSort:
    @pytest.fixture
    def by_start(self) -> list[int]:
        """Created in another order than they start; the last one has no start."""
        hours = (3, 1, None, 2)
        made = [make_match(start_time=hour and NOW + timedelta(hours=hour)).pk for hour in hours]
        return [made[1], made[3], made[0], made[2]]

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 50])
    def test_pages_follow_the_order(self, caller: Caller, by_start: list[int], limit: int) -> None:
        *timed, without = by_start
        for sort, expected in (("start_time", by_start), ("-start_time", [*reversed(timed), without])):
            found: list[int] = []
            address: str | None = f"{LIST}?limit={limit}&sort={sort}"
            while address:
                response = caller.get(address)
                found += ids(response)
                address = response.json()["next"]
            assert found == expected

    def test_the_last_changed_match_comes_first(self, caller: Caller) -> None:
        made = [make_match(last_changed_at=NOW + timedelta(minutes=minutes)).pk for minutes in (2, 3, 1)]
        assert ids(caller.get(LIST, {"sort": "-updated"})) == [made[1], made[0], made[2]]

    def test_a_cursor_belongs_to_its_order(self, caller: Caller, by_start: list[int]) -> None:
        address = caller.get(LIST, {"limit": 1, "sort": "start_time"}).json()["next"]
        assert caller.get(address.replace("sort=start_time", "sort=-start_time")).status_code == 400


class TestFields:
    def test_limit_each_match_to_what_is_asked_for(self, caller: Caller) -> None:
        ref = make_ref(make_match(now=timezone.now()))
        response = caller.get(LIST, {"fields": "innings,score,metadata"})
        (item,) = response.json()["matches"]
        assert list(item) == ["id", "score", "innings", "metadata", "freshness"]
        whole = caller.get(f"{LIST}/{ref.match_id}").json()
        assert {name: whole[name] for name in item if name != "freshness"} == {
            name: value for name, value in item.items() if name != "freshness"
        }
        assert item["freshness"]["state"] == "fresh"

    def test_have_an_etag_of_their_own(self, caller: Caller) -> None:
        make_match()
        etags = {caller.get(LIST, query)["ETag"] for query in ({}, {"fields": "score"}, {"fields": "score,title"})}
        assert len(etags) == 3
        assert caller.get(LIST, {"fields": "title,score"})["ETag"] in etags

    def test_id_and_freshness_are_always_there_once(self, caller: Caller) -> None:
        make_match()
        text = caller.get(LIST, {"fields": "freshness,id"}).content.decode()
        assert (text.count('"id"'), text.count('"freshness"')) == (1, 1)

    def test_change_with_the_match(self, caller: Caller) -> None:
        match = make_match()
        caller.get(LIST, {"fields": "title"})
        Match.objects.filter(pk=match.pk).update(title="corrected", sequence=2)
        assert caller.get(LIST, {"fields": "title"}).json()["matches"][0]["title"] == "corrected"


class TestPages:
    def test_have_no_gaps_or_duplicates(self, caller: Caller) -> None:
        expected = sorted((make_match().pk for _ in range(7)), reverse=True)
        found: list[int] = []
        address: str | None = f"{LIST}?limit=3&status=live"
        while address:
            response = caller.get(address)
            found += ids(response)
            make_match()  # a new match shifts no page
            address = response.json()["next"]
        assert found == expected

    def test_the_next_address_keeps_the_filters(self, caller: Caller) -> None:
        make_match()
        make_match()
        address = caller.get(LIST, {"limit": 1, "team": "Ind & Aus"[:3]}).json()["next"]
        assert address.startswith("http://testserver/api/v1/matches?")
        assert "team=Ind" in address

    def test_a_cursor_belongs_to_its_filters(self, caller: Caller) -> None:
        make_match()
        make_match()
        cursor = parse_qs(caller.get(LIST, {"limit": 1, "status": "live"}).json()["next"].partition("?")[2])["cursor"][
            0
        ]
        for same in ({"status": "live"}, {"status": "live", "limit": 7}, {"status": "live", "max_age": 86400}):
            assert caller.get(LIST, {"cursor": cursor, **same}).status_code in {200, 503}
        for other in ({}, {"status": "live,upcoming"}, {"status": "live", "team": "Ind"}):
            response = caller.get(LIST, {"cursor": cursor, **other})
            assert (response.status_code, response.json()["parameter"]) == (400, "cursor")
            assert "other filters" in response.json()["detail"]

    def test_the_link_header_has_the_first_and_the_next_page(self, caller: Caller) -> None:
        expected = sorted((make_match().pk for _ in range(3)), reverse=True)
        links = links_of(caller.get(LIST, {"limit": 2, "team": "Ind"}))
        assert links.keys() == {"first", "next"}
        last = caller.get(links["next"])
        assert ids(last) == expected[2:]
        assert links_of(last).keys() == {"first"}
        assert ids(caller.get(links_of(last)["first"])) == expected[:2]
        etag = last["ETag"]
        assert links_of(caller.get(links["next"], If_None_Match=etag)) == links_of(last)

    def test_take_two_queries_for_any_size(self, caller: Caller, django_assert_num_queries) -> None:
        for _ in range(5):
            make_ref(make_match())
        caller.get(LIST)
        with django_assert_num_queries(3):  # the third writes the access log
            assert len(ids(caller.get(LIST))) == 5


class TestItems:
    def test_carry_what_a_scoreboard_shows(self, caller: Caller) -> None:
        now = timezone.now()
        make_ref(make_match(now=now - timedelta(seconds=2)), now=now, source_event_id="13KM")
        item = caller.get(LIST).json()["matches"][0]
        assert (item["keys"], item["sport"], item["status"], item["phase"]) == (
            ["crex_13KM"],
            "cricket",
            "live",
            "play",
        )
        assert item["score"]["team_a"]["runs"] == 187
        assert item["freshness"]["state"] == "fresh"
        assert 2 <= item["freshness"]["age_seconds"] < 10

    def test_the_most_trusted_source_comes_first(self, caller: Caller) -> None:
        match = make_match()
        make_ref(match, source="crex", source_event_id="1")
        heavy = make_ref(match, source="espn", source_event_id="2")
        heavy.source.precedence_weight = 90
        heavy.source.save()
        assert caller.get(LIST).json()["matches"][0]["keys"] == ["espn_2", "crex_1"]


@pytest.mark.requirement("FR-013")
class TestHeaders:
    def test_show_the_age_of_the_oldest_live_match(self, caller: Caller) -> None:
        now = timezone.now()
        for age, status in ((2, "live"), (40, "live"), (9000, "completed")):
            make_match(now=now - timedelta(seconds=age), status=status)
        make_unread_match()
        response = caller.get(LIST)
        assert 40 <= int(response["X-Data-Age-Seconds"]) < 60
        assert response["X-Data-State"] == "aging"
        assert response["Cache-Control"] == "private, max-age=1, stale-if-error=60"
        assert response.json()["_metadata"]["data_age_seconds"] == int(response["X-Data-Age-Seconds"])
        assert caller.get(LIST, {"max_age": 20}).status_code == 503

    @pytest.mark.requirement("BX-1")
    def test_ignore_finished_matches_if_another_is_upcoming(self, caller: Caller) -> None:
        now = timezone.now()
        make_match(now=now - timedelta(seconds=9000), status="completed")
        make_unread_match()
        final = caller.get(LIST, {"max_age": 60})
        assert (final.status_code, final["X-Data-State"]) == (200, "final")
        make_match(now=now - timedelta(seconds=2000), status="upcoming")
        response = caller.get(LIST)
        assert 2000 <= int(response["X-Data-Age-Seconds"]) < 2060
        assert response["X-Data-State"] == "stale"
        assert response["Cache-Control"] == "private, max-age=10, stale-if-error=300"
        assert caller.get(LIST, {"max_age": 60}).status_code == 503

    @pytest.mark.requirement("BX-2")
    @pytest.mark.parametrize("address", [LIST, "/cricket-data/live-matches"])
    def test_show_the_earliest_next_update(self, caller: Caller, address: str) -> None:
        now, tomorrow = timezone.now(), timezone.now() + timedelta(days=1)
        paused = make_match(now=now - timedelta(hours=1), lifecycle=MatchLifecycle.PAUSED, pause_until=tomorrow)
        make_ref(paused, next_poll_at=now)
        make_ref(make_match(now=now), next_poll_at=now + timedelta(seconds=30))
        response = caller.get(address)
        assert (response["X-Data-State"], int(response["X-Data-Age-Seconds"]) >= 3600) == ("paused", True)
        assert 1 <= int(response["X-Next-Update-In"]) <= 30
        assert response.json()["_metadata"]["next_update_in_seconds"] <= 30
        refused = caller.get(address, {"max_age": 60})
        assert (refused.status_code, int(refused["Retry-After"]) > 3600) == (503, True)

    @pytest.mark.requirement("BX-1")
    @pytest.mark.parametrize("address", [LIST, "/cricket-data/live-matches"])
    def test_a_silent_sender_does_not_cause_a_503_for_the_list(self, caller: Caller, address: str) -> None:
        now = timezone.now()
        make_ref(make_match(now=now), now=now)
        long_ago = now - timedelta(hours=1)
        silent = make_ref(make_match(now=long_ago), source=PUSHED, now=long_ago)
        listed = caller.get(address)
        assert (len(listed.json()["matches"]), listed.json()["_metadata"]["left_out"]) == (2, 0)
        assert (listed["X-Data-State"], int(listed["X-Data-Age-Seconds"]) < 60) == ("fresh", True)
        young = caller.get(address, {"max_age": 60})
        assert (young.status_code, int(young["X-Data-Age-Seconds"]) < 60) == (200, True)
        assert (len(young.json()["matches"]), young.json()["_metadata"]["left_out"]) == (1, 1)
        assert young["ETag"] != listed["ETag"]
        make_ref(silent.match, now=long_ago)  # one that we read ourselves is our own fault
        assert caller.get(address, {"max_age": 60}).status_code == 503

    @pytest.mark.requirement("BX-1")
    def test_a_list_of_submitted_matches_only_has_no_age(self, caller: Caller) -> None:
        """Each match shows its own."""
        a_minute_ago = timezone.now() - timedelta(minutes=1)
        make_ref(make_match(now=a_minute_ago), source=PUSHED, now=a_minute_ago)
        for query in ({}, {"max_age": 600}):
            response = caller.get(LIST, query)
            assert (response["X-Data-State"], "X-Data-Age-Seconds" in response) == ("unknown", False)
            assert response.json()["matches"][0]["freshness"]["age_seconds"] >= 60
        assert "stale-if-error=0" in response["Cache-Control"]

    @pytest.mark.requirement("BX-1")
    def test_a_refusal_does_not_quote_the_age_of_a_submitted_match(self, caller: Caller) -> None:
        now = timezone.now()
        make_ref(make_match(now=now - timedelta(seconds=120)), now=now)
        make_ref(make_match(now=now - timedelta(hours=1)), source=PUSHED, now=now)
        make_ref(make_match(now=now - timedelta(hours=2), status="upcoming"), source=PUSHED, now=now)
        refused = caller.get(LIST, {"max_age": 60})
        assert (refused.status_code, 120 <= refused.json()["data_age_seconds"] < 600) == (503, True)

    def test_a_cache_keeps_a_submitted_match_no_longer_than_max_age(self, caller: Caller) -> None:
        now = timezone.now()
        make_match(status="completed")
        sent = now - timedelta(seconds=3595)
        make_ref(make_match(now=sent, status="upcoming"), source=PUSHED, now=sent)
        response = caller.get(LIST, {"max_age": 3600})
        assert int(response["Cache-Control"].partition("max-age=")[2].partition(",")[0]) <= 5

    def test_a_page_continues_after_omitted_matches(self, caller: Caller) -> None:
        now, long_ago = timezone.now(), timezone.now() - timedelta(hours=1)
        first = make_ref(make_match(now=now), now=now)
        make_ref(make_match(now=long_ago), source=PUSHED, now=long_ago)
        page = caller.get(LIST, {"max_age": 60, "limit": 1})
        assert (ids(page), page.json()["_metadata"]["left_out"]) == ([], 1)
        cursor = parse_qs(page.json()["next"].partition("?")[2])["cursor"][0]
        assert ids(caller.get(LIST, {"max_age": 60, "limit": 1, "cursor": cursor})) == [first.match_id]

    def test_of_an_empty_list_are_unknown(self, caller: Caller) -> None:
        response = caller.get(LIST, {"max_age": 1})
        assert response.status_code == 200
        assert response["X-Data-State"] == "unknown"

    def test_a_list_has_an_etag_that_changes_with_any_match(self, caller: Caller) -> None:
        match = make_match()
        etag = caller.get(LIST)["ETag"]
        assert caller.get(LIST, If_None_Match=etag).status_code == 304
        match.sequence += 1
        match.save()
        assert caller.get(LIST, If_None_Match=etag).status_code == 200


class TestCricketData:
    @pytest.mark.requirement("DM-11", "FR-013", "US3.3")
    def test_match_info_has_its_shape_and_headers(self, caller: Caller) -> None:
        match = make_match(now=timezone.now() - timedelta(seconds=3))
        scraper = make_scraper(make_ref(match))
        response = caller.get(f"/cricket-data/match-info/{match.pk}")
        body = response.json()
        assert response["Content-Type"] == "application/json"
        assert response["X-Data-Freshness"].endswith("Z")
        assert 3 <= int(response["X-Data-Age-Seconds"]) < 10
        assert body["matchId"] == match.pk
        assert [team["name"] for team in body["teams"]] == ["India", "Australia"]
        assert body["score"]["team_a"]["runs"] == 187
        assert body["status"] == "live"
        assert body["_metadata"].keys() == {
            "scraped_at", "data_age_seconds", "scraper_id", "source", "state", "next_update_in_seconds",
        }  # fmt: skip
        assert (body["_metadata"]["source"], body["_metadata"]["scraper_id"]) == ("scraper", str(scraper.scraper_id))
        assert body["_metadata"]["scraped_at"] == response["X-Data-Freshness"]
        assert datetime.fromisoformat(response["X-Data-Freshness"]) - (match.last_scraper_update or NOW) < MILLISECOND
        assert body["_metadata"]["data_age_seconds"] == int(response["X-Data-Age-Seconds"])

    @pytest.mark.requirement("DM-11", "US3.3")
    def test_the_list_shows_the_age_of_each(self, caller: Caller) -> None:
        for age in (3, 20):
            make_match(now=timezone.now() - timedelta(seconds=age))
        response = caller.get("/cricket-data/live-matches")
        ages = [match["_metadata"]["data_age_seconds"] for match in response.json()["matches"]]
        assert 20 <= ages[0] <= 23
        assert 3 <= ages[1] <= 6
        assert int(response["X-Data-Age-Seconds"]) == ages[0]

    @pytest.mark.requirement("DM-11")
    def test_both_show_the_origin_of_the_data(self, caller: Caller) -> None:
        match = make_match()
        make_snapshot(match, data_source="manual")
        alone = caller.get(f"/cricket-data/match-info/{match.pk}").json()
        (listed,) = caller.get("/cricket-data/live-matches").json()["matches"]
        assert [each["_metadata"]["source"] for each in (alone, listed)] == ["manual", "manual"]

    def test_match_info_of_a_football_match_is_a_404(self, caller: Caller) -> None:
        match = make_match(sport="football")
        response = caller.get(f"/cricket-data/match-info/{match.pk}")
        assert response.status_code == 404
        assert f"/api/v1/matches/{match.pk}" in response.json()["detail"]

    def test_match_info_of_a_match_never_read_has_no_score(self, caller: Caller) -> None:
        body = caller.get(f"/cricket-data/match-info/{make_unread_match().pk}").json()
        assert (body["teams"], body["score"]) == ([], {})

    def test_live_matches_are_the_live_cricket_ones(self, caller: Caller) -> None:
        live = make_match()
        make_match(sport="football")
        make_match(status="completed")
        body = caller.get("/cricket-data/live-matches").json()
        assert [match["matchId"] for match in body["matches"]] == [live.pk]
        assert live.sport == Sport.CRICKET

    def test_live_matches_are_all_of_them(self, caller: Caller) -> None:
        one = make_match()
        plain = {name: getattr(one, name) for name in ("sport", "title", "team_a", "status", "lifecycle", "created_at")}
        Match.objects.bulk_create(Match(**plain) for _ in range(500))
        assert len(caller.get("/cricket-data/live-matches").json()["matches"]) == 501

    @pytest.mark.requirement("FR-026")
    @pytest.mark.parametrize("address", ["match-info/1", "live-matches"])
    def test_needs_a_token(self, anonymous, address: str) -> None:
        assert anonymous.get(f"/cricket-data/{address}").status_code == 401
