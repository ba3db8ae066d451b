"""Composition: the app that holds the commands which belong to no app alone."""

from django.apps import AppConfig


class VictoryLineConfig(AppConfig):
    name = "victoryline"
    verbose_name = "VictoryLine"
