"""django_dramatiq's program of the console bench; runs in its own virtual environment and imports nothing of ours.

The same protocol as benchmarks/programs/console.py: its admin's lists over as many rows of its own table of tasks.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from argparse import ArgumentParser
from urllib.parse import urlsplit

PART = 100_000
LIST = "/admin/django_dramatiq/task/"
PAGES = {
    "tasks": LIST,
    "tasks, tenth page": f"{LIST}?p=10",
    "tasks that succeeded": f"{LIST}?status__exact=done",
    "dead letters": f"{LIST}?status__exact=failed",
    "tasks that wait": f"{LIST}?status__exact=enqueued",
}
SERIES = "WITH RECURSIVE s(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last}) "
EXPRESSIONS = {
    "sqlite": {
        "id": "lower(hex(randomblob(16)))",
        "time": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || n || ' seconds')",
    },
    "postgresql": {"id": "gen_random_uuid()", "time": "now() - n * interval '1 second'"},
}


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--database", required=True, help="a PostgreSQL URL, or the path of a SQLite file")
    options = parser.parse_args()
    configure(options.database)
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    fill(options.rows)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"milliseconds": measure(int(line.split()[1]))}), flush=True)


def configure(database: str) -> None:
    from django.conf import settings

    apps = ("admin", "auth", "contenttypes", "sessions", "messages")
    middleware = (
        *("django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.common.CommonMiddleware"),
        *("django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware"),
        "django.contrib.messages.middleware.MessageMiddleware",
    )
    processors = ("template.context_processors.request", "contrib.auth.context_processors.auth",
                  "contrib.messages.context_processors.messages")  # fmt: skip
    settings.configure(
        SECRET_KEY=str(uuid.uuid4()),
        ALLOWED_HOSTS=["*"],
        INSTALLED_APPS=[*(f"django.contrib.{one}" for one in apps), "django_dramatiq"],
        DATABASES={"default": _database(database)},
        ROOT_URLCONF="django_dramatiq_program",
        MIDDLEWARE=list(middleware),
        USE_TZ=True,
        STATIC_URL="/static/",
        DRAMATIQ_BROKER={"BROKER": "dramatiq.brokers.stub.StubBroker", "OPTIONS": {}, "MIDDLEWARE": []},
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": [f"django.{one}" for one in processors]},
            }
        ],
    )


def _database(given: str) -> dict[str, object]:
    if "://" not in given:
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": given}
    parts = urlsplit(given)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname,
        "PORT": parts.port,
    }


def fill(rows: int) -> None:
    """As many of a hundred tasks have failed as are dead in ours."""
    import dramatiq
    from django.db import connection
    from django_dramatiq.models import Task

    message = dramatiq.Message(queue_name="q", actor_name="read", args=("x" * 200,), kwargs={}, options={}).encode()
    Task.tasks.create(id=uuid.uuid4(), status="done", message_data=message, actor_name="read", queue_name="q")
    meta = Task._meta  # noqa: SLF001 - documented under this name
    table, columns = meta.db_table, [field.column for field in meta.concrete_fields]
    known = EXPRESSIONS[connection.vendor]
    own = {
        "id": known["id"],
        "status": "CASE n % 100 WHEN 0 THEN 'failed' ELSE 'done' END",
        "created_at": known["time"],
        "updated_at": known["time"],
    }
    values = ", ".join(own.get(name, f"t.{name}") for name in columns)
    with connection.cursor() as cursor:
        for first in range(1, rows, PART):
            series = SERIES.format(first=first, last=min(first + PART, rows) - 1)
            one = f"(SELECT * FROM {table} LIMIT 1) t"  # noqa: S608 - names of the model
            cursor.execute(f"{series}INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM s, {one}")  # noqa: S608
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def measure(rounds: int) -> dict[str, list[float]]:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("bench"))
    took: dict[str, list[float]] = {name: [] for name in PAGES}
    for _ in range(rounds):
        for name, page in PAGES.items():
            began = time.perf_counter()
            answer = client.get(page)
            took[name].append(1000 * (time.perf_counter() - began))
            if answer.status_code != 200:
                raise RuntimeError(f"{page} was answered with {answer.status_code}")
    return took


def __getattr__(name: str) -> object:
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.contrib import admin
    from django.urls import path

    return [path("admin/", admin.site.urls)]


if __name__ == "__main__":
    sys.modules["django_dramatiq_program"] = sys.modules[__name__]
    main()
