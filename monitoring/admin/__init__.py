"""The console for health: what was seen, what was done. Importing the module registers it."""

from monitoring.admin import history

__all__ = ["history"]
