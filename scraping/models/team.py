"""Teams with stable ids, and the other names that sources give them. Sole writer of teams: `matches.teams`."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from scraping.names import Aliases, alias_table, squeezed


class Team(models.Model):
    sport = models.CharField(max_length=20)
    key = models.CharField(max_length=160, help_text="The identity of its name, by which sources' names are compared.")
    name = models.CharField(max_length=120)
    same_as = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="former",
        help_text="The team that its name means since an alias was added; its id leads there.",
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("sport", "name")
        constraints = (models.UniqueConstraint(fields=("sport", "key"), name="team_once_per_sport"),)

    def __str__(self) -> str:
        return self.name


class TeamAliasQuerySet(models.QuerySet["TeamAlias"]):
    def names(self, sport: str) -> Aliases:
        """Returns the table of the sport for `scraping.names`. One query; the table is small."""
        return alias_table(tuple(self.filter(sport=sport).order_by().values_list("squeezed", "name")))


class TeamAlias(models.Model):
    sport = models.CharField(max_length=20)
    alias = models.CharField(max_length=120, help_text="As a source writes it; blanks, dots and capitals do not count.")
    name = models.CharField(max_length=120, help_text="The name of the team here.")
    squeezed = models.CharField(max_length=60, editable=False, help_text="The normalized alias, for comparison.")

    objects = TeamAliasQuerySet.as_manager()

    class Meta:
        verbose_name = "team name"
        ordering = ("sport", "name", "alias")
        constraints = (models.UniqueConstraint(fields=("sport", "squeezed"), name="alias_once_per_sport"),)

    def __str__(self) -> str:
        return f"{self.alias} is {self.name}"

    def clean(self) -> None:
        """Refuses an alias that means another team already, in whatever spelling."""
        self.squeezed = squeezed(self.alias)
        same = TeamAlias.objects.filter(sport=self.sport, squeezed=self.squeezed).exclude(pk=self.pk).first()
        if not self.squeezed:
            raise ValidationError({"alias": "It needs letters or figures."})
        if same is not None:
            raise ValidationError({"alias": f"There is this one already: {same}."})
