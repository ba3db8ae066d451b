"""Admin pages of API access. Importing the package registers them."""

from apiauth.admin import access, usage

__all__ = ["access", "usage"]
