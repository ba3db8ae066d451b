"""Removes secrets from logs, error rows and evidence: by the name of a field and by patterns in the text.

Every pattern is bounded: the text comes from outside and must not be able to make a pattern run for minutes.
"""

import re
from functools import lru_cache
from typing import Any

HIDDEN = "***"
NAMES = re.compile(
    r"authorization|cookie|api[-_]?key|passw(or)?d|secret|token$|signing[-_]?key|credential|dsn|proxy[-_]?(auth|user)",
    re.IGNORECASE,
)
# Counters and lifetimes that only sound like secrets.
HARMLESS = re.compile(r"_(seconds|hours|count|total|at|id|prefix)$", re.IGNORECASE)
Replacement = tuple[re.Pattern[str], str]
PATTERNS: tuple[Replacement, ...] = (
    (
        re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}://)[^\s/@:]{0,256}:[^\s/@]{0,256}@", re.IGNORECASE),
        r"\g<scheme>***:***@",
    ),
    (re.compile(r"\b(?P<kind>bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), r"\g<kind> ***"),
    (re.compile(r"\bvl_[0-9a-f]{12}[._][A-Za-z0-9_-]{8,256}"), HIDDEN),  # our own API keys, of both forms
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{1,8192}\.[A-Za-z0-9_-]*"), HIDDEN),
    (
        re.compile(
            r"(?P<name>\b(?:api[-_]?key|password|passwd|secret|access_token|token|signature)[\"']?\s*[=:]\s*[\"']?)[^\s&\"',;]+",
            re.IGNORECASE,
        ),
        r"\g<name>***",
    ),
    (re.compile(r"(?P<name>\b(?:set-)?cookie\s*:\s*)[^\r\n]+", re.IGNORECASE), r"\g<name>***"),
)
# Every match of PATTERNS contains one of these: most values of a log line need no further search.
_SUSPECT = re.compile(r"[=:@\s]|eyJ|vl_")
_PRIVATE = (
    r"[a-z0-9_-]{0,40}?"
    r"(?:api[-_]?key|apikey|passw(?:or)?d|secret|token|signature|sig|session(?:[-_]?id)?|sid|auth|authorization|jwt|"
    r"csrf\w{0,20}|xsrf\w{0,20}|nonce|credentials?|private[-_]?key|client[-_]?id|access[-_]?key)"
)
_QUOTE = r"(?:\\?[\"']|&quot;|&\#34;|&\#39;)"
# Only in whole pages and answers; log lines are not searched for these.
DOCUMENT_PATTERNS: tuple[Replacement, ...] = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{0,8192}(?:-----END [A-Z ]{0,30}KEY-----)?"
        ),
        HIDDEN,
    ),
    # A field of JSON or script, also inside an attribute: "sessionId": "...", apiKey='...'.
    (
        re.compile(
            rf"(?P<name>(?<![a-z0-9_-]){_PRIVATE}{_QUOTE}?\s{{0,5}}[:=]\s{{0,5}}{_QUOTE})[^\"'\\&\r\n]{{1,4096}}",
            re.IGNORECASE,
        ),
        r"\g<name>***",
    ),
    # In the query or the fragment of an address, also where its ampersands are written as HTML wants them.
    (
        re.compile(
            rf"(?P<name>(?:[?&\#]|&amp;|\\u0026)(?:{_PRIVATE}|key|code|hash|hmac)=)[^\s&\"'<>\\\#]{{1,4096}}",
            re.IGNORECASE,
        ),
        r"\g<name>***",
    ),
    # A form's hidden field, a page's meta element: the name first, then the value.
    (
        re.compile(
            rf"(?P<name>\b(?:name|id|property)=[\"']{_PRIVATE}[\"'][^<>]{{0,300}}?\b(?:value|content)=[\"'])[^\"'<>]{{1,4096}}",
            re.IGNORECASE,
        ),
        r"\g<name>***",
    ),
    (
        re.compile(
            rf"(?P<name>\b(?:value|content)=[\"'])[^\"'<>]{{1,4096}}(?P<rest>[\"'][^<>]{{0,300}}?\b(?:name|id|property)=[\"']{_PRIVATE}[\"'])",
            re.IGNORECASE,
        ),
        r"\g<name>***\g<rest>",
    ),
    (re.compile(r"(?P<name>document\.cookie\s{0,5}=\s{0,5}[\"'`])[^\"'`\r\n]{1,4096}"), r"\g<name>***"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,60}"), HIDDEN),
    (re.compile(r"\b(?:gh[opsu]_|github_pat_|xox[abprs]-|[srp]k_(?:live|test)_|glpat-)[A-Za-z0-9_-]{10,255}"), HIDDEN),
    # An e-mail address; the part before the @ has at most 64 characters.
    (
        re.compile(
            r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}(?:@|%40|&\#64;)(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24}\b"
        ),
        HIDDEN,
    ),
)


def redact(name: str, value: Any) -> Any:
    """Returns `value` as it may be shown under `name`; mappings and lists are cleaned recursively."""
    if value and isinstance(name, str) and _names_a_secret(name):
        return HIDDEN
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: redact(key, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [redact("", each) for each in value]
    return value


@lru_cache(maxsize=2048)
def _names_a_secret(name: str) -> bool:
    return bool(NAMES.search(name)) and not HARMLESS.search(name)


def clean(text: str) -> str:
    """Returns `text` without credentials in URLs, bearer tokens, JWTs, and `password=...`."""
    return _replaced(text, PATTERNS) if _SUSPECT.search(text) else text


def clean_document(text: str) -> str:
    """Returns a page or answer as it may be stored: also without keys, session ids, form tokens and mail addresses."""
    return _replaced(_replaced(text, DOCUMENT_PATTERNS), PATTERNS)


def _replaced(text: str, patterns: tuple[Replacement, ...]) -> str:
    for pattern, replacement in patterns:
        text = pattern.sub(replacement, text)
    return text


def printable(text: str, length: int) -> str:
    """Returns outside text cut and without characters that break a log line or a column (NUL, lone surrogates)."""
    readable = "".join(char if char.isprintable() else "?" for char in text[:length])
    return readable.encode(errors="replace").decode()
