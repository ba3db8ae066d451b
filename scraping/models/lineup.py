"""Line-ups: one row per side and kind of snapshot, one per player. Sole writer: matches.lineups."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q


class SnapshotType(models.TextChoices):
    """The time of the reading. A line-up from before the start is never overwritten by a later one."""

    PRE_MATCH = "pre_match"
    POST_MATCH = "post_match"


SIDES = [(side, side) for side in ("team_a", "team_b")]


class Lineup(models.Model):
    match = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="lineups")
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, related_name="+")
    side = models.CharField(max_length=6, choices=SIDES)
    snapshot_type = models.CharField(max_length=12, choices=SnapshotType)
    formation = models.CharField(max_length=20, blank=True)
    is_confirmed = models.BooleanField(default=False, help_text="The source says that the line-up is final.")
    xi_missing = models.BooleanField(default=False, help_text="Fewer than eleven starters are known.")
    payload_schema = models.CharField(max_length=40)
    checksum = models.CharField(max_length=64, blank=True, help_text="Hash of formation and players.")
    kickoff = models.DateTimeField(help_text="The start time as known at the reading.")
    captured_at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "line-up"
        db_table = "match_sofascore_lineup"
        constraints = (
            models.UniqueConstraint(
                fields=("match", "source", "side", "snapshot_type"), name="lineup_once_per_side_and_type"
            ),
            models.CheckConstraint(
                condition=~Q(snapshot_type=SnapshotType.PRE_MATCH) | Q(captured_at__lt=F("kickoff")),
                name="lineup_before_the_start_is_from_before",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_snapshot_type_display()} {self.side} of match {self.match_id}"


class LineupPlayer(models.Model):
    lineup = models.ForeignKey(Lineup, on_delete=models.CASCADE, related_name="players")
    place = models.PositiveSmallIntegerField(help_text="Position in the source's list.")
    player_id_ext = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    position = models.CharField(max_length=20, blank=True)
    shirt = models.CharField(max_length=6, blank=True)
    is_starter = models.BooleanField(default=False)
    is_captain = models.BooleanField(default=False)
    rating = models.FloatField(null=True, blank=True)
    minutes = models.PositiveSmallIntegerField(null=True, blank=True)

    class Meta:
        db_table = "match_sofascore_player"
        ordering = ("place",)
        constraints = (models.UniqueConstraint(fields=("lineup", "player_id_ext"), name="lineup_player_once"),)

    def __str__(self) -> str:
        return self.name


class PlayerFigure(models.Model):
    """A player's figures: batting or bowling in an innings (cricket), or the source's rating (football)."""

    match = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="figures")
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, related_name="+")
    side = models.CharField(max_length=6, choices=SIDES)
    role = models.CharField(max_length=10, choices=[(role, role) for role in ("batting", "bowling", "rating")])
    innings = models.PositiveSmallIntegerField(default=0, help_text="0: the whole match.")
    place = models.PositiveSmallIntegerField(default=0)
    player_id_ext = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    values = models.JSONField(default=dict)
    captured_at = models.DateTimeField()

    class Meta:
        verbose_name = "player's figures"
        verbose_name_plural = "players' figures"
        ordering = ("innings", "role", "place")
        constraints = (
            models.UniqueConstraint(fields=("match", "source", "innings", "role", "player_id_ext"), name="figure_once"),
        )

    def __str__(self) -> str:
        return f"{self.name}, {self.role}"
