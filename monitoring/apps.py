from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "monitoring"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from monitoring import alert_receivers, audit_receivers, checks  # noqa: F401  (connects and registers)
