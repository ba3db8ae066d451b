"""Sofascore: football. One answer has the whole match, another all its incidents."""

from __future__ import annotations

from scraping.sources.sofascore.adapter import SofascoreAdapter

__all__ = ["SofascoreAdapter"]
