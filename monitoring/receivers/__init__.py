"""Turns what scraping announces into audit entries and alerts. Importing the package connects all of it.

A receiver must never hurt the sender: each runs in a savepoint of its own, and what it raises is logged and dropped.
match_updated fires with every poll and is left alone: what an update ends is ended by the staleness watchdog.
"""

from monitoring.receivers import breakers, keys, matches, scrapers, silence, sources, workers

__all__ = ["breakers", "keys", "matches", "scrapers", "silence", "sources", "workers"]
