"""Draws results with `series` and `picture` as PNG and SVG beside the JSON.

Matplotlib is not a dependency of the system: draw.py runs in its own virtual environment.
`python -m benchmarks.pictures NAME...` draws saved results again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.errors import BenchError
from benchmarks.peers import virtualenvs
from benchmarks.progress import say
from scripts import steps

PROGRAM = Path(__file__).with_name("draw.py")
PINS = Path(__file__).with_name("draw.txt")
VENV = virtualenvs.FOLDER / "draw-venv"


def picture(title: str, *, age_s: float, memory_mb: float) -> dict[str, Any]:
    """Returns the title of a picture and its limits, which are drawn as lines."""
    return {"title": title, "age_limit_s": age_s, "memory_limit_mb": memory_mb}


def draw(file: Path) -> list[Path]:
    """Draws the picture of a saved result, if it has one. A failure does not fail the bench."""
    if not file.exists() or "series" not in json.loads(file.read_text(encoding="utf-8")):
        return []
    try:
        virtualenvs.ensure_installed("matplotlib", PINS, VENV)
    except BenchError as error:
        say(f"no picture of {file.name}: {error}")
        return []
    drawn = [file.with_suffix(end) for end in (".png", ".svg")]
    if not steps.run([VENV / "bin" / "python", PROGRAM, file, *drawn]):
        say(f"no picture of {file.name}; see the output above")
        return []
    return drawn


def main() -> None:
    for name in sys.argv[1:]:
        for path in draw(results.FOLDER / f"{name}.json"):
            say(f"drawn: {path.name}")


if __name__ == "__main__":
    main()
