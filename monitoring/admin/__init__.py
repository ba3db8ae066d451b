"""The admin of alerts, messages, audit, grades and health log. Importing the package registers it."""

from monitoring.admin import alerts, history

__all__ = ["alerts", "history"]
