"""Crex: cricket. Its API has keys for names and strings for scores; its pages embed copies of the API responses."""

from __future__ import annotations

from scraping.sources.crex.adapter import CrexAdapter

__all__ = ["CrexAdapter"]
