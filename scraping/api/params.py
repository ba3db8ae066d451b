"""Query parameters of the endpoints. A value that cannot be used is a 400 that names its parameter."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from scraping.api.bodies import LIST_FIELDS
from scraping.documents.cached_match import number_in
from scraping.documents.filters import LAST, MatchFilter, Place, Sort
from scraping.documents.queries import MAX_ID
from scraping.models import JobKind, MatchLifecycle, SnapshotType
from scraping.payloads import Sport, Status
from victoryline.lib.http.problems import BadParameter
from victoryline.lib.http.strict_serializer import StrictSerializer

MAX_AGE_SECONDS = 86_400
PAGE, MAX_PAGE = 50, 100
MAX_IDS, MAX_NAME = 100, 140
CURSOR = re.compile(r"id:(?P<id>[0-9]{1,19}):(?P<mark>[0-9a-f]{8}):(?P<value>-?[0-9]{1,19})")
MAX_SEQUENCE = 2**31 - 1  # the limit of the column
ANY_SPELLING = "Accents and case are ignored."
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
    max_age = number(
        0, MAX_AGE_SECONDS, "The highest accepted age of the data, in seconds. Older data: 503 with Retry-After."
    )


class MatchParams(MaxAgeParams):
    include = _values_field(
        ("provenance", "provisional", "readings"),
        "provenance: with the source, confidence and age of each field, and the differing values of other sources. "
        "provisional: with a lower score that is not confirmed yet. readings: with the latest reading of each source "
        "and its completeness. Several: separated by commas.",
        max_length=60,
    )
    as_of = _time("The state that was served at this time (ISO 8601), if it is still kept.")
    sequence = number(1, MAX_SEQUENCE, "The state with this sequence.")


_ONE_NAME = rf"[!-+\-.-~]{{1,{MAX_NAME}}}"  # ASCII without blank and comma


@extend_schema_field({"type": "string", "pattern": f"^{_ONE_NAME}(,{_ONE_NAME}){{0,{MAX_IDS - 1}}}$"})
class NamesField(serializers.CharField):
    """Ids and keys of matches, in one order, so that equal requests share a cache entry."""

    def to_internal_value(self, data: Any) -> tuple[str, ...]:  # type: ignore[override]  # no text any more
        names = super().to_internal_value(data).split(",")
        if len(names) > MAX_IDS:
            raise serializers.ValidationError(f"At most {MAX_IDS} are taken at once, and these are {len(names)}.")
        if not all(re.fullmatch(_ONE_NAME, name) for name in names):
            raise serializers.ValidationError("Use ids, or keys of matches, such as 12,crex_13KM.")
        numbers = {name: number_in(name) for name in names}
        return tuple(sorted({name if number is None else str(number) for name, number in numbers.items()}))


class FilterParams(MaxAgeParams):
    ids = NamesField(
        required=False, help_text=f"Only these matches: up to {MAX_IDS} ids or keys at sources, separated by commas."
    )
    status = _values_field(
        tuple(each.value for each in Status), "upcoming, live, completed, abandoned; several separated by commas."
    )
    sport = _choice(each.value for each in Sport)
    source = source_key("The key of a source, such as crex.")
    series = _text(120, f"A part of the name of its series. {ANY_SPELLING}")
    team = _text(120, f"A part of a team's name. {ANY_SPELLING}")
    team_id = number(1, MAX_ID, "The id of a team, as /api/v1/teams has it.")
    date = serializers.DateField(required=False, help_text="Only matches that start on this day (UTC).")
    start_from = _time("Only matches that start then or later.")
    start_to = _time("Only matches that start before then.")


class ListParams(FilterParams):
    lifecycle = _choice(MatchLifecycle.values, "Archived matches are listed only with this parameter.")
    updated_since = _time("Only matches that changed at or after this, or in the 5 seconds before.")
    sort = _choice(
        Sort,
        "-id: the newest match first. start_time, -start_time: by the start, the earliest or latest first. -updated: "
        "the match that changed last first.",
        default=Sort.NEWEST.value,
    )
    fields = _values_field(  # type: ignore[assignment]  # declared fields are taken out of the class
        tuple(LIST_FIELDS),
        "Only these fields of each match, also those that only the whole match has; several separated by commas. `id` "
        "and `freshness` are always there.",
        max_length=400,
    )
    cursor = _text(100, "From `next` of the page before.")
    limit = number(1, MAX_PAGE, default=PAGE)


class DeltasParams(FilterParams):
    since = _text(8000, "`next_since` of the answer before, with the same filters. Left out: you have nothing.")
    limit = number(1, MAX_PAGE, "Of matches.", default=MAX_PAGE)


class TeamParams(serializers.Serializer[None]):
    sport = _choice(each.value for each in Sport)
    name = _text(120, f"A part of its name or of an alias. {ANY_SPELLING}")
    ids = NamesField(required=False, help_text=f"Only these teams: up to {MAX_IDS} ids, separated by commas.")
    cursor = _text(100, "From `next` of the page before.")
    limit = number(1, MAX_PAGE, default=PAGE)


class EventParams(MaxAgeParams):
    since = number(0, MAX_ID, "Rows after this id; 0: from the start.", default=0)
    since_sequence = number(
        0, MAX_SEQUENCE, "Only rows that were written at a higher sequence of the match.", default=0
    )
    limit = number(1, MAX_PAGE, default=PAGE)


class DeltaParams(MaxAgeParams):
    since = number(0, MAX_SEQUENCE, "The `sequence` of your copy of the match; 0: no copy.", default=0)
    limit = number(1, MAX_PAGE, "Number of rows in `events`.", default=MAX_PAGE)


class SnapshotParams(MaxAgeParams):
    before = number(1, MAX_SEQUENCE, "Only snapshots with a lower sequence.")
    limit = number(1, MAX_PAGE, default=PAGE)


class LineupParams(MaxAgeParams):
    snapshot_type = _choice(
        SnapshotType.values,
        "pre_match: only readings from before the start. post_match: only readings from after the end.",
    )


class ConflictParams(MaxAgeParams):
    state = _choice(
        ("open", "all"),
        "open: present conflicts. all: ended ones as well.",
        default="open",
    )


class JobListParams(serializers.Serializer[None]):
    kind = _choice((JobKind.ROUND.value, JobKind.URLS.value))
    source = source_key("The key of a source.")
    # Not a BooleanField, which reads a missing parameter as false.
    open = _choice(("true", "false"), "true: jobs that have not ended; false: those that have.")
    cursor = _text(100, "From `next` of the page before.")
    limit = number(1, MAX_PAGE, default=20)


class PauseRequest(StrictSerializer):
    minutes = number(1, 1440, default=5)
    reason = serializers.CharField(required=False, default="requested over the API", max_length=150)


def match_filter(checked: dict[str, Any]) -> MatchFilter:
    start_from, start_to = checked.get("start_from"), checked.get("start_to")
    if day := checked.get("date"):
        if start_from or start_to:
            raise BadParameter("date", "`date` selects a whole day: leave out `start_from` and `start_to`.")
        start_from = datetime.combine(day, time.min, UTC)
        start_to = _moved(start_from, timedelta(days=1))
    since = checked.get("updated_since")
    named = ("series", "status", "sport", "source", "lifecycle", "team")
    return MatchFilter(
        ids=checked.get("ids", ()),
        team_id=checked.get("team_id", 0),
        sort=Sort(checked.get("sort", Sort.NEWEST)),
        start_from=start_from,
        start_to=start_to,
        updated_since=None if since is None else _moved(since, -WRITE_TIME),
        **{name: checked.get(name, "") for name in named},
    )


def _moved(moment: datetime, by: timedelta) -> datetime:
    """Returns the time plus the given duration, limited to the range of datetime."""
    try:
        return moment + by
    except OverflowError:
        return moment if by < timedelta(0) else datetime.max.replace(tzinfo=UTC)


def make_cursor(last: Place, wanted: MatchFilter | None = None) -> str:
    """Returns an opaque cursor. It contains a hash of the filters: with others it would skip matches silently."""
    return base64.urlsafe_b64encode(f"id:{-last[1]}:{filter_mark(wanted)}:{last[0]}".encode()).decode().rstrip("=")


def read_cursor(text: str | None, wanted: MatchFilter | None = None) -> Place | None:
    """Returns the place behind which the next page begins."""
    if text is None:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        text = base64.b64decode(padded.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    found = CURSOR.fullmatch(text)
    if found is None or not 0 < int(found["id"]) <= MAX_ID or abs(int(found["value"])) > LAST:
        raise BadParameter("cursor", "`cursor` is invalid: take it from `next` of the previous page.")
    if found["mark"] != filter_mark(wanted):
        raise BadParameter(
            "cursor",
            "`cursor` belongs to a list with other filters. Use the address in `next` unchanged, or start without a "
            "cursor.",
        )
    return int(found["value"]), -int(found["id"])


def filter_mark(wanted: MatchFilter | None) -> str:
    return hashlib.sha256(repr(wanted).encode("utf-8", "backslashreplace")).hexdigest()[:8]
