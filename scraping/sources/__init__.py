"""The registry of adapters: one folder a site, one row here."""

from __future__ import annotations

from scraping.sources.base import Adapter
from scraping.sources.crex import CrexAdapter
from scraping.sources.sofascore import SofascoreAdapter

ADAPTERS: dict[str, Adapter] = {adapter.key: adapter for adapter in (CrexAdapter(), SofascoreAdapter())}


def adapter_for(key: str) -> Adapter:
    """The adapter of a source; KeyError names the ones that exist."""
    try:
        return ADAPTERS[key]
    except KeyError:
        raise KeyError(f"no adapter named {key!r}; there are: {', '.join(sorted(ADAPTERS))}") from None
