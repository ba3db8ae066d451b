"""GET /api/v1/usage: what the caller has used, and what is left. Costs no quota."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from cachetools import TTLCache
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apiauth import usage
from apiauth.api.documents import (
    USAGE_EXAMPLE,
    KeyStanding,
    LimitStanding,
    UsageAnswer,
    UsageHistory,
    UsageOfDay,
    UsageOfRoute,
    UsageSums,
)
from apiauth.authentication import Principal
from apiauth.models import ApiKey
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http.headers import RateLimit
from victoryline.lib.http.problems import BadParameter, problem_responses
from victoryline.lib.http.views import ApiView

NOTE = "Counts are up to two seconds late; this request itself costs nothing."
AWAY_NOTE = "Our database can't be reached at the moment, so what you used before is not known. Your limits are."

# By the key's prefix: a consumer that asks all day costs a query a second.
_cache: TTLCache[str, tuple[KeyStanding, UsageHistory]] = TTLCache(maxsize=1_000, ttl=1.0)
_lock = threading.Lock()


class Usage(ApiView):
    required_scope = ""  # for every key: all of them have a limit
    costs_quota = False
    needs_database = False

    @extend_schema(
        operation_id="usage",
        summary="What you have used, and what is left",
        description=(
            "Your limit in this minute, and your requests in this hour, today, this month and the last 30 days. "
            "Costs no quota."
        ),
        tags=["access"],
        responses={200: UsageAnswer, **problem_responses(400, 401, 429)},
        examples=[OpenApiExample("usage", USAGE_EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: Request) -> Response:
        caller = request.user
        assert isinstance(caller, Principal)  # by the permission class
        _refuse_parameters(request)
        rate_limit: RateLimit = request.rate_limit  # type: ignore[attr-defined]  # set by the throttle
        stored = _stored(caller, timezone.now())
        body = UsageAnswer(
            consumer=caller.name,
            tier=caller.tier,
            limits=_limits(rate_limit),
            key=stored[0] if stored else _key(caller),
            history=stored[1] if stored else None,
            note=NOTE if stored else AWAY_NOTE,
        )
        return Response(body.model_dump(mode="json"), headers={"Cache-Control": "no-store"})


def _refuse_parameters(request: Request) -> None:
    for name in request.query_params:
        raise BadParameter(name[:100], f"There is no parameter `{name[:100]}` here, nor any other. Leave it out.")


def _limits(rate_limit: RateLimit) -> LimitStanding:
    return LimitStanding(
        per_minute=rate_limit.limit,
        used=rate_limit.limit - rate_limit.remaining,
        remaining=rate_limit.remaining,
        resets_at=datetime.fromtimestamp(rate_limit.reset_at, UTC),
    )


def _key(caller: Principal, label: str | None = None, replaced_by: str | None = None) -> KeyStanding:
    return KeyStanding(
        prefix=caller.key_prefix,
        label=label,
        scopes=sorted(caller.scopes),
        expires_at=caller.expires_at,
        replaced_by=replaced_by,
    )


def _stored(caller: Principal, now: datetime) -> tuple[KeyStanding, UsageHistory] | None:
    """Returns what only the database knows; None while it is away."""
    with _lock:
        known = _cache.get(caller.key_prefix)
    if known is not None:
        return known
    if availability.database.is_away():
        return None
    try:
        with pg_wait.within(availability.READ_SECONDS):
            row = ApiKey.objects.filter(prefix=caller.key_prefix).values_list("label", "replaced_by__prefix").first()
            stored = _key(caller, *(row or ())), _history(caller.consumer_pk, now)
    except DATABASE_AWAY as error:
        availability.database.report(error)
        return None
    with _lock:
        _cache[caller.key_prefix] = stored
    return stored


def _history(consumer: int, now: datetime) -> UsageHistory:
    hour, today, month = usage.hour_of(now), usage.day_of(now), usage.month_of(now)
    first = today - timedelta(days=usage.DAYS_SHOWN - 1)
    by_day = usage.days(min(first, month), now, consumer=consumer)
    by_route = usage.routes(first, now, consumer=consumer)
    days = [first.date() + timedelta(days=number) for number in range(usage.DAYS_SHOWN)]
    return UsageHistory(
        as_of=now,
        this_hour=UsageSums.of(usage.total(hour, now, consumer=consumer)),
        today=UsageSums.of(by_day.get(today.date(), usage.NOTHING)),
        this_month=UsageSums.of(usage.added([sums for day, sums in by_day.items() if day >= month.date()])),
        by_day=[UsageOfDay.of(by_day.get(day, usage.NOTHING), day=day) for day in days],
        by_route=[UsageOfRoute.of(sums, route=route) for route, sums in by_route.items()],
    )
