from django.apps import AppConfig


class ScrapingConfig(AppConfig):
    name = "scraping"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scraping import checks  # noqa: F401 - checks register by being imported
        from scraping.documents import publisher

        publisher.connect()
