from django.db import migrations, models
from django.db.models import F, Q


def keep_what_was_sent(apps, schema_editor):
    """What was queued for a channel counts as sent, so that nothing is sent a second time."""
    notified = apps.get_model("monitoring", "Alert").objects.filter(notification_count__gt=0)
    notified.update(webhook_sent=F("severity"), sentry_sent=F("severity"))
    notified.filter(Q(end_notified_at__isnull=False)).update(webhook_sent="over", sentry_sent="over")


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0008_no_email_channel")]

    operations = [
        migrations.AddField("alert", "webhook_sent", models.CharField(
            blank=True, default="", help_text="Its severity as posted last, or over.", max_length=10), preserve_default=False),
        migrations.AddField("alert", "sentry_sent", models.CharField(
            blank=True, default="", help_text="Its severity as sent last, or over.", max_length=10), preserve_default=False),
        migrations.RunPython(keep_what_was_sent, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("alert", "notification_count"),
        migrations.RemoveField("alert", "end_notified_at"),
        migrations.AlterField("alert", "notified_at", models.DateTimeField(
            blank=True, help_text="When a channel accepted its last message.", null=True)),
        migrations.DeleteModel("AlertMessage"),
    ]
