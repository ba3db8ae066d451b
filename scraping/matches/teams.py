"""Gives each side of a match the team that its name means: stable ids for consumers.

A team is known by the identity of its name (`names.identity`), which the table of aliases decides. Done by the
scheduler: new and changed matches every few seconds, all of them every ten minutes and after a change of the aliases.
Sole writer of the table of teams, and of the known teams of a match.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from scraping.models import Match, MatchLifecycle, Team, TeamAlias
from scraping.names import Aliases, identity, squeezed
from scraping.payloads import Sport
from scraping.signals import team_alias_deleted

logger = logging.getLogger(__name__)

RECENT = timedelta(minutes=1)  # matches whose names may have changed since the last step
KEPT = timedelta(days=365)  # a team without a match
NAME_LENGTH = 120
Key = tuple[str, str]  # sport and identity
COLUMNS = ("pk", "sport", "team_a", "team_b", "known_team_a", "known_team_b")


def assign_new(now: datetime) -> int:
    """Assigns teams to matches that have none or changed within the last minute; returns how many were updated."""
    is_unknown = Q(known_team_a=None) | Q(known_team_b=None)
    return _assign(_listed().filter(is_unknown | Q(last_changed_at__gte=now - RECENT)), _aliases(), now)


def assign_all(now: datetime) -> int:
    """Assigns teams to all listed matches: the aliases may have changed. Returns how many were updated."""
    aliases = _aliases()
    updated = _assign(_listed(), aliases, now)
    _redirect(aliases, now)
    _delete_unused(now)
    if updated:
        logger.info("%d matches have other team ids", updated, extra={"action": "teams_assigned", "changed": updated})
    return updated


def delete_alias(pk: int, *, actor: str, reason: str, now: datetime) -> None:
    row = TeamAlias.objects.get(pk=pk)
    row.delete()
    team_alias_deleted.send_robust(
        sender=TeamAlias, alias=row.alias, name=row.name, sport=row.sport, reason=reason, actor=actor, now=now
    )
    assign_all(now)


def _aliases() -> dict[str, Aliases]:
    return {sport.value: TeamAlias.objects.names(sport.value) for sport in Sport}


def _listed() -> QuerySet[Match]:
    return Match.objects.exclude(lifecycle=MatchLifecycle.ARCHIVED).filter(merged_into=None).exclude(team_a="")


def _assign(matches: QuerySet[Match], aliases: dict[str, Aliases], now: datetime) -> int:
    rows = list(matches.values_list(*COLUMNS))
    names = {(sport, name) for _, sport, *pair, _, _ in rows for name in pair}
    keys = {(sport, name): (sport, identity(name, aliases.get(sport, {}))) for sport, name in names}
    shown = {keys[sport, name]: aliases.get(sport, {}).get(squeezed(name), name) for sport, name in sorted(names)}
    ids = _ids(shown, now)
    updated = 0
    for pk, sport, team_a, team_b, *known in rows:
        found = [ids.get(keys[sport, name]) for name in (team_a, team_b)]
        if found != known:
            # Only if it still has these names: a worker may have written others since.
            same = Match.objects.filter(pk=pk, team_a=team_a, team_b=team_b)
            updated += same.update(known_team_a=found[0], known_team_b=found[1])
    return updated


def _ids(names: dict[Key, str], now: datetime) -> dict[Key, int]:
    """Returns the ids of teams by sport and key; makes those that are missing. A placeholder has none."""
    wanted = {key: name for key, name in names.items() if key[1]}
    known = _known(key for _, key in wanted)
    missing = [
        Team(sport=sport, key=key, name=name[:NAME_LENGTH], created_at=now)
        for (sport, key), name in wanted.items()
        if (sport, key) not in known
    ]
    if not missing:
        return known
    Team.objects.bulk_create(missing, ignore_conflicts=True)
    return _known(key for _, key in wanted)


def _known(keys: Iterable[str]) -> dict[Key, int]:
    rows = Team.objects.filter(key__in=set(keys)).values_list("sport", "key", "pk")
    return {(sport, key): pk for sport, key, pk in rows}


def _delete_unused(now: datetime) -> None:
    is_used = Exists(Match.objects.filter(Q(known_team_a=OuterRef("pk")) | Q(known_team_b=OuterRef("pk"))))
    Team.objects.filter(~is_used, created_at__lt=now - KEPT, former=None).delete()


def _redirect(aliases: dict[str, Aliases], now: datetime) -> None:
    """Lets a team whose name has become an alias lead to the team that it means; undone with the alias."""
    teams = list(Team.objects.all())
    keys = {team.pk: (team.sport, identity(team.name, aliases.get(team.sport, {}))) for team in teams}
    moved = {team.pk: keys[team.pk] for team in teams if keys[team.pk] != (team.sport, team.key)}
    names = {keys[team.pk]: aliases.get(team.sport, {}).get(squeezed(team.name), team.name) for team in teams}
    ids = _ids({key: names[key] for key in moved.values()}, now)
    for team in teams:
        target = ids.get(moved[team.pk]) if team.pk in moved else None
        if team.same_as_id != target:
            Team.objects.filter(pk=team.pk).update(same_as=target)
