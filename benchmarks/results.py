"""The common keys of a result, and its file."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib import chromium

FOLDER = PROJECT_ROOT / "benchmarks" / "results"


def complete(bench: str, measured: dict[str, Any], *, took_seconds: float, load_before: float) -> dict[str, Any]:
    """Returns the keys of the bench, followed by machine and time."""
    return {
        "bench": bench,
        **measured,
        "problems": measured.get("problems", []),
        "machine": machine() | {"load_before": round(load_before, 1)},  # other load affects the rates
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "took_seconds": round(took_seconds),
    }


def save(result: dict[str, Any], *, variant: str = "") -> Path:
    """Writes benchmarks/results/NAME.json; a variant (another database) has its own file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{result['bench']}{f'-{variant}' if variant else ''}.json"
    path.write_text(_readable(result) + "\n", encoding="utf-8")
    return path.relative_to(PROJECT_ROOT)


def _readable(result: dict[str, Any]) -> str:
    """Returns indented JSON with each list of numbers on one line: a series has hundreds."""
    text = json.dumps(result, indent=2)
    return re.sub(r"\[([-\d.,\s]+)\]", lambda found: f"[{' '.join(found[1].split())}]", text)


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "memory_mb": psutil.virtual_memory().total // 2**20,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions(program: Path, *packages: str, server: Path | None = None) -> dict[str, str]:
    found = {name: version(name) for name in packages}
    found["chromium"] = chromium.version(program) or "unknown"
    if server is not None:
        found["database"] = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
    return {name: text.strip() for name, text in found.items()}


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the smallest value that at least `percent` of the values do not exceed; 0 without values."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
