from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0002_alerts_and_audit")]

    operations = [
        migrations.RenameField("alert", "told_at", "notified_at"),
        migrations.RenameField("alert", "told_count", "notification_count"),
        migrations.RenameField("alert", "told_over_at", "end_notified_at"),
    ]
