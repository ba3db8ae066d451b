"""The registry of benches. One module each, with SUMMARY, `add_arguments(parser)` and `run(options) -> dict`.

`run` returns the bench's own keys, `series` and `picture` for a picture, and `problems`: a list of sentences, empty for
a good result. A result with problems is not saved, and the exit code is 1. Modules import Django only inside `run`,
because settings read the environment variables once, and `run` sets them.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Any, Protocol, cast

BENCHES = {
    "accuracy": "benchmarks.benches.accuracy",
    "api": "benchmarks.benches.api",
    "attached": "benchmarks.benches.attached",
    "console": "benchmarks.benches.console",
    "growth": "benchmarks.benches.growth",
    "health": "benchmarks.benches.health",
    "journal": "benchmarks.benches.journal",
    "live": "benchmarks.benches.live",
    "load": "benchmarks.benches.load",
    "night": "benchmarks.benches.night",
    "pairing": "benchmarks.benches.pairing",
    "polls": "benchmarks.benches.polls",
    "recovery": "benchmarks.benches.recovery",
    "soak": "benchmarks.benches.soak",
}


class BenchModule(Protocol):
    SUMMARY: str

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, options: Namespace) -> dict[str, Any]: ...


def load(name: str) -> BenchModule:
    return cast("BenchModule", import_module(BENCHES[name]))
