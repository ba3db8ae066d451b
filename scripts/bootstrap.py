"""Prepares this folder to run, test or lint: environment, pinned packages, Chromium, servers for the tests.

Runs with the system's Python and the standard library. Skips finished steps and asks no questions.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older one must show this message
    sys.exit("VictoryLine needs Python 3.11 or newer, this one is older. On Debian: apt-get install python3")

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.steps import StepFailedError, run, step  # noqa: E402 - needs the path above
from scripts.system_packages import find_program, install  # noqa: E402
from victoryline.lib import chromium  # noqa: E402

VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
GROUPS = {"run": ("run",), "dev": ("run", "dev"), "test": ("run", "dev")}
SERVERS = {
    "initdb": "postgresql",
    "postgres": "postgresql",
    "redis-server": "redis-server",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "amtool": "prometheus-alertmanager",
    "prometheus-alertmanager": "prometheus-alertmanager",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="purpose", choices=tuple(GROUPS), default="run")
    parser.add_argument("--test", dest="purpose", action="store_const", const="test")
    purpose = parser.parse_args().purpose
    var_dir = ROOT / (os.environ.get("VAR_DIR") or "var")
    var_dir.mkdir(parents=True, exist_ok=True)
    with (var_dir / "bootstrap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two terminals at once: the second waits and finds everything done
        try:
            ensure_venv()
            ensure_packages(GROUPS[purpose])
            if purpose != "dev":
                ensure_chromium(var_dir)
            if purpose == "test":
                ensure_servers()
        except StepFailedError as error:
            print(f"\n{error}", file=sys.stderr)
            return 1
    return 0


def ensure_venv() -> None:
    if (
        VENV_PYTHON.exists()
        and subprocess.run([VENV_PYTHON, "-c", ""], capture_output=True, check=False).returncode == 0
    ):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if (
        subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
        != 0
    ):
        install(package, environ=os.environ)
    with step("Making the virtual environment in .venv"):
        shutil.rmtree(VENV, ignore_errors=True)
        if not run([sys.executable, "-m", "venv", VENV]):
            raise StepFailedError(f"Python can't make virtual environments. On Debian: apt-get install {package}")


def ensure_packages(groups: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    wanted: list[str] = []
    stamps: dict[Path, str] = {}
    for group in groups:
        packages = project["dependencies"] if group == "run" else project["optional-dependencies"][group]
        stamp = VENV / f".victoryline-{group}"
        digest = hashlib.sha256("\n".join([*packages, pins]).encode()).hexdigest()
        if not stamp.exists() or stamp.read_text() != digest:
            wanted += packages
            stamps[stamp] = digest
    if not wanted:
        return
    with step(f"Installing {len(wanted)} pinned packages and their dependencies"):
        command: list[str | Path] = [VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        if not run([*command, "--progress-bar", "off", "-c", ROOT / "constraints.txt", *wanted]):
            raise StepFailedError("pip could not install the packages; see its output above. Is the network available?")
    for stamp, digest in stamps.items():
        stamp.write_text(digest)


def ensure_chromium(var_dir: Path) -> None:
    if chosen := os.environ.get("CHROMIUM_PATH", "").strip():
        if chromium.version(Path(chosen)) is None:
            raise StepFailedError(f"CHROMIUM_PATH is {chosen}, which does not run. Correct it, or unset it.")
        return
    note = chromium.remembered_at(var_dir)
    if note.is_file() and os.access(note.read_text().strip(), os.X_OK):
        return
    note.unlink(missing_ok=True)
    program, its_version = _working_chromium(var_dir) or _install_chromium(var_dir)
    note.write_text(f"{program}\n")
    print(f"  Browser: {its_version}", flush=True)


def _working_chromium(var_dir: Path) -> tuple[Path, str] | None:
    tried = ((program, chromium.version(program)) for program in chromium.candidates(var_dir, os.environ))
    return next(((program, found) for program, found in tried if found), None)


def _install_chromium(var_dir: Path) -> tuple[Path, str]:
    with step("Trying Playwright's download of Chromium"):
        downloaded = run([VENV_PYTHON, "-m", "playwright", "install", "chromium"], silent_seconds=120, show_tail=False)
    if downloaded and (found := _working_chromium(var_dir)):
        return found
    print("  Playwright's download did not work here; trying the system's package", flush=True)
    install("chromium", environ=os.environ)
    if found := _working_chromium(var_dir):
        return found
    raise StepFailedError("No Chromium runs here. Install one and set CHROMIUM_PATH to its program.")


def ensure_servers() -> None:
    missing = sorted({package for program, package in SERVERS.items() if find_program(program) is None})
    if missing:
        install(*missing, environ=os.environ)
    if still := [program for program in SERVERS if find_program(program) is None]:
        raise StepFailedError(f"The tests need these programs, which are still missing: {', '.join(still)}")


if __name__ == "__main__":
    sys.exit(main())
