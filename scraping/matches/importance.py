"""The importance of matches: set by the rules of config/importance.yaml, or by a person, which overrides the rules.

The only writer of `importance` and `is_importance_fixed`; discovery and ingest call it for the rows that they write.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scraping import names
from scraping.models import Importance, Match
from scraping.payloads import Sport
from scraping.signals import importance_set
from victoryline.lib.files import WatchedFile

logger = logging.getLogger(__name__)

Phrase = Annotated[str, Field(min_length=1, max_length=120)]
BATCH = 500


class ImportanceFileError(Exception):
    """The file cannot be used; the message names the place and the mistake."""


class Level(BaseModel):
    """The phrases, series and teams of matches that are more important, or less."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    occasions: tuple[Phrase, ...] = ()
    but_not: tuple[Phrase, ...] = Field(default=(), alias="not")
    series: dict[Sport, tuple[Phrase, ...]] = {}
    teams: dict[Sport, tuple[Phrase, ...]] = {}


class Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    high: Level = Level()
    low: Level = Level()


NO_RULES = Rules()  # compared by identity: no file could be read


@dataclass(frozen=True)
class MatchNames:
    """The names of a match that the rules depend on."""

    sport: str
    title: str = ""
    series: str = ""
    round: str = ""
    team_a: str = ""
    team_b: str = ""


def importance_by_rules(match: MatchNames, rules: Rules) -> Importance:
    """Pure. Both a high and a low occasion: an ordinary match. A low one with a popular team or series: low."""
    is_big, is_small = (_is_occasion(match, level) for level in (rules.high, rules.low))
    if is_big:
        return Importance.NORMAL if is_small or _is_known(match, rules.low) else Importance.HIGH
    if is_small or _is_known(match, rules.low):
        return Importance.LOW
    return Importance.HIGH if _is_known(match, rules.high) else Importance.NORMAL


def _is_occasion(match: MatchNames, level: Level) -> bool:
    """Searches title, series and round without the team names, which may contain any word, and the teams' grades."""
    teams = [_plain(team) for team in (match.team_a, match.team_b) if team]
    texts = [_without(_plain(text), teams) for text in (match.title, match.series, match.round)]
    grades = [grade for team in (match.team_a, match.team_b) if (grade := names.team(team).grade)]
    return _has(level.occasions, (_without(text, map(_plain, level.but_not)) for text in texts)) or _has(
        level.occasions, (f" {grade} " for grade in grades)
    )


def _is_known(match: MatchNames, level: Level) -> bool:
    """Returns whether the series or one of the teams is listed."""
    series = _plain(match.series)
    if any(series.startswith(_plain(known)) for known in _of_sport(level.series, match.sport)):
        return True
    playing = {names.team(team) for team in (match.team_a, match.team_b)} - {names.TeamName()}
    return any(names.team(known) in playing for known in _of_sport(level.teams, match.sport))


def _of_sport(phrases: Mapping[Sport, tuple[str, ...]], sport: str) -> tuple[str, ...]:
    return next((known for one, known in phrases.items() if one.value == sport), ())


def _has(occasions: Iterable[str], texts: Iterable[str]) -> bool:
    wanted = [_plain(occasion) for occasion in occasions]
    return any(occasion in text for text in texts for occasion in wanted)


def _without(text: str, phrases: Iterable[str]) -> str:
    for phrase in phrases:
        text = text.replace(phrase, " | ") if phrase.strip() else text
    return text


@lru_cache(maxsize=2048)
def _plain(text: str) -> str:
    """Returns the words in lower case, without accents, with a space around each, so that whole words are found."""
    plain = unicodedata.normalize(
        "NFKD", text.casefold().replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    )
    words = re.findall(r"[^\W_]+", "".join(char for char in plain if not unicodedata.combining(char)))
    return f" {' '.join(words)} "


def read(path: Path) -> Rules:
    try:
        return Rules.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc'])) or 'all of it'}: {one['msg']}" for one in error.errors()[:5]]
        raise ImportanceFileError(f"{path.name}: {'; '.join(wrong)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ImportanceFileError(f"{path.name}: {error}") from error


def path() -> Path:
    own: Path | None = settings.CONFIG.importance_file
    return own or settings.BASE_DIR / "config" / "importance.yaml"


class _RulesFile:
    """The rules of the file; read again when it changes. A file that cannot be read changes nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = WatchedFile()
        self._rules = NO_RULES

    def get(self) -> Rules:
        file = path()
        with self._lock:
            if self._file.has_changed(file):
                self._take(file)
            return self._rules

    def _take(self, file: Path) -> None:
        try:
            self._rules = read(file)
        except ImportanceFileError as error:
            logger.error(  # noqa: TRY400 - the message says it all
                "The rules of importance cannot be read: %s. Matches keep the importance that they have, new ones get "
                "it by the rules that were read before. Correct the file; it is read again when it has changed",
                error,
                extra={"action": "importance_file_refused", "path": str(file)},
            )


_rules_file = _RulesFile()


def current() -> Rules:
    return _rules_file.get()


def names_of(match: Match) -> MatchNames:
    return MatchNames(match.sport, match.title, match.series, _round(match.payload), match.team_a, match.team_b)


def apply_rules(match: Match) -> None:
    """Sets the importance of a match by the rules, unless a person has set it. The caller saves.

    Where no rules could be read since the start it is not changed.
    """
    rules = current()
    if not match.is_importance_fixed and rules is not NO_RULES:
        match.importance = importance_by_rules(names_of(match), rules)


def apply_to_all() -> int:
    """Applies the present rules to all watched matches; returns how many have changed."""
    rules = current()
    if rules is NO_RULES:
        return 0
    matches = Match.objects.watched().filter(is_importance_fixed=False, merged_into=None)
    annotated = matches.annotate(
        of_round=KT("payload__metadata__round"), round_name=KT("payload__metadata__round_name")
    )
    changed: dict[Importance, list[int]] = {level: [] for level in Importance}
    columns = ("pk", "importance", "sport", "title", "series", "team_a", "team_b", "of_round", "round_name")
    for pk, before, sport, title, series, team_a, team_b, *rounds in annotated.values_list(*columns).iterator(BATCH):
        now = importance_by_rules(
            MatchNames(sport, title, series, " | ".join(map(str, filter(None, rounds))), team_a, team_b), rules
        )
        if now != before:
            changed[now].append(pk)
    for level, ids in changed.items():
        for start in range(0, len(ids), BATCH):
            _set(Match.objects.filter(pk__in=ids[start : start + BATCH], is_importance_fixed=False), level)
    return sum(map(len, changed.values()))


def _set(matches: QuerySet[Match], level: Importance) -> None:
    """Locks the rows in the order that every writer of several matches uses."""
    with transaction.atomic():
        list(matches.select_for_update().order_by("pk").values_list("pk", flat=True))
        matches.update(importance=level)


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


def _round(payload: dict[str, Any]) -> str:
    metadata = payload.get("metadata") or {}
    return " | ".join(str(metadata[key]) for key in ("round", "round_name") if metadata.get(key))
