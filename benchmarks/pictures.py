"""Pictures of results that hold a `series` and a `picture`: PNG and SVG beside the JSON.

Matplotlib is no part of the system: the pictures are drawn by a program in an environment of its own.
`python -m benchmarks.pictures NAME...` draws those of saved results again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.errors import BenchError
from benchmarks.peers import environment
from benchmarks.progress import say
from scripts import steps

PROGRAM = Path(__file__).with_name("draw.py")
PINS = Path(__file__).with_name("draw.txt")
VENV = environment.FOLDER / "draw-venv"


def picture(title: str, *, age_s: float, memory_mb: float) -> dict[str, Any]:
    """What a bench says about its picture: the limits are drawn as lines."""
    return {"title": title, "age_limit_s": age_s, "memory_limit_mb": memory_mb}


def draw(file: Path) -> list[Path]:
    """Draw the picture of a saved result; nothing if it has none. A bench is not lost for want of its picture."""
    if not file.exists() or "series" not in json.loads(file.read_text(encoding="utf-8")):
        return []
    try:
        environment.ensure_installed("matplotlib", PINS, VENV)
    except BenchError as error:
        say(f"no picture of {file.name}: {error}")
        return []
    drawn = [file.with_suffix(end) for end in (".png", ".svg")]
    if not steps.run([VENV / "bin" / "python", PROGRAM, file, *drawn]):
        say(f"no picture of {file.name}; what was said last is above")
        return []
    return drawn


def main() -> None:
    for name in sys.argv[1:]:
        for path in draw(results.FOLDER / f"{name}.json"):
            say(f"drawn: {path.name}")


if __name__ == "__main__":
    main()
