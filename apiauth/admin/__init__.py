"""The console for API access. Importing the module registers it."""

from apiauth.admin import access

__all__ = ["access"]
