from django.db import migrations, models
from django.db.models import F, Value
from django.db.models.functions import Replace


def rename_permissions(apps, _):
    """Keeps what users and groups were permitted: Django makes permissions of the new name, granted to nobody."""
    permissions = apps.get_model("auth", "Permission").objects.filter(content_type__app_label="scraping")
    permissions.filter(codename__endswith="_workerorder").update(
        codename=Replace(F("codename"), Value("workerorder"), Value("workercommand")),
        name=Replace(F("name"), Value("worker order"), Value("worker command")),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("scraping", "0018_snapshot_task_end"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RenameModel("WorkerOrder", "WorkerCommand"),
        migrations.RemoveConstraint("workercommand", "order_one_open_of_a_kind"),
        migrations.AddConstraint(
            "workercommand",
            models.UniqueConstraint(
                fields=("worker_id", "kind", "source_key"),
                condition=models.Q(done_at__isnull=True),
                name="command_one_open_of_a_kind",
            ),
        ),
        migrations.RenameIndex("workercommand", new_name="command_asked", old_name="order_asked"),
        migrations.RunPython(rename_permissions, migrations.RunPython.noop),
    ]
