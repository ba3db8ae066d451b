"""`make fuzz`: runs schemathesis with all checks against a private web process.

SEED=7 repeats a run; ARGS are passed on to schemathesis, such as --include-path /api/v1/matches.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fuzzing import fuzz, target  # noqa: E402 - needs the path above

EXAMPLES = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**31))
    parser.add_argument("--seconds", type=int, default=0, help="repeat for this time; 0: one run")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="requests an operation, in each phase")
    parser.add_argument("arguments", nargs="*", help="passed on to schemathesis")
    options = parser.parse_args()
    print(f"seed {options.seed}: `make fuzz SEED={options.seed}` repeats this run", flush=True)
    with tempfile.TemporaryDirectory(prefix="vl-fuzz-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with target(folder) as running:
            outcome = fuzz(
                running,
                folder,
                seed=options.seed,
                examples=options.examples,
                seconds=options.seconds,
                more=tuple(options.arguments),
                is_shown=True,
            )
            failures = running.failures()
    print(f"{len(failures)} errors in the log of the web process", *failures[:5], sep="\n")
    return 1 if failures or not outcome.is_clean else 0


if __name__ == "__main__":
    sys.exit(main())
