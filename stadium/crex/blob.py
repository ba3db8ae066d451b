"""The state blob of a server-rendered page, in the encoding Angular gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping

_CODES = (("&", "&a;"), ('"', "&q;"), ("'", "&s;"), ("<", "&l;"), (">", "&g;"))


def encode(state: Mapping[str, object]) -> str:
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    for plain, code in _CODES:
        text = text.replace(plain, code)
    return text


def decode(text: str) -> dict[str, object]:
    """The ampersand comes last, or text that holds a literal code would be decoded twice."""
    for plain, code in reversed(_CODES):
        text = text.replace(code, plain)
    state: dict[str, object] = json.loads(text)
    return state
