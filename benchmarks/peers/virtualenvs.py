"""Virtual environments of the peers and of the drawing program, below var/bench."""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from pathlib import Path

from benchmarks.errors import BenchError
from benchmarks.progress import say
from scripts import steps
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import remove_tree

FOLDER = PROJECT_ROOT / "var" / "bench"


def pins(file: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w-]+)==(\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE))


def ensure_installed(name: str, file: Path, venv: Path) -> None:
    """Creates the virtual environment unless it is up to date."""
    stamp, digest = venv / ".complete", hashlib.sha256(file.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    remove_tree(venv)
    say(f"installing {name} in {venv.relative_to(PROJECT_ROOT)}")
    with contextlib.redirect_stdout(sys.stderr), steps.step("  pip install"):
        install = [venv / "bin" / "pip", "install", "--no-input", "--disable-pip-version-check", "-r", file]
        if not steps.run([sys.executable, "-m", "venv", venv]) or not steps.run(install):
            raise BenchError(f"{name} could not be installed; see the output above")
    stamp.write_text(digest)
