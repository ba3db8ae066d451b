"""Recognises a browser by its requests, as some real sites do: by HTTP version, headers and their order, and over TLS
by the ClientHello of its connection.

The sites that are switched to it refuse every other client, also with valid cookies. A ClientHello is a browser's if it
has GREASE values (RFC 8701), which Chromium adds and OpenSSL never does, and offers HTTP/2.
"""

from __future__ import annotations

import ssl
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import HttpVersion11, web

HANDSHAKE, CLIENT_HELLO = 22, 1
ALPN, HTTP_2 = 16, b"\x02h2"
# Chromium's order in a request of a page as well as of a script; it sends others between them.
HEADER_ORDER = (
    b"host", b"connection", b"user-agent", b"accept", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest",
    b"accept-encoding",
)  # fmt: skip

_hellos: WeakKeyDictionary[object, bytes] = WeakKeyDictionary()  # by connection


def suspicion(request: web.Request) -> str:
    """Returns why the client of a request is no browser; empty if it is one."""
    if request.version != HttpVersion11:
        return f"HTTP/{request.version.major}.{request.version.minor}"
    names = [name.lower() for name, _ in request.raw_headers]
    if missing := [name.decode() for name in HEADER_ORDER if name not in names]:
        return f"no {missing[0]} header"
    for first, second in pairwise(HEADER_ORDER):
        if names.index(first) > names.index(second):
            return f"{second.decode()} before {first.decode()}"
    if "br" not in request.headers["Accept-Encoding"]:
        return "no brotli"
    connection = request.transport.get_extra_info("ssl_object") if request.transport else None
    return "" if connection is None else hello_suspicion(_hellos.get(connection, b""))


def hello_suspicion(hello: bytes) -> str:
    """Returns why a ClientHello is not a browser's; empty if it is."""
    try:
        ciphers, extensions = parse_hello(hello)
    except IndexError:
        return "no complete ClientHello"
    if not any(map(_is_grease, ciphers)) or not any(map(_is_grease, extensions)):
        return "no GREASE in the ClientHello"
    return "" if HTTP_2 in extensions.get(ALPN, b"") else "no HTTP/2 in the ClientHello"


def parse_hello(hello: bytes) -> tuple[list[int], dict[int, bytes]]:
    """Returns cipher suites and extensions of a ClientHello (RFC 8446, 4.1.2) with its handshake header."""
    place = 4 + 2 + 32  # handshake header, version, random
    place += 1 + hello[place]  # session id
    size = _number(hello, place)
    ciphers = [_number(hello, at) for at in range(place + 2, place + 2 + size, 2)]
    place += 2 + size
    place += 1 + hello[place]  # compression methods
    extensions, end = dict[int, bytes](), place + 2 + _number(hello, place)
    place += 2
    while place < end:
        kind, size = _number(hello, place), _number(hello, place + 2)
        extensions[kind] = hello[place + 4 : place + 4 + size]
        place += 4 + size
    return ciphers, extensions


def _number(data: bytes, place: int) -> int:
    return data[place] << 8 | data[place + 1]


def _is_grease(value: int) -> bool:
    return value & 0x0F0F == 0x0A0A and value >> 8 == value & 0xFF


def tls_context(file: Path) -> ssl.SSLContext:
    """Returns a server's context with the key and certificate in a file; it keeps every connection's ClientHello."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    context._msg_callback = _keep_hello  # type: ignore[attr-defined]  # noqa: SLF001 - the only access to the raw bytes
    return context


def _keep_hello(connection: Any, direction: str, _: Any, content: int, kind: int, data: bytes) -> None:
    if (direction, content, kind) == ("read", HANDSHAKE, CLIENT_HELLO):
        _hellos[connection] = data
