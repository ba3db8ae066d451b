"""Bodies of requests, as the API reads them: chunked ones too, and never more than it takes.

Django and its REST framework know a body by its Content-Length; one that comes in chunks has none, and would be taken
for no body at all.
"""

from __future__ import annotations

from typing import IO

from rest_framework.request import Request

from victoryline.lib.problems import PayloadTooLarge

MAX_BODY_BYTES = 256 * 1024


class ApiRequest(Request):
    """A request whose body may come in chunks. Servers that end such a body themselves say so (granian does)."""

    def _load_stream(self) -> None:
        meta = self._request.META
        if meta.get("CONTENT_LENGTH") or not meta.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" not in meta:
            super()._load_stream()  # type: ignore[misc]  # the stubs leave it out
        else:
            self._stream = meta["wsgi.input"]


def read(stream: IO[bytes], declared_length: str, *, most: int) -> bytes:
    """The whole body. One that says itself that it is too large is refused unread; one that lies, when it shows."""
    if declared_length.isdecimal() and int(declared_length) > most:
        raise _too_large(most)
    parts, room = [], most + 1
    while room and (part := stream.read(room)):
        parts.append(part)
        room -= len(part)
    if not room:
        raise _too_large(most)
    return b"".join(parts)


def _too_large(most: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body may hold {most // 1024} KB at most; nothing of it was used.")
