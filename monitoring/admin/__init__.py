"""The console for health: what was seen, what was done. Importing the module registers it."""

from monitoring.admin import alerts, history, messages

__all__ = ["alerts", "history", "messages"]
