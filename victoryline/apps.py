"""The app of the commands that belong to no other app."""

from django.apps import AppConfig
from django.conf import settings


class VictoryLineConfig(AppConfig):
    name = "victoryline"
    verbose_name = "VictoryLine"

    def ready(self) -> None:
        from victoryline.lib import statements

        statements.install()
        if settings.CONFIG.database_url:
            from victoryline.databases import CONNECT_SECONDS
            from victoryline.lib import pg_wait

            pg_wait.install(answer_seconds=settings.CONFIG.db_answer_seconds, connect_seconds=CONNECT_SECONDS)
