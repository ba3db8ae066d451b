"""Other names of teams: operators teach here what two sources' names have in common."""

from __future__ import annotations

from django.contrib import admin

from scraping.models import TeamAlias
from victoryline.lib.admin import ConsoleAdmin


@admin.register(TeamAlias)
class TeamAliasAdmin(ConsoleAdmin):
    list_display = ("alias", "name", "sport")
    list_filter = ("sport",)
    search_fields = ("alias", "name")
    fields = ("sport", "alias", "name")
