"""Finds a Chromium: the configured one, Playwright's, the system's. Standard library only: bootstrap uses it."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find(*, chosen: Path | None, var_dir: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the Chromium to start, or None. A configured path that does not exist is not replaced by another."""
    if chosen is not None:
        return chosen if _is_program(chosen) else None
    return next(candidates(var_dir, environ), None)


def candidates(var_dir: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yields every Chromium of this machine, best first; the one that bootstrap tested comes first."""
    note = remembered_at(var_dir)
    places = [Path(note.read_text(encoding="utf-8").strip())] if note.is_file() else []
    places += playwrights_own(environ)
    places += [Path(found) for name in SYSTEM_NAMES if (found := shutil.which(name, path=environ.get("PATH")))]
    yield from (place for place in places if _is_program(place))


def playwrights_own(environ: Mapping[str, str]) -> list[Path]:
    """Returns the downloads of `playwright install chromium`, newest first."""
    home = (
        environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path(environ.get("HOME", "~")).expanduser() / ".cache/ms-playwright"
    )
    found = Path(home).glob("chromium-*/chrome-linux*/chrome")
    return sorted(found, key=lambda program: _revision(program.parent.parent.name), reverse=True)


def remembered_at(var_dir: Path) -> Path:
    return var_dir / "chromium_path"


def version(program: Path, *, timeout_seconds: float = 20) -> str | None:
    """Returns the output of --version; None if the program does not run, for lack of a library for example."""
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, timeout=timeout_seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.decode(errors="replace").strip() or None if answer.returncode == 0 else None


def _revision(folder: str) -> int:
    digits = folder.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
