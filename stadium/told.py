"""How a site tells a match that another one knows better: later, and not always right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stadium.programme import Match


def at(match: Match, site: str) -> dict[str, Any]:
    """What is different about the match at this site: its script, its delay."""
    return {}
