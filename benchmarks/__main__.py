"""`python -m benchmarks NAME [options]` runs one bench. Progress on stderr; the last line of stdout is the result.

Without a name it lists the benches.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence

from benchmarks import pictures, report, results
from benchmarks.errors import BenchError
from benchmarks.progress import say
from benchmarks.registry import BENCHES, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 for a good result, 1 with problems (on stderr and in the result), 2 for wrong arguments."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        print(_list())
        return 0
    options = _parser(given).parse_args(given)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds the exit stacks, which stop all processes
    began, load_before = time.monotonic(), os.getloadavg()[0]
    try:
        measured = options.run(options)
    except BenchError as error:
        say(f"{options.bench} could not be measured: {error}")
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130
    result = results.complete(options.bench, measured, took_seconds=time.monotonic() - began, load_before=load_before)
    if result["problems"]:
        say("not saved because of problems:\n  " + "\n  ".join(result["problems"]))
    else:
        saved = results.save(result, variant=getattr(options, "variant", ""))
        say(f"saved in {saved}")
        for path in pictures.draw(results.FOLDER / saved.name):
            say(f"drawn in {saved.with_name(path.name)}")
        report.write()
    print(json.dumps(result), flush=True)
    return 1 if result["problems"] else 0


def _list() -> str:
    rows = "\n".join(f"  {name:10}{load(name).SUMMARY}" for name in sorted(BENCHES))
    return f'make bench BENCH=name, with ARGS="--help" for its options:\n{rows}\nSee docs/benchmarks.md.'


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    chosen = next((part for part in given if part[:1] != "-"), None)
    if chosen is not None and chosen not in BENCHES:
        parser.error(f"there is no bench {chosen!r}; there are: {', '.join(sorted(BENCHES))}")
    benches = parser.add_subparsers(dest="bench", required=True, metavar="NAME")
    for name in sorted(BENCHES):
        module = load(name)
        one = benches.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
