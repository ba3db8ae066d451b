"""The groups of staff that come with the system. `migrate` creates them and adds the permissions of a new version.

Nothing is ever removed: an installation may give these groups more permissions, and have groups of its own. One that
should be allowed less than a group here needs its own group.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps.registry import Apps
from django.apps.registry import apps as installed
from django.contrib.auth.management import create_permissions
from django.db.models import Q

VIEWER, OPERATOR, ADMINISTRATOR = "viewer", "operator", "administrator"

OURS = ("scraping", "monitoring", "apiauth")
# Operators see everything, act on it, and undo it. The permissions of their actions, without those to view.
ACTS = {
    "scraping": (
        *("change_match", "change_scrapetask", "change_scrapeerror", "change_breaker"),
        *("add_scrapejob", "add_workercommand", "add_teamalias", "change_teamalias", "change_bulkoperation"),
        "add_sourceoverride",
    ),
    "monitoring": ("change_alert",),
}
# Administrators decide in addition who may do what, and how sources are read.
ADMINISTERS = {
    "scraping": ("change_source", "delete_teamalias"),
    "apiauth": ("add_consumer", "change_consumer", "add_apikey", "change_apikey"),
    "auth": (
        *("view_user", "add_user", "change_user", "delete_user"),
        *("view_group", "add_group", "change_group", "delete_group"),
    ),
    "axes": ("view_accessattempt", "delete_accessattempt", "view_accessfailurelog", "view_accesslog"),
}


def update_groups(*, app_config: AppConfig, using: str, apps: Apps = installed, **_: Any) -> None:
    """Receives post_migrate. Acts once, after the last app, whose permissions may not have been created yet."""
    if app_config != list(installed.get_app_configs())[-1] or "auth" not in apps.app_configs:
        return
    create_permissions(app_config, verbosity=0, using=using, apps=apps)
    views = Q(content_type__app_label__in=OURS, codename__startswith="view_")
    may_act = views | _named(ACTS)
    for name, wanted in {VIEWER: views, OPERATOR: may_act, ADMINISTRATOR: may_act | _named(ADMINISTERS)}.items():
        group, _is_new = apps.get_model("auth", "Group").objects.using(using).get_or_create(name=name)
        group.permissions.add(*apps.get_model("auth", "Permission").objects.using(using).filter(wanted))


def _named(permissions: dict[str, tuple[str, ...]]) -> Q:
    found = Q(pk__in=())
    for app, names in permissions.items():
        found |= Q(content_type__app_label=app, codename__in=names)
    return found
