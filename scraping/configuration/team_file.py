"""Reads config/teams.yaml and writes it to the table of aliases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from scraping.models import TeamAlias
from scraping.names import squeezed
from scraping.payloads import Sport

Name = Annotated[str, Field(min_length=1, max_length=120)]
# The section `nations` holds for every sport.
_FILE = TypeAdapter(dict[Sport | Literal["nations"], dict[Name, list[Name]]])


class TeamFileError(Exception):
    """The file is invalid; the message names the place and the problem."""


def read(path: Path) -> list[TeamAlias]:
    """Returns the aliases of the file, not saved. An alias of two teams is refused."""
    try:
        teams = _FILE.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise TeamFileError(f"{path.name}: {error}") from error
    found: dict[tuple[str, str], TeamAlias] = {}
    for sport, name, alias in _entries(teams):
        row = TeamAlias(sport=sport.value, alias=alias, name=name, squeezed=squeezed(alias))
        first = found.setdefault((row.sport, row.squeezed), row)
        if first.name != name:
            raise TeamFileError(f"{path.name}: {sport.value}: {alias} is {first.name} and {name}")
    return list(found.values())


def _entries(
    teams: Mapping[Sport | Literal["nations"], Mapping[str, Sequence[str]]],
) -> Iterator[tuple[Sport, str, str]]:
    for section, named in teams.items():
        for sport in (section,) if isinstance(section, Sport) else Sport:
            for name, aliases in named.items():
                yield from ((sport, name, alias) for alias in aliases)


def sync(rows: list[TeamAlias], *, is_reset: bool) -> int:
    """Writes missing aliases, with `is_reset` also changed ones; returns how many the file has."""
    if is_reset:
        TeamAlias.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=("sport", "squeezed"), update_fields=("alias", "name")
        )
    else:
        TeamAlias.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
