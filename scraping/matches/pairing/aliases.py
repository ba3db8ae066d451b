"""What operators and config/teams.yaml say about names."""

from __future__ import annotations

from scraping.models import TeamAlias
from scraping.names import Aliases


def aliases_of(sport: str) -> Aliases:
    """By the squeezed alias, what the team is called here. One query; the table is small."""
    return dict(TeamAlias.objects.filter(sport=sport).values_list("squeezed", "name"))
