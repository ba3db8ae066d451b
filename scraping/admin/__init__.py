"""The admin of scraping. Importing a module registers its tables."""

from scraping.admin import (
    breakers,
    conflicts,
    engine,
    errors,
    evidence,
    fills,
    jobs,
    lineups,
    match_history,
    matches,
    pairings,
    sources,
    tasks,
    traffic,
)
