"""`error_type` gets the words of the specification; the more exact word that it had is `error_code`."""

from django.db import migrations, models
from django.db.models import Case, F, Value, When

TYPES = {
    "transient": "network",
    "blocked": "network",
    "challenge": "network",
    "gone": "network",
    "auth": "auth",
    "drift": "parsing",
    "bug": "parsing",
    "resource": "browser",
    "store": "database",
}


def fill(apps, _):
    by_class = Case(*(When(error_class=name, then=Value(kind)) for name, kind in TYPES.items()), default=Value("parsing"))
    errors = apps.get_model("scraping", "ScrapeError").objects
    errors.update(error_code=F("error_type"), error_type=by_class)


def restore(apps, _):
    apps.get_model("scraping", "ScrapeError").objects.update(error_type=F("error_code"))


class Migration(migrations.Migration):

    dependencies = [
        ("scraping", "0009_table_names"),
    ]

    operations = [
        migrations.RenameField(model_name="errorgroup", old_name="error_type", new_name="error_code"),
        migrations.AddField(
            model_name="scrapeerror",
            name="error_code",
            field=models.CharField(default="", help_text="More exact than the class: timeout, layout, schema.", max_length=50),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="scrapeerror",
            name="error_type",
            field=models.CharField(
                choices=[
                    ("network", "network"),
                    ("parsing", "parsing"),
                    ("browser", "browser"),
                    ("database", "database"),
                    ("auth", "auth"),
                ],
                max_length=50,
            ),
        ),
        migrations.RunPython(fill, restore),
    ]
