"""What CORS_ORIGINS may name. Knows nothing of Django, so that the configuration can be checked before there is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

USUAL_PORTS = {"http": 80, "https": 443}


def wrong_origins(origins: Iterable[str]) -> Iterator[str]:
    """Those that no browser ever sends, so that they would never match: each is a mistake in the configuration."""
    for origin in origins:
        if origin != "*" and not _is_origin(origin):
            yield origin


def _is_origin(text: str) -> bool:
    """scheme://host[:port], and nothing after it."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in USUAL_PORTS or not parts.hostname or any(char in "@*" or char.isspace() for char in text):
        return False
    if parts.netloc.endswith(":") or port == USUAL_PORTS[parts.scheme]:
        return False  # browsers leave the usual port out
    return text.lower() == f"{parts.scheme}://{parts.netloc}".lower()
