"""BenchError: the bench could not be run. The message has the cause and, if there is one, the end of the log."""

from __future__ import annotations


class BenchError(Exception):
    pass
