"""Parsing helpers that all adapters share.

Getters for JSON of unknown quality: each returns a value of the expected type or nothing, and never raises.
Strict response schemas: a part that does not match is left out and noted (broken_parts), or is a SchemaBreak that
names its path where the reading is worth nothing without it; unknown fields are ignored; an unknown *value* in a field
that we rely on is counted with `note_unrecognized`.
Bot challenges and errors that arrive with status 200.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime
from functools import lru_cache, wraps
from html import unescape
from typing import Any, TypeVar, cast
from urllib.parse import urljoin

import orjson
from pydantic import AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from scraping.errors import (
    Challenged,
    Drift,
    LayoutChanged,
    PayloadRejected,
    SchemaBreak,
    ScrapingError,
    error_for_status,
)
from scraping.payloads import BrokenPart, DiscoveredMatch, Innings, Parsed, UnrecognizedValue
from scraping.readings import Document, Reading
from scraping.sources import broken_parts, markup
from scraping.sources.broken_parts import NeededPartError

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_TAG = re.compile(r"<[^<>]*>")
_SPACE = re.compile(r"\s+")
_WRAPPERS = ("props", "appPageProps", "pageProps", "initialProps", "data")  # of what a page or response is about
EVIDENCE_CHARACTERS = 20_000
_EARLIEST, _LATEST = 0, 253_402_300_799  # 1970 to 9999, in seconds


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[Mapping[str, Any]]:
    """Returns the objects of a list, without its other items."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def joined(base_url: str, link: str) -> str:
    """Returns the address of a link on a page; empty where it is none, such as `//[`."""
    try:
        return urljoin(base_url, link)
    except ValueError:
        return ""


def text(value: Any, limit: int = 500) -> str:
    """Returns a string or number as trimmed text, without NUL characters, which PostgreSQL refuses."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).replace("\x00", "").strip()[:limit].strip()


def plain(value: Any, limit: int = 500) -> str:
    if not isinstance(value, str):
        return text(value, limit)
    return text(_SPACE.sub(" ", unescape(_TAG.sub(" ", value))), limit)


def is_number(value: str) -> bool:
    """Returns whether a text consists of the digits 0 to 9, and of no other script's digits."""
    return value.isascii() and value.isdigit()


def integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    return None


def moment(value: Any, *, per_second: int = 1) -> datetime | None:
    count = integer(value)
    if count is None or not _EARLIEST < count / per_second < _LATEST:
        return None
    return datetime.fromtimestamp(count / per_second, tz=UTC)


def iso_moment(value: Any) -> datetime | None:
    """Returns the time of an ISO 8601 text, which is UTC where it has no offset."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.strip())
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


LIST_ROW = "list[]"  # the path of a row of a list that could not be read
MAX_UNRECOGNIZED = 40  # of one reading
_unrecognized: ContextVar[list[UnrecognizedValue] | None] = ContextVar("unrecognized", default=None)


class Response(BaseModel):
    """A source's response, or a part of one: the fields that we rely on and nothing else."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


def nested(*path: str, default: Any = None) -> Any:
    """Declares a field of a response that is read from inside another object; `default=...`: required."""
    return Field(default=default, validation_alias=AliasPath(*path))


T = TypeVar("T")
MethodT = TypeVar("MethodT", bound=Callable[..., Any])

_validator: Callable[[Any], TypeAdapter[Any]] = lru_cache(maxsize=None)(TypeAdapter)


