"""`make lint`: style, types, layers, migrations, deployment settings. Runs all checks and lists the failed ones."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("victoryline", "victoryline_client", "scraping", "monitoring", "apiauth", "stadium", "scripts")
PYTHON = sys.executable
BIN = Path(sys.executable).parent
# Settings of a production machine, for `check --deploy`.
PRODUCTION = {
    "SECRET_KEY": "a-secret-key-that-is-used-for-the-deployment-check-only-0123456789",
    "JWT_SIGNING_KEY": "a-signing-key-that-is-used-for-the-deployment-check-only-98765",
    "DATABASE_URL": "postgres://victoryline@127.0.0.1:1/victoryline",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "HTTPS": "true",
    "ALLOWED_HOSTS": "victoryline.example",
}
CHECKS: tuple[tuple[str, list[str], dict[str, str]], ...] = (
    ("style", [str(BIN / "ruff"), "check", "."], {}),
    ("format", [str(BIN / "ruff"), "format", "--check", "."], {}),
    ("types", [str(BIN / "mypy"), *PACKAGES], {}),
    ("layers", [str(BIN / "lint-imports")], {}),
    ("migrations", [PYTHON, "manage.py", "makemigrations", "--check", "--dry-run"], {}),
    ("deployment", [PYTHON, "manage.py", "check", "--deploy", "--fail-level", "WARNING"], PRODUCTION),
)


def main() -> int:
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="vl-lint-") as folder:
        for name, command, extra in CHECKS:
            began = time.monotonic()
            env = {**os.environ, "VAR_DIR": folder, "LOG_LEVEL": "ERROR", **extra}
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            is_good = done.returncode == 0
            print(f"{name:12} {'ok' if is_good else 'FAILED'}  {time.monotonic() - began:.1f} s", flush=True)
            if not is_good:
                failed.append(name)
                print(done.stdout + done.stderr, flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "all good", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
