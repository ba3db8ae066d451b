"""ESPN's open API: cricket by match (`espn`), football by day (`espnsoccer`)."""

from __future__ import annotations

from scraping.sources.espn.cricket import EspnAdapter
from scraping.sources.espn.soccer import EspnSoccerAdapter

__all__ = ["EspnAdapter", "EspnSoccerAdapter"]
