"""Keeps secrets out of logs, error rows and evidence: by the name of a field, and by the look of a text."""

import re
from typing import Any

HIDDEN = "***"
NAMES = re.compile(
    r"authorization|cookie|api[-_]?key|passw(or)?d|secret|token$|signing[-_]?key|credential|dsn|proxy[-_]?(auth|user)",
    re.IGNORECASE,
)
# Counters and lifetimes that only sound like secrets.
HARMLESS = re.compile(r"_(seconds|hours|count|total|at|id|prefix)$", re.IGNORECASE)
LOOKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]*@", re.IGNORECASE), r"\g<scheme>***:***@"),
    (re.compile(r"\b(?P<kind>bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), r"\g<kind> ***"),
    (re.compile(r"\bvl_[0-9a-f]{12}_[A-Za-z0-9_-]{43}"), HIDDEN),  # our own API keys
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), HIDDEN),
    (
        re.compile(
            r"(?P<name>\b(?:api[-_]?key|password|passwd|secret|access_token|token|signature)[\"']?\s*[=:]\s*[\"']?)[^\s&\"',;]+",
            re.IGNORECASE,
        ),
        r"\g<name>***",
    ),
    (re.compile(r"(?P<name>\b(?:set-)?cookie\s*:\s*)[^\r\n]+", re.IGNORECASE), r"\g<name>***"),
)


def redact(name: str, value: Any) -> Any:
    """`value` as it may be shown under `name`; mappings and lists are cleaned all the way down."""
    if isinstance(name, str) and value and NAMES.search(name) and not HARMLESS.search(name):
        return HIDDEN
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: redact(key, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact("", each) for each in value]
    return value


def clean(text: str) -> str:
    """`text` without credentials in URLs, bearer tokens, JWTs, and `password=...`."""
    for look, instead in LOOKS:
        text = look.sub(instead, text)
    return text
