from django.apps import AppConfig


class ScrapingConfig(AppConfig):
    name = "scraping"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Checks and receivers register by being imported.
        from scraping import checks  # noqa: F401
        from scraping.documents import publisher
        from scraping.journal import evidence  # noqa: F401
        from scraping.matches import match_logs  # noqa: F401

        publisher.connect()
