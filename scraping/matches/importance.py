"""The importance of matches: set by the rules of config/importance.yaml, or by a person, which overrides the rules.

The only writer of `importance` and `is_importance_fixed`; discovery and ingest call it for the rows that they write.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated

import yaml
from django.conf import settings
from django.db import transaction
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from scraping import names
from scraping.models import Importance, Match
from scraping.payloads import Sport
from scraping.signals import importance_set

Phrase = Annotated[str, Field(min_length=1, max_length=120)]
SportName = Annotated[str, AfterValidator(lambda name: Sport(name).value)]
BATCH = 500
WORDS = re.compile(r"[^\W_]+")


class ImportanceFileError(Exception):
    """The file cannot be used; the message names the place and the mistake."""


class Level(BaseModel):
    """The phrases, series and teams of matches that are more important, or less."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    occasions: tuple[Phrase, ...] = ()
    but_not: tuple[Phrase, ...] = Field(default=(), alias="not")
    series: dict[SportName, tuple[Phrase, ...]] = {}
    teams: dict[SportName, tuple[Phrase, ...]] = {}


class Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    high: Level = Level()
    low: Level = Level()


def importance_by_rules(match: Match, rules: Rules) -> Importance:
    """Pure. Both a high and a low occasion: an ordinary match. A low one with a popular team or series: low."""
    is_big, is_small = (_is_occasion(match, level) for level in (rules.high, rules.low))
    if is_big:
        return Importance.NORMAL if is_small or _is_known(match, rules.low) else Importance.HIGH
    if is_small or _is_known(match, rules.low):
        return Importance.LOW
    return Importance.HIGH if _is_known(match, rules.high) else Importance.NORMAL


def _is_occasion(match: Match, level: Level) -> bool:
    """Searches title, series and round without the team names, which may contain any word, and the teams' grades."""
    metadata = match.payload.get("metadata") or {}
    rounds = " | ".join(str(metadata[key]) for key in ("round", "round_name") if metadata.get(key))
    left_out = [_plain(text) for text in (match.team_a, match.team_b, *level.but_not) if _plain(text).strip()]
    texts = [f" {grade} " for team in (match.team_a, match.team_b) if (grade := names.team(team).grade)]
    for text in map(_plain, (match.title, match.series, rounds)):
        for phrase in left_out:
            text = text.replace(phrase, " | ")  # noqa: PLW2901 - the text with one phrase less
        texts.append(text)
    return any(_plain(occasion) in text for text in texts for occasion in level.occasions)


def _is_known(match: Match, level: Level) -> bool:
    series = _plain(match.series)
    if any(series.startswith(_plain(known)) for known in level.series.get(match.sport, ())):
        return True
    playing = {names.team(team) for team in (match.team_a, match.team_b)} - {names.TeamName()}
    return any(names.team(known) in playing for known in level.teams.get(match.sport, ()))


@lru_cache(maxsize=2048)
def _plain(text: str) -> str:
    """Returns the words in lower case, without accents, with a space around each, so that whole words are found."""
    bare = names.plain(text.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", ""))
    return f" {' '.join(WORDS.findall(bare))} "


def read(path: Path) -> Rules:
    try:
        return Rules.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc'])) or 'all of it'}: {one['msg']}" for one in error.errors()[:5]]
        raise ImportanceFileError(f"{path.name}: {'; '.join(wrong)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ImportanceFileError(f"{path.name}: {error}") from error


def path() -> Path:
    return Path(settings.BASE_DIR) / "config" / "importance.yaml"


@cache
def current() -> Rules:
    """Returns the rules of the file as it was at the start of the process; system checks refuse an invalid one."""
    return read(path())


def apply_rules(match: Match) -> None:
    """Sets the importance of a match by the rules, unless a person has set it. The caller saves."""
    if not match.is_importance_fixed:
        match.importance = importance_by_rules(match, current())


def apply_to_all() -> int:
    """Applies the present rules to all watched matches; returns how many have changed."""
    rules = current()
    matches = Match.objects.watched().filter(is_importance_fixed=False, merged_into=None)
    changed: dict[Importance, list[int]] = {level: [] for level in Importance}
    for match in matches.only("importance", "sport", "title", "series", "team_a", "team_b", "payload").iterator(BATCH):
        level = importance_by_rules(match, rules)
        if level != match.importance:
            changed[level].append(match.pk)
    for level, ids in changed.items():
        rows = Match.objects.filter(pk__in=ids, is_importance_fixed=False)
        with transaction.atomic():
            # Locks the rows in the order that every writer of several matches uses.
            list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
            rows.update(importance=level)
    return sum(map(len, changed.values()))


def set_by_hand(match_id: int, importance: Importance | None, *, actor: str) -> Match:
    """Sets the importance that a person has chosen; None returns it to the rules."""
    with transaction.atomic():
        match = Match.objects.select_for_update().defer("provenance").get(pk=match_id)
        match.is_importance_fixed = importance is not None
        if importance is None:
            apply_rules(match)
        else:
            match.importance = importance
        match.save(update_fields=("importance", "is_importance_fixed"))
    importance_set.send_robust(
        sender=Match,
        match_id=match.pk,
        importance=int(match.importance),
        actor=actor,
        is_fixed=match.is_importance_fixed,
    )
    return match
