"""The console for matches, sources and the journal. Importing the modules registers them."""

from scraping.admin import engine, errors, matches, sources, tasks

__all__ = ["engine", "errors", "matches", "sources", "tasks"]
