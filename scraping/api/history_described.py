"""How the API's description (OpenAPI) presents reads into the past."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter

from scraping.api import history_problems
from scraping.api.described import ID, described
from scraping.api.history_documents import (
    DELTA_EXAMPLE,
    SNAPSHOT_EXAMPLE,
    SNAPSHOTS_EXAMPLE,
    MatchDelta,
    SnapshotDocument,
    SnapshotList,
)
from scraping.api.params import MAX_SEQUENCE, DeltaParams, MaxAgeParams, SnapshotParams

SEQUENCE = OpenApiParameter(
    "sequence",
    {"type": "integer", "minimum": 1, "maximum": MAX_SEQUENCE},
    OpenApiParameter.PATH,
    description="The number that the match had.",
)

DELTA = described(
    "read_delta",
    "Read what has changed in a match",
    "The difference between the match as you have it (`since`: its sequence) and as it is. Put `changed` over your "
    "document, take `removed` out of it, and you have the state of `to_sequence`, field for field. Where the state "
    "that you have is kept no more the answer is 410 `delta-overflow`: read the match whole, and go on from "
    "its sequence.",
    MatchDelta,
    DELTA_EXAMPLE,
    tag="history",
    parameters=[ID, DeltaParams],
    problems=(409, history_problems.GONE),
)
SNAPSHOTS = described(
    "list_snapshots",
    "List the states that a match had",
    "Newest first, as far back as they are kept, each with what changed in it.",
    SnapshotList,
    SNAPSHOTS_EXAMPLE,
    tag="history",
    parameters=[ID, SnapshotParams],
)
SNAPSHOT = described(
    "read_snapshot",
    "Read a state that a match had",
    "As it is stored, with its checksum and whose word each field was. It never changes. One that is kept no more is a "
    "410 `too-old` that says how far back they reach.",
    SnapshotDocument,
    SNAPSHOT_EXAMPLE,
    tag="history",
    parameters=[ID, SEQUENCE, MaxAgeParams],
    problems=(history_problems.GONE,),
)
