"""How much matches matter: the rules of config/importance.yaml, and a person's word, which stands above them.

Sole writer of `importance` and `is_importance_fixed`, beside discover and ingest, which ask here for what they write.
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

logger = logging.getLogger(__name__)

Words = Annotated[str, Field(min_length=1, max_length=120)]
AT_ONCE = 500


class ImportanceFileError(Exception):
    """The file cannot be used; the message names the place and what is wrong there."""


class Level(BaseModel):
    """What makes a match matter more, or less."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    occasions: tuple[Words, ...] = ()
    but_not: tuple[Words, ...] = Field(default=(), alias="not")
    series: dict[Sport, tuple[Words, ...]] = {}
    teams: dict[Sport, tuple[Words, ...]] = {}


class Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    high: Level = Level()
    low: Level = Level()


NO_RULES = Rules()  # this very object: nobody could read any


@dataclass(frozen=True)
class Named:
    """What a match is called: all that the rules look at."""

    sport: str
    title: str = ""
    series: str = ""
    round: str = ""
    team_a: str = ""
    team_b: str = ""


def judge(named: Named, rules: Rules) -> Importance:
    """Pure. Both a high and a low occasion: an ordinary match. A low one with a popular team or series: low."""
    is_big, is_small = (_is_occasion(named, level) for level in (rules.high, rules.low))
    if is_big:
        return Importance.NORMAL if is_small or _is_known(named, rules.low) else Importance.HIGH
    if is_small or _is_known(named, rules.low):
        return Importance.LOW
    return Importance.HIGH if _is_known(named, rules.high) else Importance.NORMAL


def _is_occasion(named: Named, level: Level) -> bool:
    """In what is said of the match but who plays: a team may be called anything. A youth team tells by its grade."""
    teams = [_plain(team) for team in (named.team_a, named.team_b) if team]
    said = [_without(_plain(text), teams) for text in (named.title, named.series, named.round)]
    grades = [grade for team in (named.team_a, named.team_b) if (grade := names.team(team).grade)]
    return _has(level.occasions, (_without(text, map(_plain, level.but_not)) for text in said)) or _has(
        level.occasions, (f" {grade} " for grade in grades)
    )


def _is_known(named: Named, level: Level) -> bool:
    """By the name of its series, or of one of the teams."""
    series = _plain(named.series)
    if any(series.startswith(_plain(known)) for known in _of_sport(level.series, named.sport)):
        return True
    playing = {names.team(team) for team in (named.team_a, named.team_b)} - {names.TeamName()}
    return any(names.team(known) in playing for known in _of_sport(level.teams, named.sport))


def _of_sport(words: Mapping[Sport, tuple[str, ...]], sport: str) -> tuple[str, ...]:
    return next((known for one, known in words.items() if one.value == sport), ())


def _has(occasions: Iterable[str], texts: Iterable[str]) -> bool:
    wanted = [_plain(occasion) for occasion in occasions]
    return any(occasion in text for text in texts for occasion in wanted)


def _without(text: str, phrases: Iterable[str]) -> str:
    for phrase in phrases:
        text = text.replace(phrase, " | ") if phrase.strip() else text
    return text


@lru_cache(maxsize=2048)
def _plain(text: str) -> str:
    """Its words, small, without marks, with one blank before and after each: whole words are found in it."""
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


class _Remembered:
    """The rules as the file has them; read again when it changes. One that cannot be read changes nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamp: tuple[Path, int, int] | None = None
        self._rules = NO_RULES

    def get(self) -> Rules:
        file = path()
        with self._lock:
            stamp = _stamp(file)
            if stamp != self._stamp:
                self._stamp = stamp
                self._take(file)
            return self._rules

    def _take(self, file: Path) -> None:
        try:
            self._rules = read(file)
        except ImportanceFileError as error:
            logger.error(  # noqa: TRY400 - the message says it all
                "The rules of importance cannot be read: %s. Matches keep the importance that they have, new ones are "
                "judged by the rules that were read before. Mend the file; it is read again when it has changed",
                error,
                extra={"action": "importance_file_refused", "path": str(file)},
            )


def _stamp(file: Path) -> tuple[Path, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return (file, 0, 0)
    return (file, found.st_mtime_ns, found.st_size)


_remembered = _Remembered()


def current() -> Rules:
    return _remembered.get()


def of_match(match: Match) -> Named:
    return Named(match.sport, match.title, match.series, _round(match.payload), match.team_a, match.team_b)


def follow(match: Match) -> None:
    """What the rules say of a match as it is called now, unless a person has said otherwise. The caller saves.

    Where no rules could be read since the start it stays as important as it is.
    """
    rules = current()
    if not match.is_importance_fixed and rules is not NO_RULES:
        match.importance = judge(of_match(match), rules)


def apply_to_all() -> int:
    """Judge all matches that are still read by the rules as they are now; how many matter otherwise than before."""
    rules = current()
    if rules is NO_RULES:
        return 0
    matches = Match.objects.watched().filter(is_importance_fixed=False, merged_into=None)
    told = matches.annotate(of_round=KT("payload__metadata__round"), round_name=KT("payload__metadata__round_name"))
    changed: dict[Importance, list[int]] = {level: [] for level in Importance}
    columns = ("pk", "importance", "sport", "title", "series", "team_a", "team_b", "of_round", "round_name")
    for pk, before, sport, title, series, team_a, team_b, *rounds in told.values_list(*columns).iterator(AT_ONCE):
        now = judge(Named(sport, title, series, " | ".join(map(str, filter(None, rounds))), team_a, team_b), rules)
        if now != before:
            changed[now].append(pk)
    for level, ids in changed.items():
        for start in range(0, len(ids), AT_ONCE):
            _set(Match.objects.filter(pk__in=ids[start : start + AT_ONCE], is_importance_fixed=False), level)
    return sum(map(len, changed.values()))


def _set(matches: QuerySet[Match], level: Importance) -> None:
    """Locked in one order first, as every other writer of several matches does."""
    with transaction.atomic():
        list(matches.select_for_update().order_by("pk").values_list("pk", flat=True))
        matches.update(importance=level)


def set_by_hand(match_id: int, importance: Importance | None, *, actor: str) -> Match:
    """A person says how much a match matters; None gives it back to the rules."""
    with transaction.atomic():
        match = Match.objects.select_for_update().defer("provenance").get(pk=match_id)
        match.is_importance_fixed = importance is not None
        if importance is None:
            follow(match)
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
