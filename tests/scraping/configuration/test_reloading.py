"""A changed configuration file is used after the next recovery, not before."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from monitoring.health.documents import status_document
from monitoring.health.evaluation import Evaluation
from scraping.configuration import policies
from scraping.matches import lifecycle
from scraping.models import Breaker, MatchRef, ScraperStatus
from scraping.recovery import breakers
from scraping.scheduler.recover import end_pauses, restart_scrapers
from scraping.worker.engine import Engine, target_of
from tests.factories import NOW, make_match, make_ref, make_scraper
from tests.scraping.builders import ScriptedReader, claimed, later, open_task
from victoryline import configuration

CALM = "scraper: {lifecycle: {polling_interval: 2.5, staleness_threshold: 300}}"
PATIENT = "scraper: {lifecycle: {polling_interval: 7, staleness_threshold: 900}}"
BROKEN = "scraper: {lifecycle: {polling_interval: soon, stale_threshold: 9}}"


class File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = 0

    def write(self, text: str) -> None:
        """Two writes within one tick of the clock must differ in their time."""
        self._written += 1
        self.path.write_text(text)
        os.utime(self.path, (self._written, self._written))


@pytest.fixture
def file(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> File:
    file = File(tmp_path / "site.yaml")
    file.write(CALM)
    settings.LOAD_CONFIG = lambda: configuration.load({"CONFIG_FILE": str(file.path)})
    settings.CONFIG = settings.LOAD_CONFIG().model_copy(update={"config_file": file.path})
    monkeypatch.setattr(policies, "_current", policies._Current())
    return file


@pytest.mark.requirement("US2.2")
class TestReload:
    def test_reads_a_changed_file_once(self, file: File) -> None:
        assert policies.current().pace.baseline_seconds == 2.5
        assert not policies.reload(), "nothing has changed"
        file.write(PATIENT)
        assert policies.current().pace.baseline_seconds == 2.5, "not before the first call"
        assert [policies.reload(), policies.reload()] == [True, False]
        assert policies.current().pace.baseline_seconds == 7
        assert policies.current().staleness_threshold_seconds == 900

    @pytest.mark.django_db
    @pytest.mark.requirement("SO-5")
    def test_the_status_shows_what_is_in_effect(self, file: File) -> None:
        first = status_document(Evaluation(NOW))["config_snapshot"]
        file.write(PATIENT)
        then = status_document(Evaluation(NOW))["config_snapshot"]
        shown = [(one["polling_interval_seconds"], one["staleness_threshold_seconds"]) for one in (first, then)]
        assert shown == [(2.5, 300), (7, 900)]
        assert then == {name: getattr(settings.LOAD_CONFIG(), name) for name in then}

    def test_logs_the_changes(self, file: File, caplog: pytest.LogCaptureFixture) -> None:
        file.write(PATIENT)
        policies.reload()
        assert "site.yaml was read again" in caplog.text
        assert "staleness_threshold_seconds 300 is now 900" in caplog.text

    def test_an_invalid_file_changes_nothing(self, file: File, caplog: pytest.LogCaptureFixture) -> None:
        file.write(BROKEN)
        assert not policies.reload()
        assert not policies.reload()
        refused = [record for record in caplog.records if record.levelname == "ERROR"]
        assert len(refused) == 1, "logged once, not with every call"
        text = refused[0].getMessage()
        assert 'POLLING_INTERVAL_SECONDS is "soon"' in text
        assert "scraper.lifecycle.stale_threshold (site.yaml) is not a known key" in text
        assert "The current values stay in use" in text
        assert policies.current().pace.baseline_seconds == 2.5
        file.write(PATIENT)
        assert policies.reload()

    def test_a_missing_file_changes_nothing(self, file: File, caplog: pytest.LogCaptureFixture) -> None:
        policies.reload()
        file.path.unlink()
        assert [policies.reload(), policies.reload()] == [False, False]
        assert caplog.text.count("can't be read") == 1
        assert policies.current().pace.baseline_seconds == 2.5

    def test_waits_for_a_file_that_is_being_written(self, file: File) -> None:
        file.path.write_text("")
        assert not policies.reload(), "an empty file would mean all defaults"
        file.write(PATIENT)
        assert policies.reload()
        assert policies.current().pace.baseline_seconds == 7

    def test_the_environment_overrides_the_file(self, file: File, settings: Any) -> None:
        environ = {"CONFIG_FILE": str(file.path), "POLLING_INTERVAL_SECONDS": "3"}
        settings.LOAD_CONFIG = lambda: configuration.load(environ)
        file.write(PATIENT)
        assert policies.reload()
        assert policies.current().pace.baseline_seconds == 3


@pytest.mark.django_db
@pytest.mark.requirement("US2.2")
class TestCallers:
    def test_the_scheduler_when_a_pause_ends(self, file: File) -> None:
        match = make_match()
        lifecycle.pause(match_id=match.pk, until=later(300), reason="5 failed tasks", actor="the engine", now=NOW)
        file.write(PATIENT)
        assert end_pauses(later(299)) == 0
        assert policies.current().pace.baseline_seconds == 2.5
        assert end_pauses(later(301)) == 1
        assert policies.current().pace.baseline_seconds == 7

    def test_the_scheduler_when_a_scraper_is_replaced(self, file: File) -> None:
        make_scraper(make_ref(), error_count=11, last_update_time=NOW)
        file.write(PATIENT)
        assert restart_scrapers(NOW) == 1
        assert policies.current().staleness_threshold_seconds == 900

    @pytest.mark.parametrize(
        ("status", "expected"), [(ScraperStatus.ACTIVE, 2.5), (ScraperStatus.STOPPED, 7.0)], ids=["goes on", "anew"]
    )
    def test_a_worker_when_a_match_is_restarted(self, file: File, status: ScraperStatus, expected: float) -> None:
        ref = make_ref(make_match(scraper_status=status), read_mode="direct", read_mode_since=NOW - timedelta(hours=1))
        engine = Engine(worker_id="w-1", reader=ScriptedReader(ValueError("unread")), policies=policies.current())
        file.write(PATIENT)
        target_of(claimed(open_task(ref)), MatchRef.objects.select_related("source", "match").get(), engine)
        assert engine.policies.pace.baseline_seconds == expected

    def test_an_engine_uses_what_its_process_has_reloaded(self, file: File) -> None:
        engine = Engine(worker_id="w-1", reader=ScriptedReader(ValueError("unread")), policies=policies.current())
        file.write(PATIENT)
        policies.reload()
        engine.reload_policies()
        assert engine.policies.pace.baseline_seconds == 7

    def test_the_process_that_closes_a_breaker(self, file: File) -> None:
        ref = make_ref(make_match())
        breaker = Breaker.objects.create(
            name="crex_1", ref=ref, state="OPEN", open_until=later(60), last_state_change=NOW
        )
        file.write(PATIENT)
        breakers.reset(breaker, actor="Ann", now=NOW)
        assert policies.current().pace.baseline_seconds == 7
