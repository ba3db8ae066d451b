"""The second factor of staff, the lock of logins, and the search box of the console."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from monitoring.models import AuditEntry
from scraping.models import ErrorGroup, ScrapeJob, Worker
from tests.admin.rows import make_everything
from tests.monitoring.rows import make_task, make_watched
from victoryline.roles import VIEWER
from victoryline.second_factor import LoginForm

pytestmark = pytest.mark.django_db
LOGIN, INDEX = "/admin/login/", "/admin/"
PASSWORD = {"username": "admin", "password": "password"}


@pytest.fixture
def second_factor(monkeypatch: pytest.MonkeyPatch, settings: pytest.FixtureRequest, admin_user: User) -> User:
    """As STAFF_SECOND_FACTOR does it."""
    chain = list(settings.MIDDLEWARE)  # type: ignore[attr-defined]
    place = chain.index("django.contrib.auth.middleware.AuthenticationMiddleware") + 1
    settings.MIDDLEWARE = [*chain[:place], *settings.SECOND_FACTOR, *chain[place:]]  # type: ignore[attr-defined]
    monkeypatch.setattr(admin.site, "login_form", LoginForm)
    return admin_user


def code(user: User) -> str:
    device = TOTPDevice.objects.get(user=user)
    return f"{totp(device.bin_key, device.step, device.t0, device.digits):06}"


class TestSecondFactor:
    def test_needs_the_code_of_the_device(self, client: Client, second_factor: User) -> None:
        call_command("second_factor", "add", "admin")
        assert 'name="otp_token"' in client.get(LOGIN).content.decode()
        for wrong in ({}, {"otp_token": "000000"}):
            page = client.post(LOGIN, {**PASSWORD, **wrong})
            assert page.status_code == 200
            assert 'value="password"' not in page.content.decode(), "the password is not sent back"
            TOTPDevice.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
        assert client.get(INDEX).status_code == 302
        assert client.post(LOGIN, {**PASSWORD, "otp_token": code(second_factor)})["Location"] == INDEX
        assert client.get(INDEX).status_code == 200

    def test_a_recovery_code_works_once(
        self, client: Client, second_factor: User, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("second_factor", "add", "admin", by="ada")
        recovery = re.findall(r"^  ([a-z2-7]{8})$", capsys.readouterr().out, re.MULTILINE)
        assert len(recovery) == 10
        sent = {**PASSWORD, "otp_token": recovery[0]}
        assert client.post(LOGIN, sent).status_code == 302
        client.logout()
        assert client.post(LOGIN, sent).status_code == 200

    def test_a_session_of_before_counts_as_no_staff(self, client: Client, second_factor: User) -> None:
        client.force_login(second_factor)
        assert client.get(INDEX)["Location"].startswith(LOGIN)
        assert client.post("/admin/recycle").status_code == 403
        second_factor.refresh_from_db()
        assert second_factor.is_staff

    def test_is_taken_away_by_the_command(self, second_factor: User) -> None:
        call_command("second_factor", "add", "admin", by="ada")
        call_command("second_factor", "remove", "admin", by="ada")
        with pytest.raises(CommandError, match="has no second factor"):
            call_command("second_factor", "remove", "admin")
        with pytest.raises(CommandError, match="no user eve"):
            call_command("second_factor", "add", "eve")
        recorded = AuditEntry.objects.order_by("pk").values_list("action_type", "actor", "target")
        assert list(recorded) == [("second_factor_add", "ada", "admin"), ("second_factor_remove", "ada", "admin")]

    def test_is_off_without_the_setting(self, client: Client, admin_user: User) -> None:
        assert not settings.CONFIG.staff_second_factor
        assert client.post(LOGIN, PASSWORD)["Location"] == INDEX


class TestLock:
    @pytest.mark.parametrize(
        ("change", "is_locked"), [({"username": "eve"}, True), ({"address": "192.0.2.9"}, True), ({}, True)]
    )
    def test_holds_for_the_name_and_for_the_address(
        self, client: Client, admin_user: User, change: dict[str, str], is_locked: bool
    ) -> None:
        for _ in range(settings.AXES_FAILURE_LIMIT):
            last = client.post(LOGIN, {**PASSWORD, "password": "wrong"})
        assert (last.status_code, last["Retry-After"]) == (429, "900")
        address = change.pop("address", "127.0.0.1")
        answer = client.post(LOGIN, {**PASSWORD, **change}, REMOTE_ADDR=address)
        assert (answer.status_code == 429) is is_locked

    def test_leaves_others_alone(self, client: Client, admin_user: User) -> None:
        for _ in range(settings.AXES_FAILURE_LIMIT):
            client.post(LOGIN, {"username": "eve", "password": "wrong"}, REMOTE_ADDR="192.0.2.9")
        assert client.post(LOGIN, PASSWORD).status_code == 302


class TestSearchBox:
    def search(self, client: Client, text: str) -> str:
        return client.get(reverse("admin:search"), {"s": text, "extended": "1"}).content.decode()

    def test_finds_what_stands_in_logs(self, admin_client: Client) -> None:
        make_everything()
        match, ref, _ = make_watched(title="Sri Lanka v Kenya")
        task = make_task(ref)
        job, worker = ScrapeJob.objects.first(), Worker.objects.first()
        assert job is not None
        assert worker is not None
        group = ErrorGroup.objects.get()
        for text, page in (
            (ref.key, f"/admin/scraping/match/{match.pk}/change/"),
            ("sri lanka", f"/admin/scraping/match/{match.pk}/change/"),
            (str(task.pk), f"/admin/scraping/scrapetask/{task.pk}/change/"),
            (str(task.request_id), f"/admin/scraping/scrapetask/{task.pk}/change/"),
            (str(job.pk), f"/admin/scraping/scrapejob/{job.pk}/change/"),
            (group.fingerprint[:12], f"/admin/scraping/errorgroup/{group.pk}/change/"),
            ("ab12", "/admin/apiauth/consumer/"),
            (worker.worker_id, f"/admin/scraping/worker/{worker.pk}/change/"),
        ):
            found = self.search(admin_client, text)
            assert f'href="{page}' in found, text
            assert "<script>alert" not in found

    def test_shows_only_what_the_user_may_view(self, client: Client) -> None:
        _, ref, _ = make_watched(title="Sri Lanka v Kenya")
        user = User.objects.create_user("kim", is_staff=True)
        client.force_login(user)
        assert "Sri Lanka" not in self.search(client, ref.key)
        user.groups.add(Group.objects.get(name=VIEWER))
        assert "Sri Lanka" in self.search(client, ref.key)

    def test_is_on_every_page(self, admin_client: Client) -> None:
        assert "opencommand" in admin_client.get(INDEX).content.decode()
