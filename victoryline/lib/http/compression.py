"""Compresses answers with gzip, if the client accepts it.

A strong ETag names the bytes of one encoding: the compressed form has the ETag of the plain one, ending in `-gzip`, and
`views.has_etag` accepts both.
"""

from __future__ import annotations

import zlib

from django.http import HttpRequest, HttpResponse

MIN_BYTES = 1_000  # smaller bodies fit into a packet as they are
FAST, BEST = 1, 9  # level of bodies that are compressed for each answer, and of those compressed once
GZIP_ETAG = '-gzip"'
_GZIP_FORMAT = 31  # zlib's name for gzip with its largest window


def compress(request: HttpRequest, response: HttpResponse) -> None:
    """Compresses the body of a successful answer in place. The caller has set `Vary: Accept-Encoding`."""
    body = response.content
    if response.status_code != 200 or len(body) < MIN_BYTES or not accepts_gzip(request):
        return
    response.content = gzipped(body, FAST)
    response.headers["Content-Encoding"] = "gzip"
    if etag := response.headers.get("ETag"):
        response.headers["ETag"] = etag[:-1] + GZIP_ETAG


def gzipped(body: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP_FORMAT)
    return packer.compress(body) + packer.flush()


def accepts_gzip(request: HttpRequest) -> bool:
    """Returns whether Accept-Encoding names gzip, or else `*`, with a weight above 0."""
    weights = {}
    for part in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        weights[coding.strip()] = weight.replace(" ", "")
    chosen = weights.get("gzip", weights.get("*"))
    return chosen is not None and chosen.rstrip("0.") != "q="
