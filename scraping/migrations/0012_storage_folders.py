"""Moves evidence and match logs of earlier versions to the folders that they have now, below STORAGE_DIR."""

import re
import shutil
from pathlib import Path

from django.conf import settings
from django.db import migrations, models

UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def move_evidence(apps, _):
    """VAR_DIR/media/evidence/{day}/{time}_{name}_...: the same volume may be mounted as STORAGE_DIR now."""
    for row in apps.get_model("scraping", "Evidence").objects.filter(path__startswith="evidence/"):
        _, day, name = row.path.split("/", 2)
        folder = "errors" if row.kind == "screenshot" else "error_pages"
        new = f"{folder}/{day.replace('-', '')}T{name}"
        if _moved([Path(settings.VAR_DIR) / "media" / row.path, Path(settings.STORAGE_DIR) / row.path], new):
            row.path = new
            row.save(update_fields=["path"])


def move_match_logs(apps, _):
    """VAR_DIR/match_logs/{number}: the folder has the match's public key now."""
    refs = apps.get_model("scraping", "MatchRef").objects.order_by("-source__precedence_weight", "pk")
    for row in apps.get_model("scraping", "MatchArchive").objects.all():
        key = refs.filter(match=row.match_id).values_list("source__key", "source_event_id").first()
        folder = UNSAFE.sub("-", "_".join(key))[:60] if key else str(row.match_id)
        if _moved([Path(settings.VAR_DIR) / "match_logs" / str(row.match_id)], f"match_logs/{folder}"):
            row.file = f"{folder}/{Path(row.file).name}"
            row.save(update_fields=["file"])


def _moved(old_places, new):
    target = Path(settings.STORAGE_DIR) / new
    for old in old_places:
        if old.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(old, target)
            return True
    return False


class Migration(migrations.Migration):
    dependencies = [("scraping", "0011_error_match_key")]

    operations = [
        migrations.AlterField(
            model_name="evidence",
            name="path",
            field=models.CharField(help_text="Below STORAGE_DIR.", max_length=200, unique=True),
        ),
        migrations.AlterField(
            model_name="matcharchive",
            name="file",
            field=models.CharField(help_text="Below STORAGE_DIR/match_logs.", max_length=200),
        ),
        migrations.RunPython(move_evidence, migrations.RunPython.noop),
        migrations.RunPython(move_match_logs, migrations.RunPython.noop),
    ]
