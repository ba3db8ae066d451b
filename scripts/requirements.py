"""`make requirements`: every requirement, the tests that prove it, their last result. Fails on an unknown id."""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "requirements.md"
RESULTS = ROOT / "var" / "test-results" / "requirements.json"
ROW = re.compile(r"^\| (?P<id>[A-Z]{2,3}-?\d+(?:\.\d+)?) \| (?P<text>.+?) \|$", re.MULTILINE)
MARK = re.compile(r"mark\.requirement\(([^)]*)\)")


def requirements() -> dict[str, str]:
    """Returns the sentence of each id, in the order of the document."""
    return {row["id"]: row["text"] for row in ROW.finditer(DOCUMENT.read_text(encoding="utf-8"))}


def known_ids() -> set[str]:
    return set(requirements())


def ids_in_tests() -> dict[str, set[str]]:
    """Returns the test files of each id, read from the sources, so that tests that never ran are included."""
    named: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for arguments in MARK.findall(file.read_text(encoding="utf-8")):
            for each in re.findall(r"[\"']([^\"']+)[\"']", arguments):
                named.setdefault(each, set()).add(str(file.relative_to(ROOT)))
    return named


def main() -> int:
    wanted, named = requirements(), ids_in_tests()
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {name: result for name, result in kept.items() if exists(name)}
    counts = dict.fromkeys(("proved", "failed", "not run", "no test"), 0)
    for each, text in wanted.items():
        tests = summarise({name: result["outcome"] for name, result in results.items() if each in result["ids"]})
        state = state_of(tests, has_test=each in named)
        counts[state] += 1
        print(f"{each:8} {state:8} {text}")
        for name, outcome in sorted(tests.items()):
            print(f"{'':17} {outcome:8} {name}")
    print("\n" + ", ".join(f"{count} {state}" for state, count in counts.items()) + f", {len(wanted)} in all")
    unknown = {each: files for each, files in named.items() if each not in wanted}
    for each, files in unknown.items():
        print(f"unknown id {each} in {', '.join(sorted(files))}", file=sys.stderr)
    return 1 if unknown else 0


def exists(name: str) -> bool:
    """Says whether a test still exists: it may have been renamed since its result was stored."""
    path, *_, test = name.rpartition(" [")[0].partition("[")[0].split("::")
    file = ROOT / path
    return file.is_file() and f"def {test}(" in file.read_text(encoding="utf-8")


def summarise(outcomes: dict[str, str]) -> dict[str, str]:
    """Returns one outcome per test and database: the worst one of all parametrised cases."""
    summary: dict[str, str] = {}
    for full_name, outcome in outcomes.items():
        test, _, database = full_name.rpartition(" ")
        name = f"{test.partition('[')[0]} {database}"
        summary[name] = max(summary.get(name, "skipped"), outcome, key=("skipped", "passed", "failed").index)
    return summary


def state_of(outcomes: dict[str, str], *, has_test: bool) -> str:
    if "failed" in outcomes.values():
        return "failed"
    if "passed" in outcomes.values():
        return "proved"
    return "not run" if has_test or outcomes else "no test"


if __name__ == "__main__":
    sys.exit(main())
