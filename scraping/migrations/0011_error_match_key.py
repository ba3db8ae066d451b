"""Errors name their match by its public key in the column `match_id`; the number is in `match_number`."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Concat


def fill_keys(apps, _):
    MatchRef, ScrapeError = apps.get_model("scraping", "MatchRef"), apps.get_model("scraping", "ScrapeError")
    keys = MatchRef.objects.filter(match=OuterRef("match")).order_by("pk")
    keys = keys.annotate(key=Concat(F("source__key"), Value("_"), F("source_event_id"))).values("key")
    errors = ScrapeError.objects.filter(match__isnull=False)
    for source_id in apps.get_model("scraping", "Source").objects.values_list("pk", flat=True):
        of_source = Subquery(keys.filter(source=source_id)[:1])
        errors.filter(group__source=source_id).update(match_key=Coalesce(of_source, Value("")))
    errors.filter(match_key="").update(match_key=Coalesce(Subquery(keys[:1]), Value("")))


class Migration(migrations.Migration):
    dependencies = [("scraping", "0010_error_types")]

    operations = [
        migrations.AlterField(
            model_name="scrapeerror",
            name="match",
            field=models.ForeignKey(
                db_column="match_number",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="errors",
                to="scraping.match",
            ),
        ),
        migrations.AddField(
            model_name="scrapeerror",
            name="match_key",
            field=models.CharField(
                blank=True,
                db_column="match_id",
                default="",
                help_text="The match's name at the source that failed: crex_13KM.",
                max_length=160,
                verbose_name="match id",
            ),
            preserve_default=False,
        ),
        migrations.RunPython(fill_keys, migrations.RunPython.noop),
    ]
