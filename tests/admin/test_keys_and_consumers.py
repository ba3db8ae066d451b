"""Consumers and their keys in the admin: a key is shown once, ending one needs confirmation, everything is audited."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apiauth import authentication, keys
from apiauth.models import ApiKey, Consumer
from monitoring.models import AuditEntry
from tests.admin.rows import EVIL

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("FR-026")]

KEY = re.compile(r"vl_[0-9a-f]{12}\.[A-Za-z0-9_-]{43}")
NO_INLINES = {"keys-TOTAL_FORMS": 0, "keys-INITIAL_FORMS": 0}


@pytest.fixture
def issued() -> keys.IssuedKey:
    authentication.forget()
    return keys.issue(consumer_name="acme", scopes=["read"], label="app", now=timezone.now())


def page(client: Client, name: str, row: Any, **fields: object) -> HttpResponse:
    """Requests the page of an action; with fields, submits it."""
    url = reverse(f"admin:apiauth_{name}", args=[row.pk])
    return client.post(url, fields) if fields else client.get(url, headers={"HX-Request": "true"})


def revoke(client: Client, key: ApiKey, reason: str) -> HttpResponse:
    return page(client, "apikey_revoke_one", key, reason=reason, _form_submitted="on")


def audited() -> list[tuple[str, str, str, str]]:
    entries = AuditEntry.objects.order_by("pk")
    return list(entries.values_list("actor", "action_type", "target", "trigger_condition"))


def staff(client: Client, *codenames: str) -> Client:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(viewer)
    return client


class TestIssue:
    def issue(self, client: Client, consumer: Consumer, **changes: object) -> HttpResponse:
        fields = {"scopes": ["read", "ingest"], "label": "night shift", "expires_in_days": 30, "form_id": uuid.uuid4()}
        return page(client, "consumer_issue_key", consumer, **(fields | changes))

    def test_shows_a_key_that_works_once_and_stores_it_nowhere(self, admin_client: Client) -> None:
        consumer = Consumer.objects.create(name="acme", created_at=timezone.now())
        answer = self.issue(admin_client, consumer)
        text = KEY.search(answer.content.decode())[0]
        key = keys.verify(text, timezone.now())
        assert key is not None
        assert (key.consumer, key.scopes, key.label) == (consumer, ["ingest", "read"], "night shift")
        assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)
        assert "no-store" in answer.headers["Cache-Control"]
        secret = text.partition(".")[2]
        assert secret not in str(dict(admin_client.session))
        assert secret not in str(admin_client.cookies)
        for name in ("consumer", "apikey"):
            row = consumer if name == "consumer" else key
            assert secret not in page(admin_client, f"{name}_change", row).content.decode()
        assert audited()[-1] == ("admin", "key_issued", key.prefix, "requested by an operator")

    def test_reloading_the_page_issues_no_second_key(self, admin_client: Client) -> None:
        consumer = Consumer.objects.create(name="acme", created_at=timezone.now())
        form_id = uuid.uuid4()
        self.issue(admin_client, consumer, form_id=form_id)
        again = self.issue(admin_client, consumer, form_id=form_id).content.decode()
        assert "was sent already" in again
        assert not KEY.search(again)
        assert ApiKey.objects.count() == 1

    @pytest.mark.parametrize(
        "changes", [{"scopes": []}, {"scopes": ["fly"]}, {"expires_in_days": 0}, {"label": "x" * 81}, {"form_id": "x"}]
    )
    def test_refuses_invalid_values(self, admin_client: Client, changes: dict[str, object]) -> None:
        consumer = Consumer.objects.create(name="acme", created_at=timezone.now())
        assert self.issue(admin_client, consumer, **changes).status_code == 200
        assert not ApiKey.objects.exists()

    def test_refuses_an_inactive_consumer(self, admin_client: Client) -> None:
        consumer = Consumer.objects.create(name="acme", created_at=timezone.now(), is_active=False)
        assert "is inactive" in self.issue(admin_client, consumer).content.decode()
        assert not ApiKey.objects.exists()

    def test_escapes_names_on_the_confirmation_page(self, admin_client: Client) -> None:
        consumer = Consumer.objects.create(name=EVIL, created_at=timezone.now())
        asked = page(admin_client, "consumer_issue_key", consumer).content.decode()
        assert EVIL not in asked
        assert "&lt;script&gt;" in asked

    def test_needs_the_permission_to_add_keys(self, client: Client) -> None:
        consumer = Consumer.objects.create(name="acme", created_at=timezone.now())
        staff(client, "view_consumer", "change_consumer", "view_apikey", "change_apikey")
        assert self.issue(client, consumer).status_code == 403
        assert not ApiKey.objects.exists()

    def test_refuses_a_form_from_another_site(self, admin_user: User) -> None:
        consumer = Consumer.objects.create(name="acme", created_at=timezone.now())
        client = Client(enforce_csrf_checks=True)
        client.force_login(admin_user)
        assert self.issue(client, consumer).status_code == 403
        assert not ApiKey.objects.exists()


class TestRotate:
    def test_shows_the_new_key_once_and_the_old_one_expires(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        assert "Rotate the key" in page(admin_client, "apikey_rotate_one", issued.key).content.decode()
        answer = page(admin_client, "apikey_rotate_one", issued.key, overlap_hours=2)
        new = keys.verify(KEY.search(answer.content.decode())[0], timezone.now())
        issued.key.refresh_from_db()
        assert new is not None
        assert (new.label, new.scopes, issued.key.replaced_by) == ("app", ["read"], new)
        assert timedelta(minutes=119) < issued.key.expires_at - timezone.now() <= timedelta(hours=2)
        assert "no-store" in answer.headers["Cache-Control"]
        assert audited()[-1][:3] == ("admin", "key_rotated", issued.key.prefix)

    def test_gives_the_reason_of_a_refusal(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        page(admin_client, "apikey_rotate_one", issued.key, overlap_hours=2)
        again = page(admin_client, "apikey_rotate_one", issued.key, overlap_hours=2).content.decode()
        assert "was rotated already" in again
        assert ApiKey.objects.count() == 2

    def test_needs_the_permissions_to_add_and_change_keys(self, client: Client, issued: keys.IssuedKey) -> None:
        staff(client, "view_apikey", "change_apikey")
        assert page(client, "apikey_rotate_one", issued.key, overlap_hours=2).status_code == 403
        assert ApiKey.objects.count() == 1


class TestRevoke:
    def test_needs_confirmation(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        assert "This is final." in page(admin_client, "apikey_revoke_one", issued.key).content.decode()
        issued.key.refresh_from_db()
        assert issued.key.revoked_at is None

    def test_revokes_the_key_with_a_reason(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        assert revoke(admin_client, issued.key, " ").status_code == 200
        assert revoke(admin_client, issued.key, "it leaked").status_code == 302
        issued.key.refresh_from_db()
        assert issued.key.revoked_at is not None
        assert issued.key.revoke_reason == "it leaked"
        assert audited()[-1] == ("admin", "key_revoked", issued.key.prefix, "it leaked")

    def test_refuses_a_revoked_key(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        keys.revoke(prefix=issued.key.prefix, now=timezone.now(), reason="it leaked")
        url = reverse("admin:apiauth_apikey_revoke_one", args=[issued.key.pk])
        page = admin_client.post(url, {"reason": "again", "_form_submitted": "on"}, follow=True).content.decode()
        assert "is revoked already" in page
        issued.key.refresh_from_db()
        assert issued.key.revoke_reason == "it leaked"

    def test_refuses_users_with_read_permission_only(self, client: Client, issued: keys.IssuedKey) -> None:
        staff(client, "view_apikey", "add_apikey")
        assert revoke(client, issued.key, "x").status_code == 403
        issued.key.refresh_from_db()
        assert issued.key.revoked_at is None


@pytest.mark.parametrize("number", ["99", "x", "9" * 30, "9" * 5000])
@pytest.mark.parametrize("name", ["consumer_issue_key", "apikey_rotate_one", "apikey_revoke_one"])
def test_an_unknown_key_is_not_found(admin_client: Client, name: str, number: str) -> None:
    url = reverse(f"admin:apiauth_{name}", args=[number])
    assert admin_client.post(url, {"reason": "x", "_form_submitted": "on"}).status_code == 404


class TestLists:
    def test_show_state_limit_and_last_use(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        soon = timezone.now() + timedelta(days=6)
        keys.issue(consumer_name="beta", scopes=["read"], now=timezone.now(), expires_at=soon)
        listed = admin_client.get(reverse("admin:apiauth_apikey_changelist")).content.decode()
        assert "expires soon" in listed
        assert "in use" in listed
        ended = keys.issue(consumer_name="gamma", scopes=["read"], now=timezone.now()).key
        keys.revoke(prefix=ended.prefix, now=timezone.now())
        prefixes = {"usable": {"acme", "beta"}, "soon": {"beta"}, "ended": {"gamma"}}
        for state, names in prefixes.items():
            shown = admin_client.get(reverse("admin:apiauth_apikey_changelist"), {"state": state}).context["cl"]
            assert {key.consumer.name for key in shown.result_list} == names
        Consumer.objects.filter(name="beta").update(tier="custom", requests_per_minute=4321)
        assert "4321" in admin_client.get(reverse("admin:apiauth_consumer_changelist")).content.decode()
        own = page(admin_client, "consumer_change", issued.key.consumer).content.decode()
        assert issued.key.prefix in own
        assert issued.key.secret_hash not in own

    def test_a_consumer_links_to_its_keys(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        shown = admin_client.get(reverse("admin:apiauth_consumer_change", args=[issued.key.consumer_id]))
        to_key = reverse("admin:apiauth_apikey_change", args=[issued.key.pk])
        assert f'href="{to_key}">{issued.key.prefix}</a>' in shown.content.decode()


class TestConsumers:
    def save(self, client: Client, consumer: Consumer | None = None, **fields: object) -> HttpResponse:
        name = "consumer_change" if consumer else "consumer_add"
        url = reverse(f"admin:apiauth_{name}", args=[consumer.pk] if consumer else [])
        sent = {"name": "app", "tier": "standard", "is_active": "on", **NO_INLINES} | fields
        return client.post(url, {key: value for key, value in sent.items() if value is not None})

    def test_are_added_and_edited(self, admin_client: Client) -> None:
        self.save(admin_client)
        consumer = Consumer.objects.get()
        self.save(admin_client, consumer, tier="custom", requests_per_minute=250)
        consumer.refresh_from_db()
        assert (consumer.tier, consumer.requests_per_minute) == ("custom", 250)
        assert audited()[-1][:3] == ("admin", "consumer_changed", "app")

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"tier": "custom"}, "The tier custom needs its requests a minute"),
            ({"tier": "custom", "requests_per_minute": 0}, "The tier custom needs its requests a minute"),
            ({"tier": "premium", "requests_per_minute": 5}, "are for the tier custom only"),
        ],
    )
    def test_have_a_limit_only_with_the_tier_custom(
        self, admin_client: Client, fields: dict[str, object], why: str
    ) -> None:
        assert why in self.save(admin_client, **fields).content.decode()
        assert not Consumer.objects.exists()

    def test_inactive_ones_are_refused_at_once(self, admin_client: Client, issued: keys.IssuedKey) -> None:
        prefix, consumer = issued.key.prefix, issued.key.consumer
        assert authentication.find(prefix).consumer.is_active
        self.save(admin_client, consumer, name="acme", is_active=None)
        assert not authentication.find(prefix).consumer.is_active
        self.save(admin_client, consumer, name="acme")
        assert authentication.find(prefix).consumer.is_active
