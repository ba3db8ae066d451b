"""The cursor of a delta over many matches: for each followed match the sequence that the consumer has.

It is exact, unlike a time, and needs nothing kept for the consumer. It is compressed JSON: a hash of the filters, the
gaps between the ids of the matches, and their sequences. A match takes four or five characters.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Annotated

import orjson
from pydantic import Field, TypeAdapter

from scraping.api.params import MAX_SEQUENCE, filter_mark
from scraping.documents.filters import MatchFilter
from scraping.documents.queries import MAX_ID
from victoryline.lib.http.problems import BadParameter

MAX_FOLLOWED = 1_000
MAX_LENGTH = 8_000  # of the text: proxies accept longer addresses rarely
MAX_UNPACKED = 100_000  # bytes
_CURSOR = TypeAdapter(
    tuple[
        str,
        list[Annotated[int, Field(strict=True, ge=1, le=MAX_ID)]],
        list[Annotated[int, Field(strict=True, ge=1, le=MAX_SEQUENCE)]],
    ]
)


def write(known: Mapping[int, int], wanted: MatchFilter) -> str:
    """Returns the cursor; it contains a hash of the filters, with which it belongs together."""
    ids = sorted(known)
    gaps = [after - before for before, after in pairwise([0, *ids])]
    packed = zlib.compress(orjson.dumps([filter_mark(wanted), gaps, [known[pk] for pk in ids]]), 9)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read(text: str | None, wanted: MatchFilter) -> dict[int, int]:
    """Returns sequences by match id. Raises BadParameter for anything but a cursor of these filters."""
    if text is None:
        return {}
    try:
        packed = base64.b64decode((text + "=" * (-len(text) % 4)).encode(), altchars=b"-_", validate=True)
        mark, gaps, sequences = _CURSOR.validate_json(zlib.decompressobj().decompress(packed, MAX_UNPACKED))
        known = dict(zip(accumulate(gaps), sequences, strict=True))
        is_possible = max(known, default=0) <= MAX_ID
    except (zlib.error, ValueError):
        is_possible = False
    if not is_possible:
        raise BadParameter("since", "`since` is not one of ours: take it from `next_since` of the answer before.")
    if mark != filter_mark(wanted):
        raise BadParameter(
            "since",
            "`since` belongs to other filters. Send the same filters with it, or begin without it.",
        )
    return known
