"""Operators replace browsers: by POST, in the admin, at the command line. The workers' part is tested elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from scraping.models import Worker, WorkerCommand
from scraping.recovery import worker_commands

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("SO-15")]


def make_worker(name: str, *, silent_seconds: float = 0.0) -> Worker:
    at = timezone.now() - timedelta(seconds=silent_seconds)
    return Worker.objects.create(worker_id=name, host="here", pid=1, started_at=at, heartbeat_at=at)


def test_the_list_of_commands_shows_their_outcomes(admin_client: Client) -> None:
    make_worker("w1")
    page = reverse("admin:scraping_workercommand_changelist")
    assert "No worker was commanded" in admin_client.get(page).content.decode()
    now = timezone.now()
    worker_commands.recycle("w1", reason="it leaks", actor="ada", now=now)
    assert "not taken yet" in admin_client.get(page).content.decode()
    (order,) = worker_commands.take("w1", now=now)
    assert "running" in admin_client.get(page).content.decode()
    worker_commands.finish(order, outcome="browser 2 took its place", now=now + timedelta(seconds=3))
    assert "browser 2 took its place, after 3 s" in admin_client.get(page).content.decode()


class TestByPost:
    def test_creates_a_command_for_every_live_worker(self, admin_client: Client) -> None:
        make_worker("w1"), make_worker("w2"), make_worker("gone", silent_seconds=60)
        answer = admin_client.post("/admin/recycle", {"reason": "it leaks"})
        assert answer.status_code == 202
        assert answer.json()["workers"] == ["w1", "w2"]
        given = WorkerCommand.objects.order_by("pk").values_list("worker_id", "kind", "reason", "actor")
        assert list(given) == [(name, "recycle_browser", "it leaks", "admin") for name in ("w1", "w2")]

    def test_a_second_request_creates_no_second_command(self, admin_client: Client) -> None:
        make_worker("w1")
        first, second = (admin_client.post("/admin/recycle").json() for _ in range(2))
        assert (len(first["commands"]), second["commands"], second["workers"]) == (1, [], ["w1"])

    @pytest.mark.parametrize(("worker_id", "code"), [("", 409), ("w9", 404)])
    def test_reports_that_no_worker_is_alive(self, admin_client: Client, worker_id: str, code: int) -> None:
        answer = admin_client.post("/admin/recycle", {"worker_id": worker_id})
        assert (answer.status_code, WorkerCommand.objects.count()) == (code, 0)

    def test_needs_permission_and_post(self, admin_client: Client, client: Client) -> None:
        make_worker("w1")
        assert client.post("/admin/recycle").status_code == 403
        person = User.objects.create_user("ada", password="x", is_staff=True)
        client.force_login(person)
        assert client.post("/admin/recycle").status_code == 403
        person.user_permissions.add(Permission.objects.get(codename="add_workercommand"))
        assert client.post("/admin/recycle").status_code == 202
        assert admin_client.get("/admin/recycle").status_code == 405

    def test_refuses_a_form_from_another_site(self, admin_user: User) -> None:
        make_worker("w1")
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(admin_user)
        assert browser.post("/admin/recycle").status_code == 403
        assert not WorkerCommand.objects.exists()


def test_on_the_page_of_a_worker(admin_client: Client) -> None:
    one, gone = make_worker("w1"), make_worker("gone", silent_seconds=60)
    for row, said in ((one, "Replacing 1 worker&#x27;s browser."), (gone, "1 refused: gone is not running")):
        address = reverse("admin:scraping_worker_recycle_one", args=[row.pk])
        assert "required" in admin_client.post(address, {"_form_submitted": "True"}).content.decode()
        filled = {"_form_submitted": "True", "reason": "it leaks"}
        assert said in admin_client.post(address, filled, follow=True).content.decode()
    assert list(WorkerCommand.objects.values_list("worker_id", "reason")) == [("w1", "it leaks")]


class TestCommandLine:
    def test_prints_the_outcome_of_each_worker(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_worker("w1")

        def work(seconds: float) -> None:
            taken = worker_commands.take("w1", now=timezone.now())
            for one in taken:
                worker_commands.finish(one, outcome="browser 2 took its place", now=timezone.now())

        monkeypatch.setattr("scraping.management.commands.browsers.time.sleep", work)
        call_command("browsers", "recycle", "w1", by="ada")
        assert "w1: browser 2 took its place" in capsys.readouterr().out

    def test_reports_that_no_worker_is_alive_on_the_command_line(self) -> None:
        with pytest.raises(CommandError, match="No worker named w1 is running"):
            call_command("browsers", "recycle", "w1")
