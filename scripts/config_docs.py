"""`make config-docs`: writes docs/configuration.md and config/victoryline.example.yaml from the table of variables."""

import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from victoryline.env import PROJECT_ROOT, Config  # noqa: E402 - needs the path above
from victoryline.lib.variables import Variable, table  # noqa: E402

DOCUMENT = ROOT / "docs" / "configuration.md"
EXAMPLE = ROOT / "config" / "victoryline.example.yaml"
INTRODUCTION = """# Configuration

Written by `make config-docs` from `victoryline/env.py`; change it there.

Every variable can be set in the environment, and most in a YAML file that `CONFIG_FILE` names (see
[the example](../config/victoryline.example.yaml)). The environment goes first, then the file, then the default; an
empty variable counts as not set. Relative paths start at the project's folder. Secrets are read from the environment
only, and never printed.

Everything is checked when a process starts. A value of the wrong type or out of its range, an unknown key in the file,
and values that contradict each other (a soft memory limit above the hard one) stop the start with a message that names
each variable, its value, where it came from and what is allowed. `python manage.py doctor` checks the rest: browser,
database, broker, memory, ports.

A running system takes a changed file by itself when something begins anew: a scraper is replaced, a pause ends, a match
is read afresh. That goes for the numbers that steer reading: intervals and calm times, retries and the retry budget,
breakers, pauses, leases, limits of age, silence and memory of a scraper, drift. All other variables, and the
environment, are read at the start only. A file that cannot be used changes nothing: the numbers in use go on, and an
ERROR in the log says what is wrong with it.

| variable | default | allowed | in the file | meaning |
|---|---|---|---|---|
"""
EXAMPLE_HEAD = """\
# Copy it, keep what you change, and name it in CONFIG_FILE. The values are the defaults; the environment goes first.
# Secrets (SECRET_KEY, JWT_SIGNING_KEY, DATABASE_URL, REDIS_URL, ...) have no place here: set them in the environment.

"""


def document() -> str:
    return INTRODUCTION + "".join(_row(name, variable) for name, variable in table(Config).items())


def example() -> str:
    lines: list[str] = []
    opened: tuple[str, ...] = ()
    for _, variable in sorted(table(Config).items(), key=lambda item: _section_order(item[1])):
        if variable.yaml:
            *sections, key = variable.yaml.split(".")
            lines += _open_sections(opened, tuple(sections))
            opened = tuple(sections)
            indent = "  " * len(sections)
            lines += [
                f"{indent}# {_meaning(variable)} Allowed: {variable.allowed}.",
                f"{indent}{key}: {_as_yaml(variable.default)}".rstrip(),
            ]
    return EXAMPLE_HEAD + "\n".join(lines).lstrip("\n") + "\n"


def _row(name: str, variable: Variable) -> str:
    default = "" if variable.default in ("", None) else f"`{_as_text(variable.default)}`"
    place = f"`{variable.yaml}`" if variable.yaml else "environment only"
    return f"| `{name}` | {default} | {variable.allowed} | {place} | {_meaning(variable)} |\n"


def _meaning(variable: Variable) -> str:
    if not variable.planned:
        return variable.help
    return f"{variable.help} Read and checked already; takes effect with {variable.planned}."


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Path):
        return str(value.relative_to(PROJECT_ROOT))
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _as_yaml(value: Any) -> str:
    if value in (None, ""):
        return ""
    if isinstance(value, tuple):
        return yaml.safe_dump(list(value), default_flow_style=True).strip()
    text = _as_text(value)
    return yaml.safe_dump(text).strip().removesuffix("\n...").strip() if isinstance(value, str) else text


def _section_order(variable: Variable) -> tuple[Any, ...]:
    """Sections in the order of their first variable; inside a section plain keys before subsections."""
    order = list(dict.fromkeys(each.yaml.split(".")[0] for each in table(Config).values() if each.yaml))
    sections = variable.yaml.split(".")[:-1]
    return (order.index(variable.yaml.split(".")[0]) if variable.yaml else 99, sections)


def _open_sections(opened: tuple[str, ...], wanted: tuple[str, ...]) -> list[str]:
    shared = 0
    while shared < min(len(opened), len(wanted)) and opened[shared] == wanted[shared]:
        shared += 1
    lines = [f"{'  ' * depth}{wanted[depth]}:" for depth in range(shared, len(wanted))]
    return ["", *lines] if lines and shared == 0 else lines


def main() -> None:
    for path, text in ((DOCUMENT, document()), (EXAMPLE, example())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
