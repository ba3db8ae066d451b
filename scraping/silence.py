"""The ladder for live matches that have gone silent: sole writer of their rungs."""
