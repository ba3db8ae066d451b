"""The tables that the specification names, and the migration of an installed system to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from monitoring.models import HealthLog
from scraping.models import (
    Lineup,
    LineupPlayer,
    Match,
    MatchRef,
    ScrapeError,
    ScrapeJob,
    ScrapeTask,
    Snapshot,
    WorkerCommand,
)
from tests.factories import NOW

SPECIFIED = {
    Match: "matches",
    MatchRef: "match_external_refs",
    Snapshot: "live_match_data",
    ScrapeJob: "scrape_jobs",
    ScrapeTask: "scrape_tasks",
    ScrapeError: "scraper_errors",
    HealthLog: "scraper_health_log",
    Lineup: "match_sofascore_lineup",
    LineupPlayer: "match_sofascore_player",
}
BEFORE = [("scraping", "0008_specification"), ("monitoring", "0003_alert_notifications")]
COMMAND = {"worker_id": "w1", "kind": "recycle_browser", "reason": "slow", "actor": "ann", "asked_at": NOW}
SCRAPER_ID = "0b5b1c0e-5a5e-4c3e-9d1e-6a3f1f0a7c11"


def migrate(targets: list[tuple[str, str]]) -> Any:
    """Returns the historical models of these migrations."""
    MigrationExecutor(connection).migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def old_models() -> Iterator[Any]:
    """The models of the last version without the specified names; the database is at that version."""
    yield migrate(BEFORE)
    migrate_forward()  # in case the test has failed before it did


def migrate_forward() -> None:
    MigrationExecutor(connection).migrate(MigrationExecutor(connection).loader.graph.leaf_nodes())


def fill(old: Any) -> None:
    """Creates one row in each table that is renamed, with the foreign keys between them."""
    source = old.get_model("scraping", "Source").objects.create(
        key="crex", name="Crex", base_url="https://crex.example"
    )
    match = old.get_model("scraping", "Match").objects.create(
        sport="cricket", title="India vs Australia", sequence=3, payload={"status": "live"}, created_at=NOW
    )
    event = {"source": source, "match": match, "source_event_id": "13KM", "url": "https://crex.example/13KM"}
    ref = old.get_model("scraping", "MatchRef").objects.create(created_at=NOW, **event)
    old.get_model("scraping", "Snapshot").objects.create(
        match=match, sequence=3, checksum="c" * 64, payload={"status": "live"}, captured_at=NOW, created_at=NOW
    )
    job = old.get_model("scraping", "ScrapeJob").objects.create(kind="round", name="Round 9", created_at=NOW)
    task = old.get_model("scraping", "ScrapeTask").objects.create(
        source=source, ref=ref, job=job, resource="full", run_at=NOW, created_at=NOW
    )
    old.get_model("scraping", "JobItem").objects.create(job=job, ref=ref, task=task)
    old.get_model("scraping", "ScrapeError").objects.create(
        task=task, match=match, timestamp=NOW, error_class="transient", error_type="timeout"
    )
    lineup = old.get_model("scraping", "Lineup").objects.create(
        match=match, source=source, side="team_a", snapshot_type="post_match", payload_schema="lineups/v1",
        kickoff=NOW, captured_at=NOW, created_at=NOW,
    )  # fmt: skip
    old.get_model("scraping", "LineupPlayer").objects.create(lineup=lineup, place=1, player_id_ext="p1", name="Kohli")
    old.get_model("monitoring", "HealthLog").objects.create(
        scraper_id=SCRAPER_ID, match_id=match.pk, timestamp=NOW, health_status="healthy"
    )
    old.get_model("scraping", "WorkerOrder").objects.create(**COMMAND)


def old_permission() -> Permission:
    """Creates the permission to give commands as the last version has named it."""
    kind, _ = ContentType.objects.get_or_create(app_label="scraping", model="workerorder")
    return Permission.objects.create(content_type=kind, codename="add_workerorder", name="Can add worker order")


@pytest.mark.parametrize(("model", "table"), SPECIFIED.items())
def test_tables_have_the_specified_names(model: Any, table: str) -> None:
    assert model._meta.db_table == table
    assert f"`{table}`" in Path(settings.BASE_DIR, "docs/architecture.md").read_text(encoding="utf-8")


COLUMNS = {
    "scraper_health_log": "id scraper_id match_id timestamp health_status error_count memory_mb cpu_percent "
    "update_latency_ms polling_interval_seconds uptime_seconds last_update_age_seconds",
    "scraper_errors": "id scraper_id match_id timestamp error_type error_message stack_trace url operation "
    "retry_attempt resolved resolution_time resolution_method",
    "matches": "last_scraper_update data_freshness_seconds scraper_status",
    "live_match_data": "scraper_id update_latency_ms data_source",
}
INDEXES = {
    "scraper_health_log": {("scraper_id", "timestamp"), ("match_id", "timestamp"), ("health_status", "timestamp")},
    "scraper_errors": {("scraper_id", "timestamp"), ("error_type", "timestamp"), ("resolved", "timestamp")},
    "matches": {("data_freshness_seconds",), ("scraper_status",)},
    "live_match_data": {("scraper_id",)},
}


@pytest.mark.both
@pytest.mark.django_db
@pytest.mark.requirement("DM-4", "DM-5", "DM-6", "DM-7")
@pytest.mark.parametrize("table", COLUMNS)
def test_tables_have_the_specified_columns_and_indexes(table: str) -> None:
    with connection.cursor() as cursor:
        columns = {column.name for column in connection.introspection.get_table_description(cursor, table)}
        constraints = connection.introspection.get_constraints(cursor, table).values()
    assert set(COLUMNS[table].split()) <= columns
    assert INDEXES[table] <= {tuple(one["columns"]) for one in constraints if one["index"]}


@pytest.mark.both
@pytest.mark.django_db(transaction=True)
def test_the_migration_keeps_rows_keys_references_and_permissions_of_an_installed_system(old_models: Any) -> None:
    assert {"scraping_match", "scraping_snapshot"} <= set(connection.introspection.table_names())
    fill(old_models)
    old = old_permission()
    migrate_forward()
    tables = set(connection.introspection.table_names())
    assert set(SPECIFIED.values()) <= tables
    assert not {"scraping_match", "scraping_snapshot", "scraping_scrapetask", "monitoring_healthlog"} & tables

    match = Match.objects.get()
    ref, task = MatchRef.objects.get(), ScrapeTask.objects.get()
    assert (match.title, match.sequence, match.payload) == ("India vs Australia", 3, {"status": "live"})
    assert (ref.match, ref.key, task.ref, task.job) == (match, "crex_13KM", ref, ScrapeJob.objects.get())
    assert match.snapshots.get().sequence == 3
    assert [item.task for item in task.job.items.all()] == [task]
    error = ScrapeError.objects.get()
    assert (error.match, error.error_class, error.error_type, error.error_code) == (
        match, "transient", "network", "timeout",
    )  # fmt: skip
    assert match.lineups.get().players.get().name == "Kohli"
    assert HealthLog.objects.get(match_id="crex_13KM").health_status == "healthy"
    assert WorkerCommand.objects.values(*COMMAND).get() == COMMAND
    renamed = Permission.objects.get(pk=old.pk)
    assert (renamed.codename, renamed.name) == ("add_workercommand", "Can add worker command")

    assert Match.objects.create(sport="cricket", created_at=NOW).pk > match.pk
    Match.objects.filter(pk=match.pk).delete()
    assert not Snapshot.objects.exists()
    assert not LineupPlayer.objects.exists()
    connection.check_constraints()
