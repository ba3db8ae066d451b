"""The admin of scraping. Importing a module registers its tables."""

from scraping.admin import engine, errors, jobs, match_history, matches, operations, pairings, sources, stats
