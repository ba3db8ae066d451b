"""GET /api/v1/usage, and the sums behind it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apiauth import usage
from apiauth.api import usage_view
from apiauth.api.usage_view import UsageAnswer
from apiauth.models import ApiKey, Tier, UsageHour
from tests.api_fixtures import Caller
from tests.factories import NOW
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-028")]


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    usage_view._cache.clear()
    yield
    usage_view._cache.clear()


def asked(caller: Caller, hour: datetime, requests: int, route: str = "match", **numbers: Any) -> None:
    UsageHour.objects.create(
        consumer=caller.key.consumer, hour=usage.hour_of(hour), route=route, requests=requests, **numbers
    )


class TestAnswer:
    def test_names_consumer_key_and_limits(self, caller: Caller) -> None:
        expires_at = timezone.now() + timedelta(days=30)
        ApiKey.objects.filter(pk=caller.key.pk).update(label="the website", expires_at=expires_at)
        for _ in range(3):
            caller.get("/api/v1/matches")
        answer = caller.get("/api/v1/usage")
        found = UsageAnswer.model_validate_json(answer.content)
        assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
        assert (found.consumer, found.tier) == ("acme", "standard")
        assert (found.limits.per_minute, found.limits.used, found.limits.remaining) == (100, 3, 97)
        assert found.limits.resets_at > timezone.now()
        assert (found.key.prefix, found.key.label, found.key.scopes) == (caller.key.prefix, "the website", ["read"])
        assert found.key.replaced_by is None

    def test_names_the_successor_of_the_key(self, caller: Caller) -> None:
        other = Caller(name="acme")
        ApiKey.objects.filter(pk=caller.key.pk).update(replaced_by=other.key)
        assert caller.get("/api/v1/usage").json()["key"]["replaced_by"] == other.key.prefix

    def test_costs_no_quota(self, caller: Caller) -> None:
        left = {caller.get("/api/v1/usage").json()["limits"]["remaining"] for _ in range(5)}
        assert left == {100}

    def test_adds_up_hour_day_month_and_thirty_days(self, caller: Caller, operator: Caller) -> None:
        now = timezone.now()
        today = usage.day_of(now)
        month = today.replace(day=1)
        ages = {"aged": 4, "age_seconds_total": 10.0, "age_seconds_most": 7.0}
        asked(caller, now, 10, not_modified=5, throttled=1, refused=2, failed=1, duration_ms_total=25, **ages)
        asked(caller, now, 3, route="matches")
        asked(caller, today - timedelta(days=29), 100, duration_ms_most=90)
        asked(caller, today - timedelta(days=30), 1000)
        asked(operator, now, 5000)
        history = caller.get("/api/v1/usage").json()["history"]
        in_month = sum(
            count for days, count in ((0, 13), (29, 100), (30, 1000)) if today - timedelta(days=days) >= month
        )
        assert [history[name]["requests"] for name in ("this_hour", "today", "this_month")] == [13, 13, in_month]
        assert len(history["by_day"]) == 30
        assert [history["by_day"][place]["requests"] for place in (0, 1, -1)] == [100, 0, 13]
        assert history["by_day"][-1]["day"] == today.date().isoformat()
        assert [(each["route"], each["requests"]) for each in history["by_route"]] == [("match", 110), ("matches", 3)]
        hour = history["this_hour"]
        assert [hour[name] for name in ("not_modified", "throttled", "refused", "failed")] == [5, 1, 2, 1]
        assert (hour["duration_ms_mean"], hour["age_seconds_mean"], hour["age_seconds_max"]) == (1.9, 2.5, 7.0)

    def test_is_read_once_a_second(self, caller: Caller, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        caller.get("/api/v1/usage")
        with django_assert_num_queries(1):  # which writes the access log, as a thread does outside of tests
            assert caller.get("/api/v1/usage").status_code == 200

    def test_needs_any_valid_token(self, anonymous: Client) -> None:
        """A key for ingest only has a limit as well."""
        assert anonymous.get("/api/v1/usage").status_code == 401
        sender = Caller(name="sender", tier=Tier.STANDARD, scopes=("ingest",))
        assert sender.get("/api/v1/usage").json()["key"]["scopes"] == ["ingest"]

    def test_takes_no_parameters(self, caller: Caller) -> None:
        answer = caller.get("/api/v1/usage", {"days": "7"})
        assert (answer.status_code, answer.json()["parameter"]) == (400, "days")


@pytest.mark.fault
class TestWithoutDatabase:
    def check(self, answer: Any) -> None:
        found = UsageAnswer.model_validate_json(answer.content)
        assert (answer.status_code, found.history, found.key.label) == (200, None, None)
        assert found.limits.per_minute == 100
        assert "can't be reached" in found.note

    @pytest.fixture
    def unlogged(self, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        settings.ACCESS_LOG_IS_SYNCHRONOUS = False
        monkeypatch.setattr("apiauth.access_log.writer.write", lambda _: None)

    @pytest.mark.usefixtures("unlogged")
    def test_has_limits_when_it_is_found_away(self, caller: Caller) -> None:
        caller.get("/api/v1/matches")

        def refuse(*_: Any) -> None:
            raise OperationalError("connection refused")

        with connection.execute_wrapper(refuse):
            self.check(caller.get("/api/v1/usage"))

    @pytest.mark.usefixtures("unlogged")
    def test_has_limits_when_it_is_known_to_be_away(
        self, caller: Caller, request: pytest.FixtureRequest, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        caller.get("/api/v1/matches")
        request.getfixturevalue("known_to_be_away")
        with django_assert_num_queries(0):
            self.check(caller.get("/api/v1/usage"))


class TestSums:
    def test_of_several_hours_are_added(self, caller: Caller) -> None:
        asked(caller, NOW, 2, duration_ms_total=10, duration_ms_most=7)
        asked(caller, NOW - usage.HOUR, 3, duration_ms_total=5, duration_ms_most=4)
        whole = usage.total(usage.day_of(NOW), NOW, consumer=caller.key.consumer_id)
        assert (whole.requests, whole.mean_ms, whole.duration_ms_most) == (5, 3.0, 7)
        nothing = usage.total(NOW + usage.DAY, NOW + 2 * usage.DAY)
        assert (nothing.requests, nothing.mean_ms, nothing.most_age_seconds) == (0, None, None)

    def test_count_complete_responses_as_answered(self) -> None:
        assert UsageHour(requests=10, not_modified=1, throttled=2, refused=3, failed=1).answered == 3

    def test_start_at_full_hours_and_days(self) -> None:
        moment = NOW.replace(day=17, hour=9, minute=59)
        assert usage.hour_of(moment).isoformat().startswith(f"{moment:%Y-%m}-17T09:00:00")
        assert usage.day_of(moment).isoformat().startswith(f"{moment:%Y-%m}-17T00:00:00")
