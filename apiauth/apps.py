from django.apps import AppConfig


class ApiAuthConfig(AppConfig):
    name = "apiauth"
    verbose_name = "API access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apiauth import checks, schema  # noqa: F401  they register themselves with Django and drf-spectacular
