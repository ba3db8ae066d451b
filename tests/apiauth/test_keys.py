"""Issuing, checking and revoking API keys."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from apiauth import keys
from apiauth.models import ApiKey, Consumer, Tier
from apiauth.signals import key_issued
from tests.factories import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-026")]


def issue(name: str = "acme", **fields: object) -> keys.IssuedKey:
    values: dict = {"consumer_name": name, "tier": Tier.STANDARD, "scopes": ["read"], "now": NOW} | fields
    return keys.issue(**values)


class TestIssue:
    def test_stores_a_hash_and_never_the_key(self) -> None:
        issued = issue()
        secret = issued.text.split("_", 2)[2]
        stored = ApiKey.objects.get().__dict__
        assert secret not in str(stored)
        assert len(stored["secret_hash"]) == 64

    def test_gives_one_consumer_several_keys_and_the_latest_tier(self) -> None:
        issue()
        issue(tier=Tier.PREMIUM)
        assert Consumer.objects.get().tier == "premium"
        assert ApiKey.objects.count() == 2

    def test_refuses_a_scope_that_does_not_exist(self) -> None:
        with pytest.raises(keys.UnknownScopeError, match="fly"):
            issue(scopes=["read", "fly"])


class TestVerify:
    def test_knows_a_key_it_issued(self) -> None:
        issued = issue()
        assert keys.verify(issued.text, NOW) == issued.key

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda text: text[:-1] + ("a" if text[-1] != "a" else "b"),
            lambda text: text.replace("vl_", "vl_f", 1),
            lambda text: "",
            lambda text: "vl__",
            lambda text: text + "\x00",
            lambda text: text + "\n",
            lambda text: "vl_000000000000_" + "A" * 43,
            lambda text: "\ud800",
            lambda text: "x" * 100_000,
        ],
    )
    def test_refuses_anything_else(self, spoil) -> None:
        assert keys.verify(spoil(issue().text), NOW) is None

    def test_refuses_a_revoked_key(self) -> None:
        issued = issue()
        assert keys.revoke(prefix=issued.key.prefix, now=NOW)
        assert keys.verify(issued.text, NOW) is None
        assert not keys.revoke(prefix=issued.key.prefix, now=NOW)

    def test_refuses_a_key_from_the_moment_it_expires(self) -> None:
        issued = issue(expires_at=NOW + timedelta(days=1))
        assert keys.verify(issued.text, NOW + timedelta(hours=23)) is not None
        assert keys.verify(issued.text, NOW + timedelta(days=1)) is None

    def test_refuses_the_key_of_an_inactive_consumer(self) -> None:
        issued = issue()
        Consumer.objects.update(is_active=False)
        assert keys.verify(issued.text, NOW) is None


class TestDemoKey:
    def test_replaces_the_earlier_one(self) -> None:
        first, second = keys.issue_demo_key(), keys.issue_demo_key()
        later = NOW + timedelta(days=3650)
        assert keys.verify(first, later) is None
        demo = keys.verify(second, later)
        assert demo is not None
        assert demo.scopes == ["operate", "read"]


class TestCommands:
    def test_issue_prints_a_key_that_works_and_says_it_is_not_shown_again(self) -> None:
        out = StringIO()
        call_command("issue_api_key", "acme", "--tier", "premium", "--scope", "read", "--scope", "operate", stdout=out)
        key = keys.verify(out.getvalue().split()[0], NOW)
        assert key is not None
        assert (key.consumer.tier, key.scopes) == ("premium", ["operate", "read"])
        assert "not shown again" in out.getvalue()

    def test_issue_tells_of_the_consumers_other_keys(self) -> None:
        first, second = StringIO(), StringIO()
        call_command("issue_api_key", "acme", stdout=first)
        call_command("issue_api_key", "acme", stdout=second)
        assert "other key" not in first.getvalue()
        assert "acme has 1 other key," in second.getvalue()

    def test_issue_announces_the_key_but_not_its_secret(self) -> None:
        heard: list[dict[str, object]] = []

        def listen(**announced: object) -> None:
            heard.append(announced)

        key_issued.connect(listen)
        try:
            issued = issue()
        finally:
            key_issued.disconnect(listen)
        assert [each["prefix"] for each in heard] == [issued.key.prefix]
        assert issued.text not in str(heard)

    def test_issue_prints_json(self) -> None:
        out = StringIO()
        call_command("issue_api_key", "acme", "--json", "--expires-days", "2", stdout=out)
        printed = json.loads(out.getvalue())
        assert printed["scopes"] == ["read"]
        assert printed["expires_at"]

    @pytest.mark.parametrize("arguments", [["acme", "--expires-days", "0"], [""], ["x" * 121]])
    def test_issue_refuses_nonsense(self, arguments: list[str]) -> None:
        with pytest.raises(CommandError):
            call_command("issue_api_key", *arguments)

    def test_revoke_ends_a_key_once(self) -> None:
        issued = issue()
        call_command("revoke_api_key", issued.key.prefix, stdout=StringIO())
        assert keys.verify(issued.text, NOW) is None
        with pytest.raises(CommandError, match=issued.key.prefix):
            call_command("revoke_api_key", issued.key.prefix)
