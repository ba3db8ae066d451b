"""`min_interval_seconds` spaces the tasks of a source; it was the shortest time between two polls of one match.

The values that were shipped would allow one or two tasks a second, whatever the number of matches.
"""

from django.db import migrations, models
from django.db.migrations.state import StateApps

SHIPPED = {0.5: 0.04, 1.0: 0.08}


def replace_shipped(apps: StateApps, _: object) -> None:
    for before, now in SHIPPED.items():
        apps.get_model("scraping", "Source").objects.filter(min_interval_seconds=before).update(
            min_interval_seconds=now
        )


class Migration(migrations.Migration):
    dependencies = [("scraping", "0013_events_of_a_reading")]

    operations = [
        migrations.AlterField(
            model_name="source",
            name="burst_allowance",
            field=models.PositiveSmallIntegerField(default=50, help_text="Tasks that may begin at once."),
        ),
        migrations.AlterField(
            model_name="source",
            name="min_interval_seconds",
            field=models.FloatField(
                default=0.04, help_text="On average one task begins at the source in this time; 0: no limit."
            ),
        ),
        migrations.RunPython(replace_shipped, migrations.RunPython.noop),
    ]
