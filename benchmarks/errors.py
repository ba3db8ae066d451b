"""BenchError: the bench could not be run at all; the message says why and, where there is one, shows the log's end."""

from __future__ import annotations


class BenchError(Exception):
    pass
