"""Commands of operators: the verbs for tasks; JSON of lists; dry runs that change nothing."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apiauth import keys
from apiauth.models import ApiKey, Consumer
from monitoring.models import AuditEntry
from scraping.models import Breaker, ScrapeJob, ScrapeTask, Source, TaskState, WorkerCommand
from tests.monitoring.rows import make_task, make_watched, make_worker

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def output_of(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def json_of(*words: str) -> dict[str, Any]:
    return json.loads(output_of(*words, "--json"))  # type: ignore[no-any-return]


@pytest.mark.requirement("BX-11")
class TestTask:
    @pytest.fixture
    def dead(self) -> ScrapeTask:
        return make_task(make_watched()[1], state=TaskState.DEAD, error_class="drift")

    def test_discards_by_a_filter_after_a_dry_run(self, dead: ScrapeTask) -> None:
        words = ("task", "discard", "--error-class", "drift", "--reason", "old", "--by", "ann")
        assert output_of(*words, "--dry-run") == "Would discard 1 task.\n"
        assert not AuditEntry.objects.exists()
        assert json_of(*words) == {"dry_run": False, "changed": [dead.pk], "refused": {}, "has_more": False}
        dead.refresh_from_db()
        assert dead.state == TaskState.DISCARDED
        assert AuditEntry.objects.get().actor == "ann"

    def test_cancels_by_id_and_gives_the_reason_of_a_refusal(self, dead: ScrapeTask) -> None:
        waiting = make_task(dead.ref)
        text = output_of("task", "cancel", str(waiting.pk), str(dead.pk), "--reason", "old")
        assert text.startswith("Cancelled 1 task.\nRefused: 1.\n")
        assert f"task {dead.pk}: it is DEAD; only PENDING tasks can be cancelled" in text

    def test_retries_by_id(self, dead: ScrapeTask) -> None:
        assert json_of("task", "list")["tasks"][0]["pk"] == dead.pk
        assert output_of("task", "retry", str(dead.pk)) == "Retried 1 task.\n"
        assert json_of("task", "list") == {"tasks": []}

    def test_needs_tasks_or_a_filter(self) -> None:
        with pytest.raises(CommandError, match="name tasks, or give a filter"):
            output_of("task", "cancel", "--reason", "x")


class TestDryRuns:
    def test_change_nothing(self) -> None:
        make_watched()
        make_worker("w1")
        issued = keys.issue(consumer_name="acme", scopes=["read"], now=timezone.now(), actor="ann")
        AuditEntry.objects.all().delete()
        prefix = issued.key.prefix
        Source.objects.filter(key="crex").update(base_url="https://crex.example")
        assert "forced open" in output_of("breaker", "--dry-run", "trip", "crex", "--minutes", "5", "--reason", "x")
        assert "Would command w1." in output_of("browsers", "recycle", "--dry-run")
        assert f"Would revoke {prefix}." in output_of("api_keys", "revoke", prefix, "--dry-run")
        assert "Would consumer acme." in output_of("api_keys", "consumer", "acme", "--inactive", "--dry-run")
        assert "nothing was changed" in output_of("sync_sources", "--reset", "--dry-run")
        url = "https://crex.example/scoreboard/13KM/1/1/1/kenya-vs-nepal/live"
        output_of("job", "urls", url, "--dry-run")
        assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()
        assert Consumer.objects.get().is_active
        assert Source.objects.get(key="crex").base_url == "https://crex.example"
        found = [model.objects.count() for model in (Breaker, WorkerCommand, ScrapeJob, AuditEntry, Source)]
        assert found == [0, 0, 0, 0, 1]


def test_lists_have_json() -> None:
    match, ref, _ = make_watched()
    output_of("breaker", "trip", ref.key, "--minutes", "5", "--reason", "rain")
    keys.issue(consumer_name="acme", scopes=["read"], now=timezone.now(), actor="ann")
    (breaker,) = json_of("breaker", "list")["breakers"]
    assert (breaker["shown_state"], breaker["name"]) == ("forced open", f"{ref.key}_scraper")
    assert [key["consumer"] for key in json_of("api_keys", "list")["keys"]] == ["acme"]
    assert [row["TITLE"] for row in json_of("watch")["matches"]] == [match.title]
    assert json_of("prune", "--dry-run")["tables"]["tasks-discarded"] == 0
