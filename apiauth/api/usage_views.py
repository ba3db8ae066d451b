"""What the caller has used and has left. Asking costs no quota."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apiauth import usage
from apiauth.api.usage_documents import EXAMPLE, UsageAnswer
from apiauth.models import ApiKey
from apiauth.principals import Principal
from apiauth.usage import Sums
from victoryline.lib import pg_wait, presence
from victoryline.lib.http import RateLimit
from victoryline.lib.problem_docs import problem_responses
from victoryline.lib.problems import BadParameter
from victoryline.lib.store import STORE_AWAY
from victoryline.lib.times import as_utc_iso
from victoryline.lib.views import ApiView

MEMORY_SECONDS = 1.0
MEMORY_ENTRIES = 1_000
NOTE = "Counts are up to two seconds late; this request itself costs nothing."
AWAY_NOTE = "Our database can't be reached at the moment, so what you used before is not known. Your limits are."

# By the key's prefix: when it was looked up, and what was found. One consumer who asks all day costs a query a second.
_memory: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()


class Usage(ApiView):
    required_scope = ""  # whoever has a limit may know it
    costs_quota = False
    needs_database = False

    @extend_schema(
        operation_id="usage",
        summary="What you have used, and what is left",
        description=(
            "Where you stand in this minute, and how much you asked in this hour, today, this month and the last 30 "
            "days. Costs no quota."
        ),
        tags=["access"],
        responses={200: UsageAnswer, **problem_responses(400, 401, 429)},
        examples=[OpenApiExample("usage", EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: Request) -> Response:
        caller = request.user
        assert isinstance(caller, Principal)  # the permission class has seen to it
        _refuse_parameters(request)
        rate_limit: RateLimit = request.rate_limit  # type: ignore[attr-defined]  # the throttle has put it there
        found = _looked_up(caller, timezone.now())
        body = {
            "consumer": caller.name,
            "tier": caller.tier,
            "limits": _limits(rate_limit),
            "key": _key(caller) | (found["key"] if found else {}),
            "history": found["history"] if found else None,
            "note": NOTE if found else AWAY_NOTE,
        }
        return Response(body, headers={"Cache-Control": "no-store"})


def forget() -> None:
    """For tests."""
    _memory.clear()


def _refuse_parameters(request: Request) -> None:
    """As everywhere: what we don't know is refused, so that nobody believes it was understood."""
    for name in request.query_params:
        raise BadParameter(name[:100], f"There is no parameter `{name[:100]}` here, nor any other. Leave it out.")


def _limits(standing: RateLimit) -> dict[str, object]:
    return {
        "per_minute": standing.limit,
        "used": standing.limit - standing.remaining,
        "remaining": standing.remaining,
        "resets_at": as_utc_iso(datetime.fromtimestamp(standing.reset_at, UTC)),
    }


def _key(caller: Principal) -> dict[str, object]:
    return {
        "prefix": caller.key_prefix,
        "label": None,
        "scopes": sorted(caller.scopes),
        "expires_at": as_utc_iso(caller.expires_at) if caller.expires_at else None,
        "replaced_by": None,
    }


def _looked_up(caller: Principal, now: datetime) -> dict[str, Any] | None:
    """What only the database knows; None while it is away."""
    remembered = _memory.get(caller.key_prefix)
    if remembered and time.monotonic() - remembered[0] < MEMORY_SECONDS:
        return remembered[1]
    if presence.database.is_away():
        return None
    asked_at = time.monotonic()
    try:
        with pg_wait.within(presence.READ_SECONDS):
            found = {"key": _key_row(caller.key_prefix), "history": _history(caller.consumer_pk, now)}
    except STORE_AWAY as error:
        presence.database.report(error)
        return None
    _memory[caller.key_prefix] = asked_at, found
    while len(_memory) > MEMORY_ENTRIES:
        _memory.popitem(last=False)
    return found


def _key_row(prefix: str) -> dict[str, object]:
    found = ApiKey.objects.filter(prefix=prefix).values_list("label", "replaced_by__prefix").first()
    return {"label": found[0], "replaced_by": found[1]} if found else {}


def _history(consumer: int, now: datetime) -> dict[str, object]:
    hour, today, month = usage.hour_of(now), usage.day_of(now), usage.month_of(now)
    first = today - timedelta(days=usage.DAYS_TOLD - 1)
    by_day = usage.days(min(first, month), now, consumer=consumer)
    by_route = usage.routes(first, now, consumer=consumer)
    return {
        "as_of": as_utc_iso(now),
        "this_hour": _sums(usage.total(hour, now, consumer=consumer)),
        "today": _sums(by_day.get(today.date(), usage.NOTHING)),
        "this_month": _sums(usage.added([sums for day, sums in by_day.items() if day >= month.date()])),
        "by_day": [{"day": day.isoformat(), **_sums(by_day.get(day, usage.NOTHING))} for day in _days(first, today)],
        "by_route": [{"route": route, **_sums(sums)} for route, sums in by_route.items()],
    }


def _days(first: datetime, last: datetime) -> Sequence[date]:
    return [first.date() + timedelta(days=number) for number in range((last - first).days + 1)]


def _sums(sums: Sums) -> dict[str, object]:
    return {
        "requests": sums.requests,
        "not_modified": sums.not_modified,
        "throttled": sums.throttled,
        "refused": sums.refused,
        "failed": sums.failed,
        "duration_ms_mean": _rounded(sums.mean_ms),
        "duration_ms_max": sums.duration_ms_most,
        "age_seconds_mean": _rounded(sums.mean_age_seconds),
        "age_seconds_max": _rounded(sums.most_age_seconds),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 1)
