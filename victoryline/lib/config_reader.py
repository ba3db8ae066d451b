"""Reads a table of variables: the environment first, then a YAML file, then the default.

Every problem is collected and told at once: an operator should not have to start a service five times to find five
mistakes.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from victoryline.lib.variables import Variable, table


def read(config: type[Any], environ: Mapping[str, str], yaml_path: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Values by field name, and every problem on the way. A variable with a problem keeps its default."""
    variables = table(config)
    from_file, problems = _read_yaml(variables, yaml_path)
    values: dict[str, Any] = {}
    for name, variable in variables.items():
        text, origin = environ.get(name, "").strip(), "environment"
        if not text and name in from_file:
            text, origin = from_file[name]
        if not text:
            continue
        try:
            values[name.lower()] = variable.read(text)
        except ValueError:
            shown = "***" if variable.secret else f'"{text}"'
            problems.append(f"{name} is {shown} ({origin}); allowed: {variable.allowed}")
    return values, problems


def _read_yaml(variables: Mapping[str, Variable], path: Path | None) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """(text, origin) by variable name: YAML's own types are written back as text, so one parser serves both origins."""
    if path is None:
        return {}, []
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        return {}, [f'CONFIG_FILE is "{path}"; it can\'t be read: {error.strerror}']
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return {}, [f"{path.name} is not valid YAML: {' '.join(str(error).split())}"]
    if not isinstance(document, dict | None):
        return {}, [f"{path.name} must hold a mapping at its top level"]
    known: dict[str, tuple[str, Mapping[str, str]]] = {
        variable.yaml: (name, {}) for name, variable in variables.items() if variable.yaml
    }
    known |= {v.yaml_words[0]: (name, v.yaml_words[1]) for name, v in variables.items() if v.yaml_words[0]}
    found: dict[str, tuple[str, str]] = {}
    problems: list[str] = []
    for place, value in _leaves(document or {}, set(known)):
        if place not in known:
            problems.append(_unknown(place, path.name, variables, known))
        elif isinstance(value, dict):
            problems.append(f"{place} ({path.name}) must be a value, not a section")
        elif value is not None:
            name, meaning = known[place]
            text = _as_text(value)
            found.setdefault(name, (meaning.get(text, text), f"{path.name}, {place}"))
    return found, problems


def _leaves(node: Mapping[Any, Any], known: set[str], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in node.items():
        place = f"{prefix}{key}"
        if isinstance(value, dict) and place not in known:
            leaves += _leaves(value, known, place + ".")
        elif value is not None or place in known or not any(each.startswith(place + ".") for each in known):
            leaves.append((place, value))
    return leaves


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    return str(value)


def _unknown(place: str, file: str, variables: Mapping[str, Variable], known: Mapping[str, Any]) -> str:
    last = place.rsplit(".", 1)[-1]
    if variables.get(last.upper(), None) and variables[last.upper()].secret:
        return f"{place} ({file}) is a secret: set {last.upper()} in the environment, never in a file"
    near = get_close_matches(place, known, n=1, cutoff=0.6)
    return f"{place} ({file}) is not a known key" + (f"; did you mean {near[0]}?" if near else "")
