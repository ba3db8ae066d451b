"""Operator actions on a breaker, in the admin and by command. Both call the same functions and are audited."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.models import Breaker, ScrapeTask
from scraping.recovery import breakers
from scraping.scheduler.recover import evaluate_source_breakers
from tests.admin.test_actions import act
from tests.factories import make_source
from tests.monitoring.rows import make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("BX-7", "BX-11")]


@pytest.fixture
def breaker() -> Breaker:
    make_source()
    evaluate_source_breakers(timezone.now())
    return Breaker.objects.get()


def submit(client: Client, breaker: Breaker, name: str, **fields: object) -> int:
    url = reverse(f"admin:scraping_breaker_{name}", args=[breaker.pk])
    return client.post(url, {"_form_submitted": "on", **fields}).status_code


def audited() -> list[tuple[str, str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("actor", "action_type", "trigger_condition"))


def command(*words: str) -> str:
    out = StringIO()
    call_command("breaker", *words, stdout=out)
    return out.getvalue()


def test_an_override_that_has_ended_is_not_shown_as_forced(breaker: Breaker) -> None:
    command("trip", breaker.name, "--minutes", "10", "--reason", "maintenance")
    assert "forced open" in command("list")
    Breaker.objects.filter(pk=breaker.pk).update(forced_until=timezone.now() - timedelta(seconds=1))
    assert "forced open" not in command("list")


class TestConsole:
    @pytest.mark.parametrize(("name", "forced"), [("force_open_one", "OPEN"), ("force_closed_one", "CLOSED")])
    def test_forces_a_state_with_an_end_and_a_reason(
        self, admin_client: Client, breaker: Breaker, name: str, forced: str
    ) -> None:
        assert submit(admin_client, breaker, name, minutes=10, reason="they asked us to") == 302
        breaker.refresh_from_db()
        assert (breaker.state, breaker.forced, breaker.forced_by) == (forced, forced, "admin")
        assert (breaker.forced_reason, breaker.reason) == ("they asked us to", "they asked us to (by admin)")
        assert breaker.forced_until is not None
        assert timedelta(minutes=9) < breaker.forced_until - timezone.now() <= timedelta(minutes=10)
        assert audited() == [("admin", f"breaker_force_{forced.lower()}", "they asked us to")]

    @pytest.mark.parametrize(
        "fields", [{"minutes": 10, "reason": ""}, {"minutes": 0, "reason": "x"}, {"minutes": 1441, "reason": "x"}, {}]
    )
    def test_needs_end_and_reason(self, admin_client: Client, breaker: Breaker, fields: dict[str, object]) -> None:
        assert submit(admin_client, breaker, "force_open_one", **fields) == 200
        breaker.refresh_from_db()
        assert (breaker.state, breaker.forced) == ("CLOSED", "")

    def test_ends_a_forced_state(self, admin_client: Client, breaker: Breaker) -> None:
        submit(admin_client, breaker, "force_open_one", minutes=10, reason="x")
        assert submit(admin_client, breaker, "reset_one") == 302
        breaker.refresh_from_db()
        assert (breaker.state, breaker.forced, breaker.open_until, breaker.forced_by) == ("CLOSED", "", None, "")
        assert [action for _, action, _ in audited()] == ["breaker_force_open", "breaker_reset"]

    def test_starts_probes(self, admin_client: Client, breaker: Breaker) -> None:
        submit(admin_client, breaker, "force_open_one", minutes=10, reason="x")
        assert submit(admin_client, breaker, "probe_one") == 302
        breaker.refresh_from_db()
        assert (breaker.state, breaker.forced) == ("HALF_OPEN", "")

    def test_acts_on_several_and_names_those_refused(self, admin_client: Client, breaker: Breaker) -> None:
        make_source("sofascore")
        evaluate_source_breakers(timezone.now())
        other = Breaker.objects.exclude(pk=breaker.pk).get()
        submit(admin_client, breaker, "force_open_one", minutes=10, reason="x")
        page = act(admin_client, "scraping_breaker", "probe_selected", breaker, other)
        assert "Probing 1 breaker." in page
        assert "sofascore_source is closed" in page
        assert "Reset 2 breakers." in act(admin_client, "scraping_breaker", "reset_selected", breaker, other)

    def test_shows_state_reason_end_and_counts(self, admin_client: Client, breaker: Breaker) -> None:
        submit(admin_client, breaker, "force_open_one", minutes=10, reason="they asked us to")
        page = admin_client.get(reverse("admin:scraping_breaker_changelist")).content.decode()
        assert "forced open" in page
        assert "they asked us to (by admin)" in page
        own = admin_client.get(reverse("admin:scraping_breaker_change", args=[breaker.pk])).content.decode()
        assert "0 calls in 10 min, 0 bad" in own
        assert "0 of them retries" in own

    def test_refuses_users_with_read_permission_only(self, client: Client, breaker: Breaker) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_breaker"))
        client.force_login(viewer)
        assert submit(client, breaker, "force_open_one", minutes=10, reason="x") == 403
        breaker.refresh_from_db()
        assert breaker.state == "CLOSED"


class TestCommand:
    def test_trips_closes_resets_and_probes(self, breaker: Breaker) -> None:
        assert "crex_source: forced open until " in command(
            "--by", "anna", "trip", "crex", "--minutes", "5", "--reason", "they asked us to"
        )
        assert "they asked us to (by anna)" in command("list")
        assert "half open: probes requested by anna" in command("--by", "anna", "probe", "crex_source")
        assert "forced closed until" in command("close", "crex", "--minutes", "5", "--reason", "x")
        assert "closed: reset by" in command("reset", "crex")
        actions = [action for _, action, _ in audited()]
        assert actions == ["breaker_force_open", "breaker_probe", "breaker_force_closed", "breaker_reset"]

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (("trip", "unknown", "--minutes", "5", "--reason", "x"), "no breaker, source or match named unknown"),
            (("trip", "crex", "--minutes", "0", "--reason", "x"), "an override must end"),
            (("trip", "crex", "--minutes", "5", "--reason", " "), "a reason is required"),
            (("probe", "crex"), "is closed: every request passes"),
        ],
    )
    def test_gives_the_reason_of_a_refusal_and_changes_nothing(
        self, breaker: Breaker, words: tuple[str, ...], why: str
    ) -> None:
        before = Breaker.objects.values().get()
        with pytest.raises(CommandError, match=why):
            command(*words)
        assert Breaker.objects.values().get() == before
        assert not AuditEntry.objects.exists()

    def test_a_probe_makes_the_match_due_at_once(self) -> None:
        """The open breaker had postponed its task and its next poll."""
        _, ref, _ = make_watched()
        now = timezone.now()
        until = now + timedelta(minutes=1)
        Breaker.objects.create(name="b", ref=ref, state="OPEN", open_until=until, last_state_change=now)
        task = make_task(ref, state="PENDING", run_at=until)
        type(ref).objects.filter(pk=ref.pk).update(next_poll_at=until)
        command("probe", ref.key)
        ref.refresh_from_db()
        assert ScrapeTask.objects.get(pk=task.pk).run_at <= timezone.now()
        assert ref.next_poll_at <= timezone.now()
        assert breakers.find(ref.key, now=now).state == "HALF_OPEN"
