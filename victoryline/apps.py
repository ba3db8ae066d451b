"""The app of the commands that belong to no other app."""

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate


class VictoryLineConfig(AppConfig):
    name = "victoryline"
    verbose_name = "VictoryLine"

    def ready(self) -> None:
        from victoryline import roles
        from victoryline.lib import statements

        post_migrate.connect(roles.update_groups, dispatch_uid="groups of staff")
        statements.install()
        if settings.CONFIG.database_url:
            from victoryline.databases import CONNECT_SECONDS
            from victoryline.lib import pg_wait

            pg_wait.install(answer_seconds=settings.CONFIG.db_answer_seconds, connect_seconds=CONNECT_SECONDS)
