import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("monitoring", "0006_log_entries"),
        ("scraping", "0009_table_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="gradechange",
            name="match",
            field=models.ForeignKey(
                blank=True,
                help_text="The match that caused it; of a recovery the one that has recovered.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="scraping.match",
            ),
        ),
    ]
