"""Scoreboard: cricket pages without JSON. A page that updates itself stays open and is read by selectors."""

from __future__ import annotations

from scraping.sources.scoreboard.adapter import ScoreboardAdapter

__all__ = ["ScoreboardAdapter"]
