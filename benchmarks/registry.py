"""Which benches there are. One module each, with SUMMARY, `add_arguments(parser)` and `run(options) -> dict`.

What `run` returns is the bench's own keys; `series` and `picture` where there is something to draw; and `problems`: a
list of sentences, empty when all was right. A bench with problems is not saved and ends with an error. Modules load
Django only inside `run`: settings read the environment once, and the environment is made there.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Any, Protocol, cast

BENCHES = {
    "accuracy": "benchmarks.benches.accuracy",
    "api": "benchmarks.benches.api",
    "attached": "benchmarks.benches.attached",
    "growth": "benchmarks.benches.growth",
    "health": "benchmarks.benches.health",
    "journal": "benchmarks.benches.journal",
    "live": "benchmarks.benches.live",
    "load": "benchmarks.benches.load",
    "night": "benchmarks.benches.night",
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
