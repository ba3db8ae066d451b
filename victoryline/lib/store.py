"""What it looks like when the database is not there: one answer for all who ask."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

STORE_AWAY = (OperationalError, InterfaceError)  # a pool whose connections are all in use raises the first


def first_line(error: BaseException) -> str:
    """What a driver has to say at length, as far as a line of log needs it."""
    return str(error).strip().partition("\n")[0]
