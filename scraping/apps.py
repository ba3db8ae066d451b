from django.apps import AppConfig


class ScrapingConfig(AppConfig):
    name = "scraping"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scraping import checks, plain_text  # noqa: F401 - checks register by being imported
        from scraping.rendered import absent, follower, publisher

        plain_text.connect()
        publisher.connect()
        absent.connect()
        follower.connect()
