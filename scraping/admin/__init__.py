"""The console for matches, sources and the journal. Importing the modules registers them."""

from scraping.admin import engine, errors, match_history, matches, sources, tasks

__all__ = ["engine", "errors", "match_history", "matches", "sources", "tasks"]
