"""Query parameters of match endpoints. A value that cannot be used is a 400 that names its parameter."""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from scraping.documents.filters import MatchFilter
from scraping.documents.queries import MAX_ID
from scraping.models import MatchLifecycle, SnapshotType
from scraping.payloads import Sport, Status
from victoryline.lib.http.problems import BadParameter
from victoryline.lib.http.strict_serializer import StrictSerializer

MAX_AGE_SECONDS = 86_400
PAGE, MAX_PAGE = 50, 100
MAX_SEQUENCE = 2**31 - 1  # what the column holds
STATUSES = tuple(each.value for each in Status)
ANY_SPELLING = "Accents and capitals don't matter."
INCLUDES = ("provenance", "provisional")
# A change has the time at which its writing began, and shows a moment later. A request for changes since the last
# answer must include those that were being written then.
WRITE_TIME = timedelta(seconds=5)


def _pattern(choices: tuple[str, ...]) -> dict[str, Any]:
    one = f"({'|'.join(choices)})"
    return {"type": "string", "pattern": f"^{one}(,{one})*$"}


class _Values(serializers.CharField):
    """One value or several, separated by commas; in one order, so that equal requests share a cache entry."""

    allowed: tuple[str, ...] = ()

    def to_internal_value(self, data: Any) -> str:
        given = set(super().to_internal_value(data).split(","))
        if given - set(self.allowed):
            raise serializers.ValidationError(f"Use one or more of: {', '.join(self.allowed)}; separated by commas.")
        return ",".join(each for each in self.allowed if each in given)


@extend_schema_field(_pattern(STATUSES))
class Statuses(_Values):
    allowed = STATUSES


@extend_schema_field(_pattern(INCLUDES))
class Includes(_Values):
    allowed = INCLUDES


class MaxAgeParams(serializers.Serializer[None]):
    max_age = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_AGE_SECONDS,
        help_text="The oldest data you accept, in seconds. Older: 503 with Retry-After.",
    )


class MatchParams(MaxAgeParams):
    include = Includes(
        required=False,
        max_length=60,
        help_text="provenance: with each field's source, its confidence and age, and what other sources say instead. "
        "provisional: with a score that went down and is not believed yet. Both: separated by a comma.",
    )
    as_of = serializers.DateTimeField(
        required=False, help_text="The match as we knew it at this time (ISO 8601), as long as we keep that."
    )
    sequence = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_SEQUENCE,
        help_text="The match as it was when it had this number.",
    )


class ListParams(MaxAgeParams):
    status = Statuses(required=False, help_text="upcoming, live, completed, abandoned; several separated by commas.")
    sport = serializers.ChoiceField(required=False, choices=[each.value for each in Sport])
    source = serializers.SlugField(  # type: ignore[assignment]  # the metaclass takes it away before it could hide anything
        required=False, max_length=40, help_text="The key of a source, such as crex."
    )
    lifecycle = serializers.ChoiceField(
        required=False, choices=MatchLifecycle.values, help_text="Archived matches are listed only when asked for."
    )
    series = serializers.CharField(
        required=False, max_length=120, help_text=f"A part of the name of its series. {ANY_SPELLING}"
    )
    team = serializers.CharField(required=False, max_length=120, help_text=f"A part of a team's name. {ANY_SPELLING}")
    date = serializers.DateField(required=False, help_text="Only matches that start on this day (UTC).")
    start_from = serializers.DateTimeField(required=False, help_text="Only matches that start then or later.")
    start_to = serializers.DateTimeField(required=False, help_text="Only matches that start before then.")
    updated_since = serializers.DateTimeField(
        required=False, help_text="Only matches that changed at or after this, or in the 5 seconds before."
    )
    cursor = serializers.CharField(required=False, max_length=64, help_text="From `next` of the page before.")
    limit = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=MAX_PAGE)


class EventParams(MaxAgeParams):
    since = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=MAX_ID, help_text="Rows after this id; 0: from the start."
    )
    since_sequence = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_SEQUENCE,
        help_text="Only rows that were written when the match had a higher number than this.",
    )
    limit = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=MAX_PAGE)


class DeltaParams(MaxAgeParams):
    since = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_SEQUENCE,
        help_text="The `sequence` of the match as you have it; 0: you have nothing.",
    )
    limit = serializers.IntegerField(
        required=False, default=MAX_PAGE, min_value=1, max_value=MAX_PAGE, help_text="Of rows in `events`."
    )


class SnapshotParams(MaxAgeParams):
    before = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_SEQUENCE, help_text="Only snapshots with a lower number."
    )
    limit = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=MAX_PAGE)


class LineupParams(MaxAgeParams):
    snapshot_type = serializers.ChoiceField(
        required=False,
        choices=SnapshotType.values,
        help_text="pre_match: only what was read before the start. post_match: only what was read after the end.",
    )


class ConflictParams(MaxAgeParams):
    state = serializers.ChoiceField(
        required=False,
        default="open",
        choices=["open", "all"],
        help_text="open: what they disagree about now. all: what they have agreed about since as well.",
    )


class PauseRequest(StrictSerializer):
    minutes = serializers.IntegerField(required=False, default=5, min_value=1, max_value=1440)
    reason = serializers.CharField(required=False, default="asked for over the API", max_length=150)


def match_filter(checked: dict[str, Any]) -> MatchFilter:
    start_from, start_to = checked.get("start_from"), checked.get("start_to")
    if day := checked.get("date"):
        if start_from or start_to:
            raise BadParameter(
                "date", "`date` is a day from its start to its end: leave out `start_from` and `start_to`."
            )
        start_from, start_to = _whole_day(day)
    return MatchFilter(
        series=checked.get("series", ""),
        start_from=start_from,
        start_to=start_to,
        status=checked.get("status", ""),
        sport=checked.get("sport", ""),
        source=checked.get("source", ""),
        lifecycle=checked.get("lifecycle", ""),
        team=checked.get("team", ""),
        updated_since=_before_writing(checked.get("updated_since")),
    )


def _before_writing(moment: datetime | None) -> datetime | None:
    try:
        return None if moment is None else moment - WRITE_TIME
    except OverflowError:
        return moment


def _whole_day(day: date) -> tuple[datetime, datetime]:
    start = datetime.combine(day, time.min, UTC)
    try:
        return start, start + timedelta(days=1)
    except OverflowError:
        return start, datetime.max.replace(tzinfo=UTC)


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
