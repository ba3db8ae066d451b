"""What callers may ask for, checked. A value that can't be used is a 400 that names its parameter."""

from __future__ import annotations

import base64
import binascii
from difflib import get_close_matches
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from scraping.models import MatchLifecycle
from scraping.payloads import Sport, Status
from scraping.queries import MAX_ID, MatchFilter
from victoryline.lib.problems import BadParameter

MAX_AGE_SECONDS = 86_400
PAGE, MAX_PAGE = 50, 100


class MaxAgeParams(serializers.Serializer[None]):
    max_age = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_AGE_SECONDS,
        help_text="The oldest data you accept, in seconds. Older: 503 with Retry-After.",
    )


class MatchParams(MaxAgeParams):
    include = serializers.ChoiceField(
        required=False,
        choices=["provenance"],
        help_text="provenance: with each field's source, its confidence and age, and what other sources say instead.",
    )


class ListParams(MaxAgeParams):
    status = serializers.ChoiceField(required=False, choices=[word.value for word in Status])
    sport = serializers.ChoiceField(required=False, choices=[word.value for word in Sport])
    source = serializers.SlugField(  # type: ignore[assignment]  # the metaclass takes it away before it could hide anything
        required=False, max_length=40, help_text="The key of a source, such as crex."
    )
    lifecycle = serializers.ChoiceField(
        required=False, choices=MatchLifecycle.values, help_text="Archived matches are listed only when asked for."
    )
    team = serializers.CharField(required=False, max_length=120, help_text="A part of a team's name.")
    updated_since = serializers.DateTimeField(required=False, help_text="Only matches that changed at or after this.")
    cursor = serializers.CharField(required=False, max_length=64, help_text="From `next` of the page before.")
    limit = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=MAX_PAGE)


class EventParams(MaxAgeParams):
    since = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=MAX_ID, help_text="Rows after this id; 0: from the start."
    )
    limit = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=MAX_PAGE)


class PauseRequest(serializers.Serializer[None]):
    minutes = serializers.IntegerField(required=False, default=5, min_value=1, max_value=1440)
    reason = serializers.CharField(required=False, default="asked for over the API", max_length=150)


def read(kind: type[serializers.Serializer[None]], request: Request) -> dict[str, Any]:
    """The request's parameters, checked; raises BadParameter for the first that can't be used."""
    given = kind(data=request.query_params)
    _refuse_unknown(request, list(given.fields))
    if not given.is_valid():
        name, messages = next(iter(given.errors.items()))
        said = " ".join(str(message) for message in messages)
        field = given.fields.get(name)
        if isinstance(field, serializers.ChoiceField):
            said += f" Use one of: {', '.join(field.choices)}."
        raise BadParameter(str(name), f"`{name}` can't be used: {said}")
    checked: dict[str, Any] = given.validated_data
    return checked


def _refuse_unknown(request: Request, known: list[str]) -> None:
    """A filter that is misspelled must not be answered as if there were none."""
    for name in request.query_params:
        if name not in known:
            near = get_close_matches(name.lower(), known, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise BadParameter(
                name[:100], f"`{name[:100]}` is not a parameter here.{hint} There are: {', '.join(known)}."
            )


def match_filter(checked: dict[str, Any]) -> MatchFilter:
    return MatchFilter(
        status=checked.get("status", ""),
        sport=checked.get("sport", ""),
        source=checked.get("source", ""),
        lifecycle=checked.get("lifecycle", ""),
        team=checked.get("team", ""),
        updated_since=checked.get("updated_since"),
    )


def make_cursor(last_id: int) -> str:
    return base64.urlsafe_b64encode(f"id:{last_id}".encode()).decode().rstrip("=")


def read_cursor(text: str | None) -> int | None:
    """The id that the next page begins below."""
    if text is None:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        kind, _, number = base64.b64decode(padded.encode(), altchars=b"-_", validate=True).decode().partition(":")
        if kind == "id" and number.isascii() and number.isdigit() and 0 < int(number) <= MAX_ID:
            return int(number)
    except (binascii.Error, ValueError):
        pass
    raise BadParameter("cursor", "`cursor` is not one of ours: take it from `next` of the page before.")
