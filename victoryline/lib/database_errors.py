"""Errors that mean that the database cannot be reached."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

DATABASE_AWAY = (OperationalError, InterfaceError)  # a pool whose connections are all in use raises the first


def first_line(error: BaseException) -> str:
    """Returns the first line of a driver's long message, for the log."""
    return str(error).strip().partition("\n")[0]
