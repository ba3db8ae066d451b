"""Admin of fill rates: a heat map of fields by hour per source, above the table of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from scraping.configuration import policies
from scraping.models import FieldFill, Source
from scraping.policies.drift import DriftPolicy, Fill, points_fallen
from scraping.stats import fill_rates
from scraping.stats.fill_rates import ABANDONED, BREAK, COMPLETED, INTEGRITY, PLAY, UPCOMING, USUAL_WAY
from victoryline.lib.admin import HistoryAdmin

HOURS_DRAWN = 24
STAGES = (PLAY, BREAK, UPCOMING, COMPLETED, ABANDONED)
FIELD_LABELS = {INTEGRITY: "integrity (all expected fields)", USUAL_WAY: "primary selectors (no fallback)"}


@dataclass(frozen=True)
class Cell:
    percent: float | None  # None: no readings
    tooltip: str


@dataclass(frozen=True)
class Row:
    field: str
    cells: list[Cell]
    usual: Cell
    present: Cell
    has_fallen: bool


@dataclass(frozen=True)
class Stage:
    """The readings of one source of matches in one stage: `cricket, play`."""

    name: str
    rows: list[Row]


@dataclass(frozen=True)
class SourceMap:
    name: str
    hours: list[datetime]
    stages: list[Stage]


def maps(now: datetime) -> list[SourceMap]:
    policy = policies.current().drift
    hours = [
        now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=age) for age in reversed(range(HOURS_DRAWN))
    ]
    by_hour = fill_rates.by_hour(since=hours[0])
    usual, present = fill_rates.usual_and_present(policy, now=now)
    schemas: dict[int, dict[str, list[str]]] = {}
    for source_id, schema, field in sorted(by_hour):
        schemas.setdefault(source_id, {}).setdefault(schema, []).append(field)
    sources = Source.objects.filter(pk__in=schemas).defer("metadata")

    def row(source_id: int, schema: str, field: str) -> Row:
        key = source_id, schema, field
        now_and_then = {"usual": usual.get(key, Fill()), "present": present.get(key, Fill())}
        return _row(field, hours, by_hour[key], policy=policy, **now_and_then)

    return [
        SourceMap(
            source.name,
            hours,
            [
                Stage(_stage_name(schema), [row(source.pk, schema, field) for field in _in_order(fields)])
                for schema, fields in sorted(schemas[source.pk].items(), key=_stage_rank)
            ],
        )
        for source in sources
    ]


def _stage_rank(item: tuple[str, list[str]]) -> tuple[str, int]:
    sport, _, stage = item[0].split("/")
    return sport, STAGES.index(stage) if stage in STAGES else len(STAGES)


def _stage_name(schema: str) -> str:
    sport, version, stage = schema.split("/")
    return f"{sport}, {stage} ({version})"


def _in_order(fields: list[str]) -> list[str]:
    """Sorts summary rows first, then fields by name."""
    return sorted(fields, key=lambda field: (field not in FIELD_LABELS, field))


def _row(
    field: str,
    hours: list[datetime],
    found: Mapping[datetime, Fill],
    *,
    usual: Fill,
    present: Fill,
    policy: DriftPolicy,
) -> Row:
    return Row(
        FIELD_LABELS.get(field, field),
        [_cell(found.get(hour, Fill()), f"{hour:%d %b %H:00} UTC") for hour in hours],
        _cell(usual, f"the {policy.baseline_hours} hours before"),
        _cell(present, f"the last {policy.window_minutes} minutes"),
        points_fallen(usual, present, policy) is not None,
    )


def _cell(fill: Fill, when: str) -> Cell:
    if not fill.seen:
        return Cell(None, f"{when}: no readings")
    return Cell(fill.percent, f"{when}: {fill.percent:.0f} % of {fill.seen:,} readings")


@admin.register(FieldFill)
class FieldFillAdmin(HistoryAdmin):
    list_display = ("starts_at", "source", "payload_schema", "field", "rate", "seen", "filled")
    list_filter = ("source", "payload_schema", "field")
    list_select_related = ("source",)
    search_fields = ("source__key", "source__name", "field", "payload_schema")
    ordering = ("-starts_at", "source", "payload_schema", "field")
    list_before_template = "admin/scraping/fills.html"
    readonly_fields = ("rate",)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "fill_maps": maps(timezone.now())}
        page: HttpResponse = super().changelist_view(request, context)
        return page

    @admin.display(description="fill rate")
    def rate(self, row: FieldFill) -> str:
        return f"{Fill(row.seen, row.filled).percent:.0f} %"
