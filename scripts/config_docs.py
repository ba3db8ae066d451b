"""`make config-docs`: writes docs/configuration.md and config/victoryline.example.yaml from the declared settings."""

import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic.fields import FieldInfo

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from victoryline.configuration import PROJECT_ROOT, Config  # noqa: E402 - needs the path above
from victoryline.configuration.fields import Group, allowed  # noqa: E402
from victoryline.configuration.loading import GROUPS, YAML_KEYS  # noqa: E402

DOCUMENT = ROOT / "docs" / "configuration.md"
EXAMPLE = ROOT / "config" / "victoryline.example.yaml"
INTRODUCTION = """# Configuration

Written by `make config-docs` from `victoryline/configuration/`; change it there.

Every variable can be set in the environment, and most in a YAML file that `CONFIG_FILE` names (see
[the example](../config/victoryline.example.yaml)). The environment goes first, then the file, then the default; an
empty variable counts as not set. Relative paths start at the project's folder. Secrets are read from the environment
only, and never printed.

Everything is checked when a process starts. A value of the wrong type or out of its range, an unknown key in the file,
and values that contradict each other (a soft memory limit above the hard one) stop the start with a message that names
each variable, its value, its origin and the allowed values. `python manage.py doctor` checks the rest: browser,
database, broker, memory, ports.

A running system reads a changed file again when a scraper is replaced, when a pause ends, and with each heartbeat of a
worker. This applies to the settings of reading: intervals, retries, breakers, pauses, leases, age and memory limits
of a scraper. All other settings, and the environment, are read at the start only. An invalid file changes nothing: the
current values stay in use, and an ERROR in the log names each problem.
"""
EXAMPLE_HEAD = """\
# Copy it, keep what you change, and name it in CONFIG_FILE. The values are the defaults; the environment goes first.
# Secrets (SECRET_KEY, JWT_SIGNING_KEY, DATABASE_URL, REDIS_URL, ...) have no place here: set them in the environment.

"""


def document() -> str:
    return INTRODUCTION + "".join(_section(group) for group in GROUPS)


def example() -> str:
    lines: list[str] = []
    opened: list[str] = []
    keys = {key: name for name, key in YAML_KEYS.items() if key}
    roots = list(dict.fromkeys(key.split(".")[0] for key in keys))
    for key in sorted(keys, key=lambda key: (roots.index(key.split(".")[0]), key.split(".")[:-1])):
        *sections, last = key.split(".")
        lines += _open_sections(opened, sections)
        opened = sections
        field = Config.model_fields[keys[key]]
        indent = "  " * len(sections)
        lines += [
            f"{indent}# {field.description} Allowed: {allowed(field)}.",
            f"{indent}{last}: {_as_yaml(field.default)}".rstrip(),
        ]
    return EXAMPLE_HEAD + "\n".join(lines).lstrip("\n") + "\n"


def _section(group: type[Group]) -> str:
    heading = str(group.__doc__).rstrip(".")
    rows = "".join(_row(name, field) for name, field in group.model_fields.items())
    return f"\n## {heading}\n| variable | default | allowed | in the file | meaning |\n|---|---|---|---|---|\n{rows}"


def _row(name: str, field: FieldInfo) -> str:
    default = "" if field.default in ("", None, ()) else f"`{_as_text(field.default)}`"
    key = f"`{YAML_KEYS[name]}`" if YAML_KEYS[name] else "environment only"
    return f"| `{name.upper()}` | {default} | {allowed(field)} | {key} | {field.description} |\n"


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


def _open_sections(opened: list[str], wanted: list[str]) -> list[str]:
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
