"""JSON rendering and parsing with orjson: faster than the standard library, and strict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from victoryline.lib.http.problems import ApiProblem

MAX_BODY_BYTES = 256 * 1024


class OrjsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if data is None:
            return b""
        try:
            return orjson.dumps(data, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
        except orjson.JSONEncodeError:
            # Text that isn't Unicode (a lone surrogate) or a number beyond 64 bits: slow and sure.
            return json.dumps(data, default=str).encode()


class OrjsonParser(BaseParser):
    """Rejects deep nesting, lone surrogates and bodies above the limit."""

    media_type = "application/json"
    max_bytes = MAX_BODY_BYTES

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request: Request | None = (parser_context or {}).get("request")
        declared = str(request.META.get("CONTENT_LENGTH") or "") if request is not None else ""
        body = read_body(stream, declared, max_bytes=self.max_bytes)
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}") from error


def read_body(stream: IO[bytes], declared_length: str, *, max_bytes: int) -> bytes:
    """Returns the whole body. One above the limit is refused, unread if its declared length says so."""
    too_large = ApiProblem(
        "payload-too-large", f"The body may hold {max_bytes // 1024} KB at most; nothing of it was used."
    )
    if declared_length.isdecimal() and int(declared_length) > max_bytes:
        raise too_large
    parts, room = [], max_bytes + 1
    while room and (part := stream.read(room)):
        parts.append(part)
        room -= len(part)
    if not room:
        raise too_large
    return b"".join(parts)
