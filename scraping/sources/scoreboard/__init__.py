"""Board: cricket, only drawn. A page that updates itself stays open, and selectors say where on it the facts are."""

from __future__ import annotations

from scraping.sources.scoreboard.adapter import ScoreboardAdapter

__all__ = ["ScoreboardAdapter"]
