"""Parts of a response that could not be read: an error with the response as evidence, once an hour."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from scraping.journal import evidence
from scraping.models import MatchRef, ScrapeError, TaskState
from scraping.payloads import BrokenPart, Integrity, Payload
from scraping.reading.reader import Target
from scraping.readings import Document, Reading, ReadMode
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import make_ref
from tests.scraping.builders import POLICIES, ScriptedReader, chasing, open_task, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("SO-12")]


class ReaderWithDocument(ScriptedReader):
    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        payload = self._next()
        live = Document("live", target.ref.url, 200, "application/json", b'{"batters": [null]}')
        return Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={"live": live}), payload


def poll(ref: MatchRef, runs: int, *paths: str, after: timedelta = timedelta()) -> None:
    """One poll whose reading lacks the parts at these paths."""
    at = timezone.now() + after
    parts = tuple(BrokenPart(path=path, expected="Field required") for path in paths)
    payload = payload_of(ref, chasing(runs), at=at, integrity=Integrity(broken_parts=parts))
    task_id = open_task(ref, at=at - timedelta(minutes=1) if not after else timezone.now())
    scrape([task_id], Engine(worker_id="w-1", reader=ReaderWithDocument(payload), policies=POLICIES))
    assert ref.tasks.get(pk=task_id).state == TaskState.SUCCESS


def test_are_reported_with_the_response(django_capture_on_commit_callbacks: object) -> None:
    ref = make_ref()
    poll(ref, 100, "batters[].name")
    error = ScrapeError.objects.get()
    assert (error.error_class, error.match_key, error.match_id) == ("drift", ref.key, ref.match_id)
    assert "batters[].name (Field required), 1 times" in error.error_message
    content = evidence.content_of(error.files.get())
    assert content is not None
    assert b'{"batters": [null]}' in content


def test_their_files_are_written_outside_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    ref, depths = make_ref(), []
    store = evidence.store
    outside = len(connection.savepoint_ids)

    def stored(*args: Any, **fields: Any) -> Any:
        depths.append(len(connection.savepoint_ids))
        return store(*args, **fields)

    monkeypatch.setattr(evidence, "store", stored)
    poll(ref, 100, "batters[].name")
    assert depths == [outside]


def test_are_reported_once() -> None:
    ref = make_ref()
    poll(ref, 100, "batters[].name")
    poll(ref, 101, "batters[].name")
    poll(ref, 102)
    poll(ref, 103, "batters[].name")
    assert ScrapeError.objects.count() == 1


def test_another_part_is_another_report() -> None:
    ref = make_ref()
    poll(ref, 100, "batters[].name")
    poll(ref, 101, "batters[].name", "venue")
    assert ScrapeError.objects.count() == 2


def test_a_whole_reading_reports_nothing() -> None:
    poll(make_ref(), 100)
    assert not ScrapeError.objects.exists()
