"""The commands for keys and consumers: output, refusals and their reasons."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, ProgrammingError
from django.utils import timezone

from apiauth import keys
from apiauth.models import ApiKey, Consumer
from monitoring.models import AuditEntry

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("FR-026")]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def issue(name: str = "acme", **fields: object) -> keys.IssuedKey:
    return keys.issue(**({"consumer_name": name, "scopes": ["read"], "now": timezone.now()} | fields))


class TestIssue:
    def test_prints_a_working_key_once(self) -> None:
        output = run(
            "api_keys", "issue", "acme", "--tier", "premium", "--scope", "read", "--scope", "operate", "--label", "app"
        )
        key = keys.verify(output.split()[0], timezone.now())
        assert key is not None
        assert (key.consumer.tier, key.scopes, key.label) == ("premium", ["operate", "read"], "app")
        assert "not shown again" in output
        assert "/token/generate-token" in output

    def test_keeps_the_tier_of_a_consumer_unless_another_is_named(self) -> None:
        run("api_keys", "issue", "acme", "--tier", "custom", "--requests-per-minute", "250")
        run("api_keys", "issue", "acme")
        assert Consumer.objects.get().requests_per_minute == 250

    @pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 12345"), OSError("No username set")])
    def test_works_for_a_user_without_a_name(self, monkeypatch, error: Exception) -> None:
        """Containers run under any number."""
        monkeypatch.setattr("getpass.getuser", Mock(side_effect=error))
        run("api_keys", "issue", "acme")
        assert AuditEntry.objects.get(action_type="key_issued").actor == "operator"

    def test_mentions_the_consumers_other_keys(self) -> None:
        assert "other key" not in run("api_keys", "issue", "acme")
        assert "acme has 1 other key," in run("api_keys", "issue", "acme")

    def test_names_the_public_address(self, settings) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"public_url": "https://scores.example/"})
        assert "curl -X POST https://scores.example/token/generate-token" in run("api_keys", "issue", "acme")

    def test_takes_a_lifetime(self) -> None:
        text = run("api_keys", "issue", "acme", "--expires-in-days", "2").splitlines()[0]
        assert keys.verify(text, timezone.now()) is not None
        assert keys.verify(text, timezone.now() + timedelta(days=3)) is None

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["acme", "--expires-in-days", "0"], "from 1 to 3650"),
            (["acme", "--tier", "custom"], "custom needs its requests a minute"),
            (["acme", "--requests-per-minute", "5"], "for the tier custom only"),
            (["acme", "--label", "x" * 81], "label"),
            ([""], "name must have"),
            (["x" * 121], "name must have"),
        ],
    )
    def test_refuses_with_a_reason(self, arguments: list[str], why: str) -> None:
        with pytest.raises(CommandError, match=why):
            run("api_keys", "issue", *arguments)
        assert not ApiKey.objects.exists()


class TestList:
    def test_shows_consumer_and_state_but_no_secret(self) -> None:
        now = timezone.now()
        soon = issue(expires_at=now + timedelta(days=3, hours=1), label="app")
        ended, rotated = issue("beta"), issue("gamma", tier="custom", requests_per_minute=250)
        keys.revoke(prefix=ended.key.prefix, now=now)
        new = keys.rotate(prefix=rotated.key.prefix, overlap=timedelta(hours=5), now=now)
        output = run("api_keys", "list")
        assert "expires in 3 days" in output
        assert f"rotated to {new.key.prefix}" in output
        assert "custom 250/min" in output
        assert ended.key.prefix not in output
        everything = run("api_keys", "list", "--all")
        assert "revoked" in everything
        for each in (soon, ended, rotated, new):
            assert each.key.prefix in everything
            assert each.text.partition(".")[2] not in everything
            assert each.key.secret_hash not in everything

    def test_shows_the_keys_of_one_consumer(self) -> None:
        other, own = issue("beta").key.prefix, issue().key.prefix
        output = run("api_keys", "list", "--consumer", "acme")
        assert own in output
        assert other not in output

    def test_reports_that_there_is_none(self) -> None:
        assert "No key is in use" in run("api_keys", "list")


class TestRotate:
    def test_prints_the_new_key_and_the_end_of_the_old_one(self, settings) -> None:
        old = issue()
        output = run("api_keys", "rotate", f"vl_{old.key.prefix}")
        new = keys.verify(output.split()[0], timezone.now())
        old.key.refresh_from_db()
        assert new == old.key.replaced_by
        hours = timedelta(hours=keys.OVERLAP_HOURS)
        assert timedelta(0) <= old.key.created_at + hours + timedelta(seconds=60) - old.key.expires_at < hours
        assert f"The old key {old.key.prefix} and its tokens work until" in output

    def test_takes_an_overlap(self) -> None:
        old = issue()
        run("api_keys", "rotate", old.text, "--overlap-hours", "0.5")
        assert keys.verify(old.text, timezone.now() + timedelta(minutes=29)) is not None
        assert keys.verify(old.text, timezone.now() + timedelta(minutes=31)) is None

    def test_refuses_with_a_reason_and_never_repeats_a_secret(self) -> None:
        old = issue()
        run("api_keys", "rotate", old.key.prefix)
        with pytest.raises(CommandError, match="rotated already"):
            run("api_keys", "rotate", old.key.prefix)
        with pytest.raises(CommandError) as refused:
            run("api_keys", "rotate", "vl_000000000000.verysecret")
        assert "verysecret" not in str(refused.value)

    @pytest.mark.parametrize("hours", ["nan", "inf", "1e300", "-1", "9000"])
    def test_refuses_an_overlap_out_of_range(self, hours: str) -> None:
        old = issue()
        with pytest.raises(CommandError, match="overlap"):
            run("api_keys", "rotate", old.key.prefix, f"--overlap-hours={hours}")
        assert ApiKey.objects.count() == 1

    def test_explains_the_prefix_for_an_invalid_argument(self) -> None:
        with pytest.raises(CommandError, match=r"not the prefix of a key.*between `vl_` and the dot") as refused:
            run("api_keys", "rotate", "verysecret")
        assert "verysecret" not in str(refused.value)


class TestRevoke:
    def test_ends_a_key_once_with_a_reason(self) -> None:
        issued = issue()
        run("api_keys", "revoke", issued.key.prefix, "--reason", "it leaked", "--by", "anna")
        assert keys.verify(issued.text, timezone.now()) is None
        with pytest.raises(CommandError, match="revoked already"):
            run("api_keys", "revoke", issued.key.prefix)
        entry = AuditEntry.objects.get(action_type="key_revoked")
        assert (entry.actor, entry.target, entry.trigger_condition) == ("anna", issued.key.prefix, "it leaked")

    def test_ends_all_keys_of_a_consumer(self) -> None:
        mine, others = [issue(), issue()], issue("beta")
        output = run("api_keys", "revoke", "--consumer", "acme")
        assert all(each.key.prefix in output for each in mine)
        assert [bool(keys.verify(each.text, timezone.now())) for each in (*mine, others)] == [False, False, True]
        with pytest.raises(CommandError, match="no key that is not revoked already"):
            run("api_keys", "revoke", "--consumer", "acme")

    def test_suggests_similar_names_for_unknown_ones(self) -> None:
        issued = issue("acme corporation")
        with pytest.raises(CommandError, match="Did you mean acme corporation"):
            run("api_keys", "revoke", "--consumer", "acme corporatoin")
        with pytest.raises(CommandError, match=f"Did you mean {issued.key.prefix}"):
            run("api_keys", "revoke", issued.key.prefix[:-1])
        with pytest.raises(CommandError):
            run("api_keys", "revoke")

    def test_explains_the_effect_while_the_database_is_away(self, monkeypatch) -> None:
        def away(text: str) -> ApiKey:
            raise OperationalError("connection refused\nat length")

        monkeypatch.setattr(keys, "find", away)
        with pytest.raises(CommandError, match=r"can't be reached .*\(connection refused\)"):
            run("api_keys", "revoke", "0123456789ab")

    @pytest.mark.parametrize(
        "error", [OperationalError("no such table: apiauth_apikey"), ProgrammingError('relation "x" does not exist')]
    )
    def test_points_to_migrate_when_there_are_no_tables(self, monkeypatch, error: Exception) -> None:
        monkeypatch.setattr(keys, "issue", Mock(side_effect=error))
        with pytest.raises(CommandError, match=r"Nothing was changed.*manage\.py migrate"):
            run("api_keys", "issue", "acme")


class TestSetConsumer:
    def test_changes_tier_limit_and_activity(self) -> None:
        issued = issue()
        assert "250 requests a minute" in run(
            "api_keys", "consumer", "acme", "--tier", "custom", "--requests-per-minute", "250", "--by", "anna"
        )
        assert "is shut out" in run("api_keys", "consumer", "acme", "--inactive")
        assert keys.verify(issued.text, timezone.now()) is None
        assert "may use the API" in run("api_keys", "consumer", "acme", "--active")
        assert keys.verify(issued.text, timezone.now()) is not None
        entries = AuditEntry.objects.filter(action_type="consumer_changed").order_by("pk")
        assert [entry.metadata for entry in entries] == [
            {"tier": "custom", "requests_per_minute": 250},
            {"is_active": False},
            {"is_active": True},
        ]
        assert entries[0].actor == "anna"

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["acme"], "Nothing to change"),
            (["acme", "--tier", "custom"], "custom needs its requests a minute"),
            (["acme", "--requests-per-minute", "5"], "for the tier custom only"),
            (["acne", "--inactive"], "Did you mean acme"),
        ],
    )
    def test_refuses_with_a_reason(self, arguments: list[str], why: str) -> None:
        issue()
        with pytest.raises(CommandError, match=why):
            run("api_keys", "consumer", *arguments)
        consumer = Consumer.objects.get()
        assert (consumer.tier, consumer.is_active, consumer.contact) == ("standard", True, "")
