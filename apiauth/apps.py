from django.apps import AppConfig


class ApiAuthConfig(AppConfig):
    name = "apiauth"
    verbose_name = "API access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apiauth import schema, signing  # noqa: F401  they register themselves with drf-spectacular and Django's checks
