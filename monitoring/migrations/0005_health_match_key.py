"""Health rows name their match by its public key."""

from django.db import migrations, models
from django.db.models import F, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, Concat


def fill_keys(apps, _):
    HealthLog, Scraper = apps.get_model("monitoring", "HealthLog"), apps.get_model("scraping", "Scraper")
    MatchRef = apps.get_model("scraping", "MatchRef")
    of_scraper = Scraper.objects.filter(scraper_id=OuterRef("scraper_id")).annotate(
        key=Concat(F("ref__source__key"), Value("_"), F("ref__source_event_id"))
    )
    of_match = MatchRef.objects.filter(match=OuterRef("match")).order_by("pk")
    of_match = of_match.annotate(key=Concat(F("source__key"), Value("_"), F("source_event_id")))
    HealthLog.objects.update(
        match_key=Coalesce(Subquery(of_scraper.values("key")[:1]), Subquery(of_match.values("key")[:1]), Value(""))
    )


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0004_table_names"), ("scraping", "0011_error_match_key")]

    operations = [
        migrations.AddField(
            model_name="healthlog",
            name="match_key",
            field=models.CharField(
                blank=True, default="", help_text="The match's name at its source: crex_13KM.", max_length=160
            ),
            preserve_default=False,
        ),
        migrations.RunPython(fill_keys, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="healthlog", name="health_match_time"),
        migrations.RemoveField(model_name="healthlog", name="match"),
        migrations.RenameField(model_name="healthlog", old_name="match_key", new_name="match_id"),
        migrations.AddIndex(
            model_name="healthlog",
            index=models.Index(fields=["match_id", "timestamp"], name="health_match_time"),
        ),
    ]
