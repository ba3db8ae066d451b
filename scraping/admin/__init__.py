"""The console for matches, sources and the journal. Importing the modules registers them."""

from scraping.admin import breakers, engine, errors, evidence, jobs, match_history, matches, sources, tasks

__all__ = ["breakers", "engine", "errors", "evidence", "jobs", "match_history", "matches", "sources", "tasks"]
