"""Bodies of the token and usage endpoints: the views render these models, and the OpenAPI schema describes them."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Self

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from rest_framework import serializers

from apiauth.usage import Sums
from victoryline.lib.http.strict_serializer import StrictSerializer
from victoryline.lib.times import as_utc_iso

UtcTime = Annotated[
    AwareDatetime,
    PlainSerializer(as_utc_iso),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


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


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TokenRequest(StrictSerializer):
    api_key = serializers.CharField(required=False, max_length=200, help_text="Or send it as the header X-API-Key.")


class TokenAnswer(Document):
    token: str = Field(description="A JWT. Send it as `Authorization: Bearer <token>`.")
    token_type: str = "Bearer"  # noqa: S105  the name of the scheme
    expires_in: int = Field(ge=0, description="Seconds.")
    expires_at: UtcTime


class LimitStanding(Document):
    per_minute: int = Field(description="Requests that the tier allows in a minute.")
    used: int = Field(description="Of them, in the last minute.")
    remaining: int
    resets_at: UtcTime = Field(description="When the present window ends.")


class KeyStanding(Document):
    prefix: str
    label: str | None = Field(description="What the key is for; null while our database is away.")
    scopes: list[str]
    expires_at: UtcTime | None = Field(description="null: it has no end.")
    replaced_by: str | None = Field(description="The prefix of the key that it was rotated to: time to use that one.")


class UsageSums(Document):
    requests: int = Field(description="All requests, with any outcome.")
    not_modified: int = Field(description="Answered with 304, which costs no quota.")
    throttled: int = Field(description="Answered with 429.")
    refused: int = Field(description="Answered with another 4xx.")
    failed: int = Field(description="Answered with 5xx.")
    duration_ms_mean: float | None = Field(description="How long our answers took.")
    duration_ms_max: int
    age_seconds_mean: float | None = Field(
        description="How old the data was that we served; null: no answer had an age."
    )
    age_seconds_max: float | None

    @classmethod
    def of(cls, sums: Sums, **more: object) -> Self:
        return cls(
            requests=sums.requests,
            not_modified=sums.not_modified,
            throttled=sums.throttled,
            refused=sums.refused,
            failed=sums.failed,
            duration_ms_mean=_rounded(sums.mean_ms),
            duration_ms_max=sums.duration_ms_most,
            age_seconds_mean=_rounded(sums.mean_age_seconds),
            age_seconds_max=_rounded(sums.most_age_seconds),
            **more,
        )


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 1)


class UsageOfDay(UsageSums):
    day: date = Field(description="UTC.")


class UsageOfRoute(UsageSums):
    route: str = Field(description="The address by its name; empty for addresses that don't exist.")


class UsageHistory(Document):
    """From sums by the hour, which are up to two seconds late."""

    as_of: UtcTime
    this_hour: UsageSums
    today: UsageSums
    this_month: UsageSums
    by_day: list[UsageOfDay] = Field(description="The last 30 days, today among them.")
    by_route: list[UsageOfRoute] = Field(description="The same 30 days, the most asked first.")


class UsageAnswer(Document):
    consumer: str
    tier: str
    limits: LimitStanding
    key: KeyStanding
    history: UsageHistory | None = Field(description="null while our database is away.")
    note: str = Field(description="A note about the figures.")


SUMS_EXAMPLE = {
    "requests": 412,
    "not_modified": 301,
    "throttled": 0,
    "refused": 2,
    "failed": 0,
    "duration_ms_mean": 1.4,
    "duration_ms_max": 38,
    "age_seconds_mean": 3.2,
    "age_seconds_max": 11.0,
}
USAGE_EXAMPLE = {
    "consumer": "acme",
    "tier": "standard",
    "limits": {"per_minute": 100, "used": 13, "remaining": 87, "resets_at": "2026-01-01T10:31:00.000Z"},
    "key": {
        "prefix": "0123456789ab",
        "label": "the website",
        "scopes": ["read"],
        "expires_at": "2026-06-30T00:00:00.000Z",
        "replaced_by": None,
    },
    "history": {
        "as_of": "2026-01-01T10:30:45.000Z",
        "this_hour": SUMS_EXAMPLE,
        "today": SUMS_EXAMPLE,
        "this_month": SUMS_EXAMPLE,
        "by_day": [{"day": "2026-01-01", **SUMS_EXAMPLE}],
        "by_route": [{"route": "match", **SUMS_EXAMPLE}],
    },
    "note": "Counts are up to two seconds late; this request itself costs nothing.",
}
