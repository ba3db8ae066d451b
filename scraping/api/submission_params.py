"""What is sent in, checked. What can't be used is a 400 that names it by its path; nothing of it is taken then."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
import pydantic
from pydantic_core import ErrorDetails
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from scraping.api.submission_described import KEY_LENGTH
from scraping.errors import PayloadRejected
from scraping.jobs import submission_schema
from scraping.jobs.submission_schema import SentMatch, SentMatches
from scraping.matches.validate import check
from victoryline.lib.http.problems import BadParameter

MOST_NAMED = 50
Path = Sequence[str | int]


@dataclass(frozen=True)
class Asked:
    matches: Sequence[SentMatch]
    is_batch: bool
    key: str
    body_hash: str


def read(request: Request, *, now: datetime) -> Asked:
    body = request.data
    if not isinstance(body, dict):
        raise ValidationError({"body": ["It must be an object: a match, or several under `matches`."]})
    raw = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    if b"\\u0000" in raw:
        _refuse([(path, "It holds the character NUL.") for path in submission_schema.unstorable(body)])
    is_batch = "matches" in body
    matches = _parsed(raw, is_batch=is_batch)
    places: list[Path] = [("matches", number) for number in range(len(matches))] if is_batch else [()]
    _refuse([found for place, match in zip(places, matches, strict=True) for found in _unfit(place, match, now)])
    body_hash = hashlib.sha256(raw).hexdigest()
    return Asked(matches, is_batch, _key(request) or f"sha256:{body_hash}", body_hash)


def _parsed(raw: bytes, *, is_batch: bool) -> Sequence[SentMatch]:
    """Strictly: a number in quotation marks is none."""
    try:
        if is_batch:
            return SentMatches.model_validate_json(raw, strict=True).matches
        return [SentMatch.model_validate_json(raw, strict=True)]
    except pydantic.ValidationError as error:
        _refuse([(one["loc"], _words(one)) for one in error.errors(include_url=False)])
        raise  # there is always something to name


def _words(one: ErrorDetails) -> str:
    """As the checker has them, but where it speaks of its own insides."""
    told = one.get("ctx", {})
    match one["type"]:
        case "extra_forbidden":
            return "There is no such field here."
        case "too_long":
            return f"At most {told['max_length']} are taken at once, and these are {told['actual_length']}."
        case "too_short":
            return f"At least {told['min_length']} is needed."
    return one["msg"]


def _unfit(place: Path, match: SentMatch, now: datetime) -> list[tuple[Path, str]]:
    """What no schema can say."""
    found: list[tuple[Path, str]] = []
    if late := submission_schema.out_of_time(match, now):
        found.append(((*place, "captured_at"), late))
    try:
        check(match.payload(source="", source_event_id="", received_at=now), expected_id="", sport="cricket")
    except PayloadRejected as refusal:
        found.append(((*place, "innings"), f"{refusal}."))
    return found


def _refuse(found: Sequence[tuple[Path, str]]) -> None:
    """By path: `matches.3.teams.team_a.name`. Of very many the first ones."""
    if not found:
        return
    said: defaultdict[str, list[str]] = defaultdict(list)
    for path, message in found[:MOST_NAMED]:
        said[_shown(path)].append(message)
    raise ValidationError(dict(said))


def _shown(path: Path) -> str:
    return ".".join(str(part)[:60] for part in path)[:300] or "body"


def _key(request: Request) -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > KEY_LENGTH or not key.isprintable():
        said = f"`Idempotency-Key` can't be used: it has up to {KEY_LENGTH} printable characters."
        raise BadParameter("Idempotency-Key", said)
    return key
