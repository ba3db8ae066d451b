"""The console for API access. Importing the module registers it."""

from apiauth.admin import access, usage

__all__ = ["access", "usage"]
