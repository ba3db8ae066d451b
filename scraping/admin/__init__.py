"""The console for matches, proxies, sources and the journal. Importing the modules registers them."""

from scraping.admin import (
    breakers,
    engine,
    errors,
    evidence,
    fills,
    jobs,
    match_history,
    matches,
    proxies,
    sources,
    tasks,
    traffic,
)

__all__ = [
    "breakers",
    "engine",
    "errors",
    "evidence",
    "fills",
    "jobs",
    "match_history",
    "matches",
    "proxies",
    "sources",
    "tasks",
    "traffic",
]
