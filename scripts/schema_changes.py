"""Compares two schemas of the API (OpenAPI) and finds breaking changes.

Breaking: a request that was valid is refused, or a field of a response that clients read is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Node = dict[str, Any]
METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
SEVERAL_OF = re.compile(r"\^\(([\w|-]+)\)\(,\(\1\)\)\*\$")  # the pattern of a parameter with several values


@dataclass(frozen=True, order=True)
class Change:
    where: str
    text: str
    is_breaking: bool = False

    def __str__(self) -> str:
        return f"{'BREAKING' if self.is_breaking else 'changed':<8} {self.where}: {self.text}"


def changes(old: Node, new: Node) -> list[Change]:
    """Returns the changes, breaking ones first; empty only if the two are equal."""
    found = set(_operations(_Pair(old, new)))
    if not found and old != new:
        found = {Change(place, "its text, examples or headers") for place in _differences(old, new)}
    return sorted(found, key=lambda each: (not each.is_breaking, each))


@dataclass(frozen=True)
class _Pair:
    old: Node
    new: Node

    def resolved(self, old: Any, new: Any) -> tuple[Node, Node]:
        return _resolve(self.old, old), _resolve(self.new, new)


def _resolve(document: Node, node: Any) -> Node:
    while isinstance(node, dict) and "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node if isinstance(node, dict) else {}


def _operations(pair: _Pair) -> Iterator[Change]:
    before, after = _by_name(pair.old), _by_name(pair.new)
    for name in before.keys() - after.keys():
        yield Change(name, "the operation is gone", is_breaking=True)
    for name in after.keys() - before.keys():
        yield Change(name, "a new operation")
    for name in before.keys() & after.keys():
        yield from _operation(pair, name, before[name], after[name])


def _by_name(document: Node) -> dict[str, Node]:
    return {
        f"{method.upper()} {path}": operation
        for path, ways in document.get("paths", {}).items()
        for method, operation in ways.items()
        if method in METHODS
    }


def _operation(pair: _Pair, name: str, old: Node, new: Node) -> Iterator[Change]:
    if old.get("operationId") != new.get("operationId"):
        yield Change(name, f"operationId was {old.get('operationId')}, is {new.get('operationId')}", is_breaking=True)
    if old.get("security") != new.get("security"):
        text = f"security was {old.get('security')}, is {new.get('security')}"
        yield Change(name, text, is_breaking=not _keeps_access(old.get("security"), new.get("security")))
    yield from _parameters(pair, name, old, new)
    yield from _body(pair, f"{name} body", old.get("requestBody"), new.get("requestBody"))
    yield from _responses(pair, name, old.get("responses", {}), new.get("responses", {}))


def _keeps_access(old: Any, new: Any) -> bool:
    """Says whether clients keep access: the same scheme, with a subset of the scopes."""
    if not isinstance(old, list) or not isinstance(new, list) or len(old) != len(new):
        return False
    return all(
        was.keys() == now.keys() and all(set(now[name]) <= set(was[name]) for name in now)
        for was, now in zip(old, new, strict=True)
    )


def _parameters(pair: _Pair, name: str, old: Node, new: Node) -> Iterator[Change]:
    before, after = _parameters_of(old), _parameters_of(new)
    for key in before.keys() - after.keys():
        yield Change(f"{name} ?{key[1]}", "the parameter is gone, and is refused now", is_breaking=True)
    for key in after.keys() - before.keys():
        must = bool(after[key].get("required"))
        yield Change(f"{name} ?{key[1]}", f"a new {'required ' if must else ''}parameter", is_breaking=must)
    for key in before.keys() & after.keys():
        place, was, now = f"{name} ?{key[1]}", before[key], after[key]
        if now.get("required") and not was.get("required"):
            yield Change(place, "is required now", is_breaking=True)
        yield from _schema(pair, place, was.get("schema"), now.get("schema"), is_sent=True)


def _parameters_of(operation: Node) -> dict[tuple[str, str], Node]:
    return {(each["in"], each["name"]): each for each in operation.get("parameters", ())}


def _body(pair: _Pair, where: str, old: Node | None, new: Node | None) -> Iterator[Change]:
    if (old is None) != (new is None):
        yield Change(where, "a body is taken now" if old is None else "no body is taken any more", is_breaking=True)
    if old is None or new is None:
        return
    if new.get("required") and not old.get("required"):
        yield Change(where, "is required now", is_breaking=True)
    yield from _contents(pair, where, old, new, is_sent=True)


def _responses(pair: _Pair, name: str, old: Node, new: Node) -> Iterator[Change]:
    for code in old.keys() - new.keys():
        yield Change(f"{name} {code}", "this response is gone", is_breaking=code.startswith("2"))
    for code in new.keys() - old.keys():
        yield Change(f"{name} {code}", "a new response")
    for code in old.keys() & new.keys():
        was, now = pair.resolved(old[code], new[code])
        yield from _contents(pair, f"{name} {code}", was, now, is_sent=False)
        for header in was.get("headers", {}).keys() - now.get("headers", {}).keys():
            yield Change(f"{name} {code}", f"the header {header} is gone", is_breaking=True)
        for header in now.get("headers", {}).keys() - was.get("headers", {}).keys():
            yield Change(f"{name} {code}", f"a new header {header}")


def _contents(pair: _Pair, where: str, old: Node, new: Node, *, is_sent: bool) -> Iterator[Change]:
    before, after = old.get("content", {}), new.get("content", {})
    for kind in before.keys() - after.keys():
        yield Change(where, f"{kind} is gone", is_breaking=True)
    for kind in after.keys() - before.keys():
        yield Change(where, f"{kind} is new")
    for kind in before.keys() & after.keys():
        yield from _schema(pair, where, before[kind].get("schema"), after[kind].get("schema"), is_sent=is_sent)


def _schema(
    pair: _Pair, where: str, old: Any, new: Any, *, is_sent: bool, seen: tuple[str, ...] = ()
) -> Iterator[Change]:
    """Compares two schemas. `is_sent`: part of a request; otherwise part of a response."""
    key = f"{old}|{new}" if isinstance(old, dict) and "$ref" in old else ""
    if key and key in seen:
        return
    seen = (*seen, key)
    was, now = pair.resolved(old, new)
    yield from _values(where, was, now, is_sent=is_sent)
    yield from _fields(pair, where, was, now, is_sent=is_sent, seen=seen)
    if "items" in was and "items" in now:
        yield from _schema(pair, f"{where}[]", was["items"], now["items"], is_sent=is_sent, seen=seen)
    for keyword in ("anyOf", "oneOf", "allOf"):
        if len(was.get(keyword, ())) != len(now.get(keyword, ())):
            yield Change(where, f"{keyword} has other members", is_breaking=len(was.get(keyword, ())) > 0)
        for one, other in zip(was.get(keyword, ()), now.get(keyword, ()), strict=False):
            yield from _schema(pair, where, one, other, is_sent=is_sent, seen=seen)


def _values(where: str, was: Node, now: Node, *, is_sent: bool) -> Iterator[Change]:
    was, now = _with_several(was, now)
    for keyword in ("type", "format", "pattern"):
        if was.get(keyword) != now.get(keyword):
            is_breaking = keyword == "type" or (is_sent and keyword in now)
            yield Change(where, f"{keyword} was {was.get(keyword)}, is {now.get(keyword)}", is_breaking=is_breaking)
    gone, more = _enum_values(was) - _enum_values(now), _enum_values(now) - _enum_values(was)
    if gone:
        yield Change(where, f"no longer among its values: {', '.join(sorted(gone))}", is_breaking=is_sent)
    if more:
        yield Change(
            where, f"new among its values: {', '.join(sorted(more))}", is_breaking=is_sent and not _enum_values(was)
        )
    if is_sent:
        yield from _bounds(where, was, now)


def _with_several(was: Node, now: Node) -> tuple[Node, Node]:
    """Returns both with the names of their patterns as values, if both are patterns of several names."""
    before, after = SEVERAL_OF.fullmatch(was.get("pattern", "")), SEVERAL_OF.fullmatch(now.get("pattern", ""))
    if before is None or after is None:
        return was, now
    return (
        {**was, "pattern": None, "enum": before[1].split("|")},
        {**now, "pattern": None, "enum": after[1].split("|")},
    )


def _enum_values(schema: Node) -> set[str]:
    return {str(each) for each in schema.get("enum", ())}


def _bounds(where: str, was: Node, now: Node) -> Iterator[Change]:
    for keyword, sign in (("minimum", 1), ("minLength", 1), ("minItems", 1), ("maximum", -1), ("maxLength", -1)):
        before, after = was.get(keyword), now.get(keyword)
        if before != after:
            is_tighter = after is not None and (before is None or sign * after > sign * before)
            yield Change(where, f"{keyword} was {before}, is {after}", is_breaking=is_tighter)


def _fields(pair: _Pair, where: str, was: Node, now: Node, *, is_sent: bool, seen: tuple[str, ...]) -> Iterator[Change]:
    before, after = was.get("properties", {}), now.get("properties", {})
    must_before, must_after = set(was.get("required", ())), set(now.get("required", ()))
    for name in before.keys() - after.keys():
        yield Change(f"{where}.{name}", "the field is gone", is_breaking=True)
    for name in after.keys() - before.keys():
        must = is_sent and name in must_after
        yield Change(f"{where}.{name}", f"a new {'required ' if must else ''}field", is_breaking=must)
    for name in before.keys() & after.keys():
        if is_sent and name in must_after - must_before:
            yield Change(f"{where}.{name}", "is required now", is_breaking=True)
        if not is_sent and name in must_before - must_after:
            yield Change(f"{where}.{name}", "is not always present any more", is_breaking=True)
        yield from _schema(pair, f"{where}.{name}", before[name], after[name], is_sent=is_sent, seen=seen)


def _differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yields the differences of two documents as JSON pointers."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield from _differences(old.get(key), new.get(key), f"{place}/{str(key).replace('/', '~1')}")
    else:
        yield place or "/"