def validated(
    kind: type[T], data: Any, *, schema: str, url: str = "", path: str = "", needed: Collection[str] = ()
) -> T:
    """Returns a validated response, or the part of one at `path`, without the parts that cannot be read (broken_parts).

    Raises SchemaBreak that names the invalid fields where a required field of the whole, or one of the fields `needed`,
    is invalid. Example: `sofascore.event.v1: event.status.type (field required)`.
    """
    if data is None and path:
        raise SchemaBreak(f"{schema}: {path} (field required)", url=url, selector=path)
    validate = _validator(kind).validate_python
    try:
        return cast("T", validate(data))
    except ValidationError as first:
        error = first
    data, retyped = broken_parts.with_types(data, error)
    for place, said in retyped:
        note_unrecognized(broken_parts.path_of((path, *place) if path else place), said)
    try:
        return cast("T", validate(data))
    except ValidationError as error:
        try:
            return cast("T", broken_parts.read_without(validate, data, error, needed=needed, path=path))
        except NeededPartError as broken:
            places = [((path, *place) if path else place, said) for place, said in broken.invalid[:5]]
        message = f"{schema}: {'; '.join(f'{path_of(place)} ({said.lower()})' for place, said in places)}"
        paths = ", ".join(path_of(place) for place, _ in places)
        raise SchemaBreak(message, url=url, evidence=str(data)[:2000], selector=paths) from error


def readable(
    kind: type[T], data: Any, *, schema: str, url: str = "", path: str = "", needed: Collection[str] = ()
) -> T | None:
    """Returns a validated part that a reading can do without; None where it cannot be read, which is noted."""
    try:
        return validated(kind, data, schema=schema, url=url, path=path, needed=needed)
    except SchemaBreak as error:
        broken_parts.note(path or schema, str(error).removeprefix(f"{schema}: "))
        return None


def path_of(location: tuple[int | str, ...]) -> str:
    """Returns a location as a path: ("event", "players", 3, "id") is event.players[3].id."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".") or "the whole answer"


def refuse_another(what: str, stated: object, wanted: str, url: str = "") -> None:
    """Raises PayloadRejected where a response states that it is about another match; `what`: "the event is"."""
    if stated is not None and str(stated) != wanted:
        raise PayloadRejected(f"{what} about another match: {str(stated)[:40]} instead of {wanted}", url=url)


def parses(method: MethodT) -> MethodT:
    """Wraps a parse method: adds what was noted meanwhile; impossible values (eleven wickets) raise PayloadRejected."""

    @wraps(method)
    def wrapped(adapter: Any, reading: Reading, *args: Any) -> Any:
        try:
            with noting_unrecognized() as unknown, broken_parts.noting() as broken:
                result = method(adapter, reading, *args)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or error.title
            shown = repr(first.get("input"))[:80]
            raise PayloadRejected(f"{error.title}: {where} is {shown}: {first['msg']}", url=reading.ref.url) from error
        if isinstance(result, Parsed):
            return _with_notes(result, unknown, broken)
        for path, value in [(one.path, one.value) for one in unknown] + [(one.path, one.expected) for one in broken]:
            note_unrecognized(path, value)  # a list of matches has no field for them
        return result

    return cast("MethodT", wrapped)


def _with_notes(parsed: Parsed, unknown: Sequence[UnrecognizedValue], broken: Sequence[BrokenPart]) -> Parsed:
    if not unknown and not broken:
        return parsed
    integrity = parsed.integrity.model_copy(update={"broken_parts": tuple(broken)})
    return parsed.model_copy(update={"unknown": tuple(unknown), "integrity": integrity})


@contextmanager
def noting_unrecognized() -> Iterator[list[UnrecognizedValue]]:
    """Collects what parse methods that return lists have noted meanwhile."""
    unknown: list[UnrecognizedValue] = []
    token = _unrecognized.set(unknown)
    try:
        yield unknown
    finally:
        _unrecognized.reset(token)


def note_unrecognized(path: str, value: object) -> None:
    """Records a value that is not in our tables, once per reading."""
    found = _unrecognized.get()
    unrecognized = UnrecognizedValue(path=path[:120], value=str(value)[:120])
    if found is not None and len(found) < MAX_UNRECOGNIZED and unrecognized not in found:
        found.append(unrecognized)


_CHALLENGE_TITLE = re.compile(
    r"<title[^<>]*>[^<]*(?:just a moment|attention required|access denied|are you (?:a )?(?:human|robot)|"
    r"verify you are human|security check|captcha|request blocked)",
    re.IGNORECASE,
)
# Whole class names and ids only: ordinary pages carry the badge of a captcha service ("grecaptcha-badge") too.
_CHALLENGE_FORM = re.compile(
    r"""(?:id|class|name|action)=["'](?:[^"']*[\s/])?"""
    r"""(?:challenge-form|challenge-stage|cf-turnstile|g-recaptcha|h-captcha|captcha[\w-]*)(?=[\s"'/?])""",
    re.IGNORECASE,
)


