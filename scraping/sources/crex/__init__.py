"""Crex: cricket. Keys instead of names, scores as strings, a page that carries its own copy of the API's answers."""

from __future__ import annotations

from scraping.sources.crex.adapter import CrexAdapter

__all__ = ["CrexAdapter"]
