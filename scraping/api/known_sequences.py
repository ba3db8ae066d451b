"""The cursor of a delta over many matches: for each followed match the sequence that the consumer has.

It is exact, unlike a time, and needs nothing kept for the consumer. A match takes three or four bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping

from scraping.api.params import MAX_SEQUENCE, filter_mark
from scraping.documents.filters import MatchFilter
from scraping.documents.queries import MAX_ID
from victoryline.lib.http.problems import BadParameter

MAX_FOLLOWED = 1_000
MAX_LENGTH = 8_000  # of the text: proxies accept longer addresses rarely
MARK_BYTES = 4


def write(known: Mapping[int, int], wanted: MatchFilter) -> str:
    """Returns the cursor; it contains a hash of the filters, with which it belongs together."""
    packed, last = bytearray(_mark(wanted)), 0
    for match_id, sequence in sorted(known.items()):
        packed += _packed(match_id - last) + _packed(sequence)
        last = match_id
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read(text: str | None, wanted: MatchFilter) -> dict[int, int]:
    """Returns sequences by match id. Raises BadParameter for anything but a cursor of these filters."""
    if text is None:
        return {}
    try:
        packed = base64.b64decode((text + "=" * (-len(text) % 4)).encode(), altchars=b"-_", validate=True)
        numbers = list(_numbers(packed[MARK_BYTES:]))
        gaps, sequences = numbers[::2], numbers[1::2]
    except (binascii.Error, ValueError):
        packed, gaps, sequences = b"", [1], []
    known, match_id = {}, 0
    for gap, sequence in zip(gaps, sequences, strict=False):
        match_id += gap
        known[match_id] = sequence
    is_possible = len(gaps) == len(sequences) == len(known) and match_id <= MAX_ID
    if not is_possible or max(sequences, default=0) > MAX_SEQUENCE or min(sequences, default=1) < 1:
        raise BadParameter("since", "`since` is not one of ours: take it from `next_since` of the answer before.")
    if packed[:MARK_BYTES] != _mark(wanted):
        raise BadParameter(
            "since",
            "`since` belongs to other filters. Send the same filters with it, or begin without it.",
        )
    return known


def _mark(wanted: MatchFilter) -> bytes:
    return bytes.fromhex(filter_mark(wanted))


def _packed(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth bit says that more follow."""
    packed = bytearray()
    while number > 0x7F:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _numbers(packed: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("it ends within a number")