def is_challenge(html: str) -> bool:
    return bool(_CHALLENGE_TITLE.search(html) or _CHALLENGE_FORM.search(html))


def raise_if_challenge(html: str, url: str) -> None:
    if is_challenge(html):
        raise Challenged("the page is a bot challenge", url=url, evidence=html[:2000])


def asks_for_proof(document: Document) -> bool:
    """Returns whether a refusal is a bot challenge: a page, or an error in JSON that names it."""
    try:
        json_body(document)
    except ScrapingError as error:
        return isinstance(error, Challenged)
    return False


def layout_changed(message: str, html: str, url: str) -> LayoutChanged:
    """Returns the error for a page without the expected data; raises Challenged if the page is a bot challenge."""
    raise_if_challenge(html, url)
    return LayoutChanged(message, url=url, evidence=html[:EVIDENCE_CHARACTERS])


def next_data(html: str) -> Any:
    found = markup.content_of(html, "script", "__NEXT_DATA__")
    try:
        return orjson.loads(found) if found is not None else None
    except orjson.JSONDecodeError:
        return None


def unwrapped(data: Any, *names: str) -> Mapping[str, Any]:
    """Returns the outermost object that has an object by one of these names, below any number of wrappers."""
    level = [mapping(data)]
    while level:
        found = next((one for one in level if any(mapping(one.get(name)) for name in names)), None)
        if found is not None:
            return found
        level = [inner for one in level for name in _WRAPPERS if (inner := mapping(one.get(name)))]
    return {}


def raise_if_error_body(data: Any, url: str) -> None:
    """Raises the error that a body like {"error": {"code": 403, "reason": "challenge"}} reports."""
    if not isinstance(data, dict) or not isinstance(data.get("error"), dict):
        return
    error: Mapping[str, Any] = data["error"]
    code = integer(error.get("code")) or 0
    reason = text(error.get("reason") or error.get("message"), 100)
    is_refusal = any(name in reason.lower() for name in ("challenge", "captcha"))
    kind = Challenged if is_refusal else error_for_status(code)
    if kind is not None:
        raise kind(f"the body is an error: {code} {reason}".strip(), http_status=code or None, url=url)


def json_body(document: Document) -> Any:
    """Returns the JSON of a response; raises for a bot challenge or an error that it reports."""
    try:
        data = document.json()
    except SchemaBreak:
        raise_if_challenge(document.text(), document.url)
        raise
    raise_if_error_body(data, document.url)
    return data


def json_object(document: Document) -> Mapping[str, Any]:
    """Returns the JSON object of a response, empty where it is no object; raises as `json_body` does."""
    return mapping(json_body(document))


def unique_matches(
    rows: Iterable[T], match_of: Callable[[T], DiscoveredMatch | None], *, is_strict: bool = False
) -> list[DiscoveredMatch]:
    """Returns each match of a list once; `match_of` returns None for a row that is no match of this source.

    A row that cannot be read, for whatever reason, costs that row only, and is noted. Where no row can be read, or with
    `is_strict` already the first time, the error is raised.
    """
    found: dict[str, DiscoveredMatch] = {}
    broken: Exception | None = None
    for row in rows:
        try:
            match = match_of(row)
        except Exception as failure:  # also one of ours: the other matches of the list must be found
            if is_strict:
                raise
            note_unrecognized(LIST_ROW, failure if isinstance(failure, Drift) else repr(failure))
            broken = failure
            continue
        if match is not None:
            found.setdefault(match.source_event_id, match)
    if broken is not None and not found:
        raise broken
    return list(found.values())


def starting_on(day: date, matches: Iterable[DiscoveredMatch]) -> list[DiscoveredMatch]:
    return [match for match in matches if match.start_time is not None and match.start_time.date() == day]


def has_play(innings: Iterable[Innings]) -> bool:
    return any(one.runs or one.wickets or one.overs != "0.0" for one in innings)
