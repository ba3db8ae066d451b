"""JSON in and out by orjson: several times faster than the standard library, and strict where that one is lenient."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from victoryline.lib import bodies


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
    """Rejects what Python's own parser would choke on: bottomless nesting, lone surrogates, endless bodies."""

    media_type = "application/json"
    most_bytes = bodies.MAX_BODY_BYTES

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request: Request | None = (parser_context or {}).get("request")
        declared = str(request.META.get("CONTENT_LENGTH") or "") if request is not None else ""
        body = bodies.read(stream, declared, most=self.most_bytes)
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}") from error


class JsonOnly(BaseContentNegotiation):
    """We speak nothing but JSON, so an Accept header that asks for something else gets JSON rather than a 406."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type
