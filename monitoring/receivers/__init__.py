"""Turns the signals of scraping and apiauth into audit entries and alerts. Importing the package connects them.

A receiver must not break its sender: each runs in its own savepoint, and its errors are logged and dropped.
match_updated is sent with every poll and has no receiver: the staleness watchdog closes alerts after an update.
"""

from monitoring.receivers import api_keys, matches, sources, workers

__all__ = ["api_keys", "matches", "sources", "workers"]
