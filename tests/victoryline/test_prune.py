"""`manage.py prune` and the retention rules: every growing table has a rule."""

from __future__ import annotations

import os
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from axes.models import AccessAttempt, AccessFailureLog
from django.apps import apps
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.utils import timezone
from django.utils.module_loading import import_string

from apiauth.models import AccessLog
from monitoring.models import AuditEntry
from scraping.models import Evidence, ScrapeError, ScrapeTask, TaskState
from tests.monitoring.rows import make_error, make_task
from victoryline.retention import all_rules, prune

pytestmark = [pytest.mark.both, pytest.mark.django_db]

# Tables that do not grow by themselves, or go with a row that has a rule.
BOUNDED = {
    "scraping.Source", "scraping.Lease", "apiauth.Consumer", "apiauth.ApiKey",
    "scraping.MatchRef", "scraping.MatchEvent", "scraping.TaskTransition", "scraping.JobItem", "scraping.OperationIds",
    "scraping.Lineup", "scraping.LineupPlayer", "scraping.PlayerFigure", "scraping.PairingReview", "scraping.Conflict",
    "scraping.Team", "scraping.TeamAlias", "scraping.UnknownValue",
}  # fmt: skip
OF_TABLE = {
    "scraping.Match": "matches", "scraping.Snapshot": "snapshots", "scraping.ScrapeTask": "tasks-dead",
    "scraping.ScrapeError": "errors", "scraping.ErrorGroup": "error-groups", "scraping.Evidence": "evidence",
    "scraping.ScrapeJob": "jobs", "scraping.Scraper": "scrapers", "scraping.Worker": "workers",
    "scraping.WorkerCommand": "worker-commands", "scraping.Submission": "submissions", "apiauth.UsageHour": "usage",
    "scraping.Breaker": "breakers", "scraping.OutcomeBucket": "outcomes", "monitoring.HealthLog": "health-log",
    "monitoring.GradeChange": "grade-changes", "monitoring.AuditEntry": "audit", "monitoring.Alert": "alerts",
    "monitoring.LogEntry": "log-entries",
    "apiauth.AccessLog": "access-log",
    "scraping.FieldFill": "field-fills", "scraping.ProxySession": "proxy-sessions", "scraping.SourceDay": "traffic",
    "scraping.MatchArchive": "match-logs", "scraping.SourceRate": "rates-quarters",
    "scraping.SourceOverride": "source-overrides", "scraping.BulkOperation": "bulk-operations",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(settings: LazySettings, tmp_path: Path) -> Path:
    settings.STORAGE_DIR, settings.VAR_DIR = tmp_path / "storage", tmp_path
    return tmp_path


def run(*arguments: str) -> dict[str, str]:
    """Returns the printed table: deleted rows by table."""
    output = StringIO()
    call_command("prune", *arguments, stdout=output, stderr=StringIO())
    lines = [line.split() for line in output.getvalue().splitlines()]
    return {words[0]: words[1] for words in lines[1:] if len(words) > 1}


def fill() -> None:
    long_ago = timezone.now() - timedelta(days=400)
    make_error(now=long_ago)
    make_task(None, now=long_ago, state=TaskState.DEAD)
    AuditEntry.objects.create(timestamp=long_ago, actor="a", action_type="b", trigger_condition="c")
    AccessLog.objects.create(timestamp=long_ago, method="GET", endpoint="/", response_status=200, request_id="r")
    Session.objects.create(session_key="k", session_data="", expire_date=long_ago)


@pytest.mark.parametrize("app", ["scraping", "monitoring", "apiauth"])
def test_every_table_that_grows_has_a_rule(app: str) -> None:
    rules = {rule.table for rule in all_rules()}
    for model in apps.get_app_config(app).get_models():
        label = model._meta.label
        assert label in BOUNDED or OF_TABLE.get(label) in rules, f"{label} grows for ever"


def test_every_rule_runs_in_the_scheduler_too(settings: LazySettings) -> None:
    paths = [path for path, _ in settings.SCHEDULER_STEPS if "retention" in path]
    assert len(paths) == 3
    fill()
    assert sum(import_string(path)(timezone.now()) for path in paths) == 5


def test_names_are_unique() -> None:
    names = [rule.table for rule in all_rules()]
    assert len(names) == len(set(names))


class TestCommand:
    def test_deletes_expired_rows_and_lists_them(self) -> None:
        fill()
        make_error()
        said = run()
        assert {name: count for name, count in said.items() if count != "0"} == {
            "tasks-dead": "1", "errors": "1", "audit": "1", "access-log": "1", "sessions": "1", "all": "5",
        }  # fmt: skip
        assert ScrapeError.objects.count() == 1
        assert run()["all"] == "0"

    def test_a_dry_run_counts_the_same_and_deletes_nothing(self) -> None:
        fill()
        foretold = run("--dry-run")
        assert ScrapeError.objects.count() == 1
        assert foretold == run() | {"Nothing": foretold["Nothing"]}

    def test_only_the_tables_named(self) -> None:
        fill()
        assert run("--table", "errors", "--table", "audit") == {"errors": "1", "audit": "1", "all": "2"}
        assert ScrapeTask.objects.count() == 1

    def test_an_unknown_table_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(CommandError, match=r"no table nonsense.*access-log.*tasks-dead"):
            run("--table", "nonsense")

    def test_runs_until_nothing_is_due(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.retention.BATCH", 2)
        for _ in range(25):
            make_error(now=timezone.now() - timedelta(days=31))
        assert run("--table", "errors")["errors"] == "25"

    @pytest.mark.django_db(transaction=True)
    def test_removes_the_files_of_deleted_rows(self, folder: Path) -> None:
        file = folder / "storage" / "error_pages" / "a.html"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 1234)
        old = timezone.now() - timedelta(days=8)
        path = file.relative_to(folder / "storage").as_posix()
        Evidence.objects.create(error=make_error(), kind="page", path=path, size_bytes=1234, created_at=old)
        assert run("--table", "evidence")["evidence"] == "1"
        assert not file.exists()


class TestRulesOutsideTheApps:
    def test_sessions_that_have_expired(self) -> None:
        for key, days in (("old", -1), ("new", 1)):
            Session.objects.create(session_key=key, session_data="", expire_date=timezone.now() + timedelta(days=days))
        assert prune(timezone.now()) == 1
        assert Session.objects.get().session_key == "new"

    def test_failed_logins_of_a_month_ago(self) -> None:
        for days in (31, 1):
            attempt = AccessAttempt.objects.create(username=f"u{days}", failures_since_start=1, ip_address="192.0.2.1")
            failure = AccessFailureLog.objects.create(username=f"u{days}", ip_address="192.0.2.1")
            for table, row in ((AccessAttempt, attempt), (AccessFailureLog, failure)):
                table.objects.filter(pk=row.pk).update(attempt_time=timezone.now() - timedelta(days=days))
        assert prune(timezone.now()) == 2
        assert AccessAttempt.objects.get().username == "u1"

    def test_rotated_logs_of_a_month_ago(self, folder: Path) -> None:
        (folder / "log").mkdir()
        now = timezone.now()
        for name, days in (("web.log", 40), ("web.log.1", 29), ("old.log.2", 31)):
            (folder / "log" / name).write_text("x")
            os.utime(folder / "log" / name, (now.timestamp() - days * 86400,) * 2)
        assert prune(now) == 1
        assert sorted(file.name for file in (folder / "log").iterdir()) == ["web.log", "web.log.1"]
