from django.db import migrations, models
from django.db.models import F


def give_up_unsent_emails(apps, schema_editor):
    """Rows of the channel that was removed stay as history; no thread would ever send the waiting ones."""
    messages = apps.get_model("monitoring", "AlertMessage").objects.filter(channel="email")
    messages.filter(sent_at=None, given_up_at=None).update(
        given_up_at=F("next_attempt_at"), error="VictoryLine sends no e-mail any more: see CHANGELOG.md"
    )


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0007_grade_cause")]

    operations = [
        migrations.RunPython(give_up_unsent_emails, migrations.RunPython.noop, elidable=True),
        migrations.AlterField(
            model_name="alertmessage",
            name="channel",
            field=models.CharField(choices=[("webhook", "Webhook"), ("sentry", "Sentry")], max_length=10),
        ),
    ]
