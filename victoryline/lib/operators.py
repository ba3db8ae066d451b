"""Who types a command, for the audit."""

from __future__ import annotations

import getpass

SOMEBODY = "operator"


def name_of(told: str | None) -> str:
    """Whom `--by` names; else this machine's user, where it has one with a name."""
    try:
        return told or getpass.getuser()
    except (KeyError, OSError):  # a container whose user has a number and no name
        return SOMEBODY
