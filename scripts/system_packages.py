"""Finds programs and, where allowed, installs their Debian packages. Standard library only."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scripts.steps import StepFailedError, run, step

# Installing a server must not start it: the tests start their own, on free ports.
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1", "LC_ALL": "C.UTF-8"}
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/victoryline.conf")
_updated = False


def find_program(name: str) -> Path | None:
    """Returns a program on PATH, or in Debian's folders of PostgreSQL."""
    if found := shutil.which(name):
        return Path(found)
    hidden = [path for path in Path("/usr/lib/postgresql").glob(f"*/bin/{name}") if os.access(path, os.X_OK)]
    return max(hidden, key=lambda path: int(path.parts[-3]), default=None)


def install(*packages: str, environ: Mapping[str, str]) -> None:
    """Install packages with apt-get, or raise StepFailedError with the line to type."""
    by_hand = f"Please type: sudo apt-get install -y {' '.join(packages)}"
    if environ.get("VICTORYLINE_NO_INSTALL", "0") not in ("", "0"):
        raise StepFailedError(f"VICTORYLINE_NO_INSTALL forbids installing system packages. {by_hand}")
    if shutil.which("apt-get") is None:
        raise StepFailedError(f"There is no apt-get here. Install with your package manager: {' '.join(packages)}")
    prefix = _become_root()
    if prefix is None:
        raise StepFailedError(f"Installing needs root, and sudo asks for a password. {by_hand}")
    _apt(prefix, environ, packages, by_hand)


def _apt(prefix: list[str], environ: Mapping[str, str], packages: tuple[str, ...], by_hand: str) -> None:
    global _updated  # noqa: PLW0603 - the package lists are fetched once a run
    command = [*prefix, "env", *(f"{key}={value}" for key, value in QUIET.items()), "apt-get", "-q", "-y"]
    if not _updated:
        with step("Fetching Debian's package lists"):
            _updated = run([*command, "update"], env=environ, silent_seconds=180)
    with step(f"Installing {', '.join(packages)}"), _no_database_cluster(prefix, packages):
        if not run([*command, "install", "--no-install-recommends", *packages], env=environ):
            raise StepFailedError(f"apt-get failed. {by_hand}")


def _become_root() -> list[str] | None:
    """Returns the prefix for a command to run as root; None if that needs a password."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None


@contextmanager
def _no_database_cluster(prefix: list[str], packages: tuple[str, ...]) -> Iterator[None]:
    """Keeps Debian's PostgreSQL packages from creating a database cluster meanwhile."""
    if not any(package.startswith("postgresql") for package in packages) or NO_CLUSTER.exists():
        yield
        return
    subprocess.run([*prefix, "mkdir", "-p", NO_CLUSTER.parent], check=True)
    subprocess.run(
        [*prefix, "tee", NO_CLUSTER], input=b"create_main_cluster = false\n", stdout=subprocess.DEVNULL, check=True
    )
    try:
        yield
    finally:
        subprocess.run([*prefix, "rm", "-f", NO_CLUSTER], check=False)
