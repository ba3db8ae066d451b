"""The line-ups of a match, as the API's description shows them."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, Field

from scraping.api import examples
from scraping.api.documents import Document, FullMetadata
from scraping.models import SnapshotType


class LineupPlayerDocument(Document):
    player_id: str = Field(description="The player's id at the source.")
    name: str
    position: str = Field(description="The source's own word: G, D, M, F; BAT, BOWL, AR, WK.")
    shirt: str = Field(description="The number; empty where there is none.")
    is_starter: bool
    is_captain: bool
    rating: float | None = Field(description="The source's, where it gives one; after the match only.")
    minutes: int | None


class LineupDocument(Document):
    """One side as one source told it, before the start or after the end. The two never mix."""

    side: str = Field(description="team_a or team_b, as in `score`.")
    team: str
    source: str
    snapshot_type: SnapshotType
    schema_version: str = Field(description="Of the answer that it was read from: sofascore.lineups.v1.")
    formation: str = Field(description="Football: 4-3-3; else empty.")
    is_confirmed: bool = Field(description="The source says that this is final.")
    xi_missing: bool = Field(description="Fewer than eleven starters are known.")
    kickoff: AwareDatetime = Field(description="When the match was to start, as it was known at the reading.")
    captured_at: AwareDatetime = Field(description="Of a pre_match one always before the kick-off.")
    players: list[LineupPlayerDocument]


class XiMissing(Document):
    team_a: bool
    team_b: bool


class MatchLineups(Document):
    lineups: list[LineupDocument]
    xi_missing: XiMissing = Field(description="Whether no source has told eleven starters of a side before the start.")
    metadata_: FullMetadata = Field(alias="_metadata")


EXAMPLE: dict[str, Any] = {
    "lineups": [
        {
            "side": "team_a",
            "team": "Flamengo",
            "source": "sofascore",
            "snapshot_type": "pre_match",
            "schema_version": "sofascore.lineups.v1",
            "formation": "4-2-3-1",
            "is_confirmed": True,
            "xi_missing": False,
            "kickoff": "2025-11-22T14:00:00.000Z",
            "captured_at": "2025-11-22T12:58:03.000Z",
            "players": [
                {
                    "player_id": "98765",
                    "name": "A. Rossi",
                    "position": "G",
                    "shirt": "1",
                    "is_starter": True,
                    "is_captain": False,
                    "rating": None,
                    "minutes": None,
                }
            ],
        }
    ],
    "xi_missing": {"team_a": False, "team_b": True},
    "_metadata": examples.FULL_METADATA,
}
