"""Query parameters of the endpoints. A value that cannot be used is a 400 that names its parameter."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from scraping.documents.filters import MatchFilter
from scraping.documents.queries import MAX_ID
from scraping.models import JobKind, MatchLifecycle, SnapshotType
from scraping.payloads import Sport, Status
from victoryline.lib.http.problems import BadParameter
from victoryline.lib.http.strict_serializer import StrictSerializer

MAX_AGE_SECONDS = 86_400
PAGE, MAX_PAGE = 50, 100
MAX_SEQUENCE = 2**31 - 1  # what the column holds
ANY_SPELLING = "Accents and capitals don't matter."
# A change has the time at which its writing began, and shows a moment later. A request for changes since the last
# answer must include those that were being written then.
WRITE_TIME = timedelta(seconds=5)


def number(low: int, high: int, help_text: str | None = None, **more: Any) -> serializers.IntegerField:
    return serializers.IntegerField(required=False, min_value=low, max_value=high, help_text=help_text, **more)


def _choice(choices: Iterable[str], help_text: str | None = None, **more: Any) -> serializers.ChoiceField:
    return serializers.ChoiceField(required=False, choices=list(choices), help_text=help_text, **more)


def _time(help_text: str) -> serializers.DateTimeField:
    return serializers.DateTimeField(required=False, help_text=help_text)


def _text(length: int, help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, max_length=length, help_text=help_text)


def source_key(help_text: str) -> Any:
    return serializers.SlugField(required=False, max_length=40, help_text=help_text)


def _values_field(choices: tuple[str, ...], help_text: str, **more: Any) -> serializers.CharField:
    """One value or several, separated by commas; in one order, so that equal requests share a cache entry."""
    one = f"({'|'.join(choices)})"

    @extend_schema_field({"type": "string", "pattern": f"^{one}(,{one})*$"})
    class Values(serializers.CharField):
        def to_internal_value(self, data: Any) -> str:
            given = set(super().to_internal_value(data).split(","))
            if given - set(choices):
                raise serializers.ValidationError(f"Use one or more of: {', '.join(choices)}; separated by commas.")
            return ",".join(each for each in choices if each in given)

    return Values(required=False, help_text=help_text, **more)


class MaxAgeParams(serializers.Serializer[None]):
    max_age = number(0, MAX_AGE_SECONDS, "The oldest data you accept, in seconds. Older: 503 with Retry-After.")


class MatchParams(MaxAgeParams):
    include = _values_field(
        ("provenance", "provisional"),
        "provenance: with each field's source, its confidence and age, and what other sources say instead. "
        "provisional: with a score that went down and is not believed yet. Both: separated by a comma.",
        max_length=60,
    )
    as_of = _time("The match as we knew it at this time (ISO 8601), as long as we keep that.")
    sequence = number(1, MAX_SEQUENCE, "The match as it was when it had this number.")


class ListParams(MaxAgeParams):
    status = _values_field(
        tuple(each.value for each in Status), "upcoming, live, completed, abandoned; several separated by commas."
    )
    sport = _choice(each.value for each in Sport)
    source = source_key("The key of a source, such as crex.")
    lifecycle = _choice(MatchLifecycle.values, "Archived matches are listed only when asked for.")
    series = _text(120, f"A part of the name of its series. {ANY_SPELLING}")
    team = _text(120, f"A part of a team's name. {ANY_SPELLING}")
    date = serializers.DateField(required=False, help_text="Only matches that start on this day (UTC).")
    start_from = _time("Only matches that start then or later.")
    start_to = _time("Only matches that start before then.")
    updated_since = _time("Only matches that changed at or after this, or in the 5 seconds before.")
    cursor = _text(64, "From `next` of the page before.")
    limit = number(1, MAX_PAGE, default=PAGE)


class EventParams(MaxAgeParams):
    since = number(0, MAX_ID, "Rows after this id; 0: from the start.", default=0)
    since_sequence = number(
        0, MAX_SEQUENCE, "Only rows that were written when the match had a higher number than this.", default=0
    )
    limit = number(1, MAX_PAGE, default=PAGE)


class DeltaParams(MaxAgeParams):
    since = number(0, MAX_SEQUENCE, "The `sequence` of the match as you have it; 0: you have nothing.", default=0)
    limit = number(1, MAX_PAGE, "Of rows in `events`.", default=MAX_PAGE)


class SnapshotParams(MaxAgeParams):
    before = number(1, MAX_SEQUENCE, "Only snapshots with a lower number.")
    limit = number(1, MAX_PAGE, default=PAGE)


class LineupParams(MaxAgeParams):
    snapshot_type = _choice(
        SnapshotType.values,
        "pre_match: only what was read before the start. post_match: only what was read after the end.",
    )


class ConflictParams(MaxAgeParams):
    state = _choice(
        ("open", "all"),
        "open: what they disagree about now. all: what they have agreed about since as well.",
        default="open",
    )


class JobListParams(serializers.Serializer[None]):
    kind = _choice((JobKind.ROUND.value, JobKind.URLS.value))
    source = source_key("The key of a source.")
    # Not a BooleanField: that takes a query without it for false.
    open = _choice(("true", "false"), "true: jobs that have not ended; false: those that have.")
    cursor = _text(64, "From `next` of the page before.")
    limit = number(1, MAX_PAGE, default=20)


class PauseRequest(StrictSerializer):
    minutes = number(1, 1440, default=5)
    reason = serializers.CharField(required=False, default="asked for over the API", max_length=150)


def match_filter(checked: dict[str, Any]) -> MatchFilter:
    start_from, start_to = checked.get("start_from"), checked.get("start_to")
    if day := checked.get("date"):
        if start_from or start_to:
            raise BadParameter(
                "date", "`date` is a day from its start to its end: leave out `start_from` and `start_to`."
            )
        start_from = datetime.combine(day, time.min, UTC)
        start_to = _moved(start_from, timedelta(days=1))
    since = checked.get("updated_since")
    named = ("series", "status", "sport", "source", "lifecycle", "team")
    return MatchFilter(
        start_from=start_from,
        start_to=start_to,
        updated_since=None if since is None else _moved(since, -WRITE_TIME),
        **{name: checked.get(name, "") for name in named},
    )


def _moved(moment: datetime, by: timedelta) -> datetime:
    """The calendar has a first and a last day."""
    try:
        return moment + by
    except OverflowError:
        return moment if by < timedelta(0) else datetime.max.replace(tzinfo=UTC)


def make_cursor(last_id: int, wanted: MatchFilter | None = None) -> str:
    """Returns an opaque cursor. It contains a hash of the filters: with others it would skip matches silently."""
    return base64.urlsafe_b64encode(f"id:{last_id}:{_mark(wanted)}".encode()).decode().rstrip("=")


def read_cursor(text: str | None, wanted: MatchFilter | None = None) -> int | None:
    """Returns the id below which the next page begins."""
    if text is None:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        kind, number, mark = base64.b64decode(padded.encode(), altchars=b"-_", validate=True).decode().split(":")
    except (binascii.Error, ValueError):
        kind = number = mark = ""
    if kind != "id" or not (number.isascii() and number.isdigit() and 0 < int(number) <= MAX_ID):
        raise BadParameter("cursor", "`cursor` is not one of ours: take it from `next` of the page before.")
    if mark != _mark(wanted):
        raise BadParameter(
            "cursor",
            "`cursor` belongs to a list with other filters. Use the address in `next` as it is, or begin without it.",
        )
    return int(number)


def _mark(wanted: MatchFilter | None) -> str:
    return hashlib.sha256(repr(wanted).encode("utf-8", "backslashreplace")).hexdigest()[:8]
