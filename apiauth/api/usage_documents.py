"""What a consumer has used, as the API's description shows it."""

from __future__ import annotations

from datetime import date

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LimitStanding(Document):
    per_minute: int = Field(description="Requests that the tier allows in a minute.")
    used: int = Field(description="Of them, in the last minute.")
    remaining: int
    resets_at: AwareDatetime = Field(description="When the present window ends.")


class KeyStanding(Document):
    prefix: str
    label: str | None = Field(description="What the key is for; null while our database is away.")
    scopes: list[str]
    expires_at: AwareDatetime | None = Field(description="null: it has no end.")
    replaced_by: str | None = Field(description="The prefix of the key that it was rotated to: time to use that one.")


class UsageSums(Document):
    requests: int = Field(description="All of them, whatever came of them.")
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


class UsageOfDay(UsageSums):
    day: date = Field(description="UTC.")


class UsageOfRoute(UsageSums):
    route: str = Field(description="The address by its name; empty for addresses that don't exist.")


class UsageHistory(Document):
    """From sums by the hour, which are up to two seconds late."""

    as_of: AwareDatetime
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
    note: str = Field(description="What to know about the figures.")


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
EXAMPLE = {
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
