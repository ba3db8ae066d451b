"""GET /api/v1/usage: the caller's usage and remaining quota. Costs no quota."""

import threading
from datetime import UTC, date, datetime
from typing import Any, Self

from cachetools import TTLCache
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apiauth import usage
from apiauth.authentication import key_of
from apiauth.models import ApiKey, UsageHour
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http.headers import NO_STORE, RateLimit
from victoryline.lib.http.problems import problem_responses
from victoryline.lib.http.views import ApiView, read_params
from victoryline.lib.times import UtcTime

NOTE = "Counts are up to two seconds late; this request itself costs nothing."
AWAY_NOTE = "Our database can't be reached at the moment: limits are known, past usage is not."


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its __init_subclass__
    """Describes BearerAuthentication in the OpenAPI schema, with the scope that each view requires."""

    target_class = "apiauth.authentication.BearerAuthentication"
    name = "bearer"

    def get_security_requirement(self, auto_schema: Any) -> dict[str, list[str]]:
        scope = getattr(auto_schema.view, "required_scope", "read")
        return {self.name: [scope] if scope else []}

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token from POST /token/generate-token, valid for 24 hours. The list beside it has the "
            "scopes that its key must have: read, ingest or operate; if it is empty, any key will do.",
        }


class UsageBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LimitStanding(UsageBody):
    per_minute: int = Field(description="Requests per minute that the tier allows.")
    used: int = Field(description="Requests in the last minute.")
    remaining: int
    resets_at: UtcTime = Field(description="When the present window ends.")


class KeyStanding(UsageBody):
    prefix: str
    label: str | None = Field(description="What the key is for; null while our database is away.")
    scopes: list[str]
    expires_at: UtcTime | None = Field(description="null: it does not expire.")
    replaced_by: str | None = Field(description="The prefix of its successor after a rotation: use that key.")


class UsageSums(UsageBody):
    requests: int = Field(description="All requests, with any outcome.")
    not_modified: int = Field(description="Answered with 304, which costs no quota.")
    throttled: int = Field(description="Answered with 429.")
    refused: int = Field(description="Answered with another 4xx.")
    failed: int = Field(description="Answered with 5xx.")
    duration_ms_mean: float | None = Field(description="Duration of the answers.")
    duration_ms_max: int
    age_seconds_mean: float | None = Field(description="Age of the served data; null: no answer had an age.")
    age_seconds_max: float | None

    @classmethod
    def of(cls, sums: UsageHour, **more: object) -> Self:
        means = (sums.mean_ms, sums.mean_age_seconds, sums.most_age_seconds)
        duration, age, oldest = (None if each is None else round(each, 1) for each in means)
        return cls(
            **{name: getattr(sums, name) for name in ("requests", "not_modified", "throttled", "refused", "failed")},
            duration_ms_mean=duration,
            duration_ms_max=sums.duration_ms_most,
            age_seconds_mean=age,
            age_seconds_max=oldest,
            **more,
        )


class UsageOfDay(UsageSums):
    day: date = Field(description="UTC.")


class UsageOfRoute(UsageSums):
    route: str = Field(description="The address by its name; empty for addresses that don't exist.")


class UsageHistory(UsageBody):
    """From sums by the hour, which are up to two seconds late."""

    as_of: UtcTime
    this_hour: UsageSums
    today: UsageSums
    this_month: UsageSums
    by_day: list[UsageOfDay] = Field(description="The last 30 days, with today.")
    by_route: list[UsageOfRoute] = Field(description="The same 30 days, the most requested first.")


class UsageAnswer(UsageBody):
    consumer: str
    tier: str
    limits: LimitStanding
    key: KeyStanding
    history: UsageHistory | None = Field(description="null while our database is away.")
    note: str = Field(description="A note about the figures.")


Stored = tuple[str, str | None, UsageHistory]  # label of the key, prefix of its successor, usage
# By the key's prefix: at most one query a second per consumer.
_cache: TTLCache[str, Stored] = TTLCache(maxsize=1_000, ttl=1.0)
_lock = threading.Lock()


class UsageView(ApiView):
    required_scope = ""  # for every key: all of them have a limit
    costs_quota = False
    needs_database = False

    @extend_schema(
        operation_id="usage",
        summary="Usage and remaining quota",
        description=(
            "The limit of this minute, and the requests of this hour, today, this month and the last 30 days. Costs no "
            "quota."
        ),
        tags=["access"],
        responses={200: UsageAnswer, **problem_responses(400, 401, 429)},
    )
    def get(self, request: Request) -> Response:
        key = key_of(request)
        assert key is not None  # by the permission class
        read_params(serializers.Serializer, request)  # refuses all
        rate_limit: RateLimit = request.rate_limit  # type: ignore[attr-defined]  # set by the throttle
        label, replaced_by, history = _stored(key, timezone.now()) or (None, None, None)
        body = UsageAnswer(
            consumer=key.consumer.name,
            tier=key.consumer.tier,
            limits=LimitStanding(
                per_minute=rate_limit.limit,
                used=rate_limit.limit - rate_limit.remaining,
                remaining=rate_limit.remaining,
                resets_at=datetime.fromtimestamp(rate_limit.reset_at, UTC),
            ),
            key=KeyStanding(
                prefix=key.prefix,
                label=label,
                scopes=sorted(key.scopes),
                expires_at=key.expires_at,
                replaced_by=replaced_by,
            ),
            history=history,
            note=NOTE if history else AWAY_NOTE,
        )
        return Response(body.model_dump(mode="json"), headers=NO_STORE)


def _stored(key: ApiKey, now: datetime) -> Stored | None:
    """Returns what only the database knows; None while it is away."""
    with _lock:
        known = _cache.get(key.prefix)
    if known is not None:
        return known
    if availability.database.is_away():
        return None
    try:
        with pg_wait.within(availability.READ_SECONDS):
            rows = ApiKey.objects.filter(pk=key.pk).values_list("label", "replaced_by__prefix")
            stored = *(rows.first() or (key.label, None)), _history(key.consumer_id, now)
    except DATABASE_AWAY as error:
        availability.database.report(error)
        return None
    with _lock:
        _cache[key.prefix] = stored
    return stored


def _history(consumer: int, now: datetime) -> UsageHistory:
    today = usage.day_of(now)
    starts = (usage.hour_of(now), today, today.replace(day=1))
    hour, day, month = (UsageSums.of(usage.total(start, now, consumer=consumer)) for start in starts)
    by_day = usage.last_days(now, consumer=consumer)
    by_route = usage.routes(usage.first_day(now), now, consumer=consumer)
    return UsageHistory(
        as_of=now,
        this_hour=hour,
        today=day,
        this_month=month,
        by_day=[UsageOfDay.of(sums, day=at) for at, sums in by_day.items()],
        by_route=[UsageOfRoute.of(sums, route=route) for route, sums in by_route.items()],
    )
