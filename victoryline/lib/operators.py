"""Operators: their names for the audit, and the error of a refused operation."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

UNNAMED_OPERATOR = "operator"


class OperationRefused(Exception):  # noqa: N818 - a refusal, not a defect
    """An operator's request that cannot be applied now; the message is shown to the operator."""


def name_of(given: str | None) -> str:
    """Returns the name given by `--by`, else the user of this machine, where it has a name."""
    try:
        return given or getpass.getuser()
    except (KeyError, OSError):  # a container whose user has a number and no name
        return UNNAMED_OPERATOR


@contextmanager
def rehearsal(*, is_dry_run: bool) -> Iterator[None]:
    """Undoes everything that the body writes into the database, in a dry run."""
    if not is_dry_run:
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
