"""Issuing, verifying, rotating and revoking API keys; tiers of their consumers."""

from datetime import datetime, timedelta

import pytest

from apiauth import consumers, keys
from apiauth.errors import NotFoundError, RefusedError
from apiauth.keys import KeyState
from apiauth.models import ApiKey, Consumer, Tier
from apiauth.signals import key_issued
from tests.factories import NOW
from victoryline.lib.redaction import clean

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-026")]


def issue(name: str = "acme", **fields: object) -> keys.IssuedKey:
    values: dict = {"consumer_name": name, "tier": Tier.STANDARD, "scopes": ["read"], "now": NOW} | fields
    return keys.issue(**values)


class TestIssue:
    def test_stores_a_hash_and_never_the_key(self) -> None:
        issued = issue()
        secret = issued.text.partition(".")[2]
        assert len(secret) == 43
        stored = ApiKey.objects.get().__dict__
        assert secret not in str(stored)
        assert len(stored["secret_hash"]) == 64

    def test_gives_one_consumer_several_keys_and_the_latest_tier(self) -> None:
        issue()
        issue(tier=Tier.PREMIUM)
        assert Consumer.objects.get().tier == "premium"
        assert ApiKey.objects.count() == 2

    def test_leaves_the_tier_as_it_is_unless_another_is_named(self) -> None:
        issue(tier=Tier.CUSTOM, requests_per_minute=250)
        issue(tier=None)
        assert (Consumer.objects.get().tier, Consumer.objects.get().requests_per_minute) == ("custom", 250)

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"scopes": ["read", "fly"]}, "no scope fly"),
            ({"scopes": []}, "at least one scope"),
            ({"tier": Tier.CUSTOM}, "custom needs its requests a minute"),
            ({"tier": Tier.CUSTOM, "requests_per_minute": 0}, "custom needs its requests a minute"),
            ({"tier": Tier.CUSTOM, "requests_per_minute": 1_000_001}, "custom needs its requests a minute"),
            ({"tier": Tier.PREMIUM, "requests_per_minute": 5}, "for the tier custom only"),
            ({"tier": None, "requests_per_minute": 5}, "for the tier custom only"),
            ({"expires_at": NOW}, "in the future"),
            ({"expires_at": NOW + timedelta(days=3651)}, "in the future"),
            ({"label": "x" * 81}, "label must be one line"),
            ({"label": "a\nb"}, "label must be one line"),
            ({"name": ""}, "name must have"),
            ({"name": " acme"}, "name must have"),
            ({"name": "a\x00"}, "name must have"),
            ({"name": "x" * 121}, "name must have"),
        ],
    )
    def test_refuses_with_a_reason_and_creates_nothing(self, fields: dict, why: str) -> None:
        with pytest.raises(RefusedError, match=why):
            issue(**fields)
        assert not ApiKey.objects.exists()
        assert not Consumer.objects.exists()

    def test_refuses_an_inactive_consumer(self) -> None:
        issue()
        Consumer.objects.update(is_active=False)
        with pytest.raises(RefusedError, match="acme is inactive"):
            issue()

    def test_announces_the_key_but_not_its_secret(self) -> None:
        received: list[dict[str, object]] = []

        def listen(**announced: object) -> None:
            received.append(announced)

        key_issued.connect(listen)
        try:
            issued = issue()
        finally:
            key_issued.disconnect(listen)
        assert [each["prefix"] for each in received] == [issued.key.prefix]
        assert issued.text not in str(received)
        assert issued.text not in str(issued)


@pytest.mark.parametrize("between", [".", "_"])
def test_keys_of_both_forms_are_accepted_and_redacted(between: str) -> None:
    issued = issue()
    text = issued.text.replace(".", between)
    assert keys.verify(text, NOW) == issued.key
    secret = issued.text.partition(".")[2]
    for line in (f"sent {text} to us", f'{{"key":"{text}"}}', f"/x?a={text}&b", f"header X-API-Key: {text}"):
        assert secret not in clean(line)
        assert secret[:20] not in clean(line.replace(secret, secret[:20]))


class TestVerify:
    def test_accepts_an_issued_key(self) -> None:
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


class TestRotate:
    def rotate(self, issued: keys.IssuedKey, hours: float = 24, now: datetime = NOW) -> keys.IssuedKey:
        return keys.rotate(prefix=issued.key.prefix, overlap=timedelta(hours=hours), now=now)

    def test_gives_a_new_key_beside_the_old_one_until_the_overlap_is_over(self) -> None:
        old = issue(scopes=["read", "ingest"], label="app")
        new = self.rotate(old)
        old.key.refresh_from_db()
        assert (new.key.consumer, new.key.scopes, new.key.label) == (old.key.consumer, ["ingest", "read"], "app")
        assert (old.key.replaced_by, new.key.expires_at) == (new.key, None)
        for hours, works in ((23, True), (24, False)):
            assert bool(keys.verify(old.text, NOW + timedelta(hours=hours))) is works
            assert keys.verify(new.text, NOW + timedelta(hours=hours)) is not None

    def test_never_extends_the_old_key_and_keeps_the_lifetime(self) -> None:
        old = issue(expires_at=NOW + timedelta(days=30))
        now = NOW + timedelta(days=29, hours=12)
        new = self.rotate(old, hours=24, now=now)
        old.key.refresh_from_db()
        assert old.key.expires_at == NOW + timedelta(days=30)
        assert new.key.expires_at == now + timedelta(days=30)

    def test_without_overlap_ends_the_old_one_at_once(self) -> None:
        old = issue()
        self.rotate(old, hours=0)
        assert keys.verify(old.text, NOW) is None

    def test_refuses_ended_and_rotated_keys(self) -> None:
        rotated, revoked, expired, shut_out = issue(), issue(), issue(expires_at=NOW + timedelta(days=1)), issue("b")
        new = self.rotate(rotated)
        keys.revoke(prefix=revoked.key.prefix, now=NOW)
        Consumer.objects.filter(name="b").update(is_active=False)
        before = list(ApiKey.objects.order_by("pk").values())
        for key, why in (
            (rotated, f"rotated already: rotate its successor {new.key.prefix}"),
            (revoked, "is revoked, which is final"),
            (shut_out, "b is inactive"),
        ):
            with pytest.raises(RefusedError, match=why):
                self.rotate(key)
        with pytest.raises(RefusedError, match="has expired"):
            self.rotate(expired, now=NOW + timedelta(days=1))
        for hours in (-1, 9000):
            with pytest.raises(RefusedError, match="overlap"):
                self.rotate(new, hours=hours)
        assert list(ApiKey.objects.order_by("pk").values()) == before

    def test_issues_no_key_if_another_operator_was_first(self, monkeypatch) -> None:
        old = issue()
        make = keys._make

        def slowly(*args: object, **fields: object) -> keys.IssuedKey:
            keys.revoke(prefix=old.key.prefix, now=NOW)
            return make(*args, **fields)

        monkeypatch.setattr(keys, "_make", slowly)
        with pytest.raises(RefusedError, match="at the same time by another operator"):
            self.rotate(old)
        assert ApiKey.objects.count() == 1

    def test_an_unknown_key_suggests_a_similar_one(self) -> None:
        prefix = issue().key.prefix
        near = prefix[:-1] + ("0" if prefix[-1] != "0" else "1")
        with pytest.raises(NotFoundError, match=f"Did you mean {prefix}"):
            keys.rotate(prefix=near, overlap=timedelta(0), now=NOW)


class TestRevokeAll:
    def test_ends_every_key_of_the_consumer_and_no_other(self) -> None:
        mine, ended, others = [issue(), issue()], issue(), issue("b")
        keys.revoke(prefix=ended.key.prefix, now=NOW)
        done = keys.revoke_all(mine[0].key.consumer, now=NOW, reason="left")
        assert set(done) == {each.key.prefix for each in mine}
        assert keys.verify(others.text, NOW) is not None
        assert not any(keys.verify(each.text, NOW) for each in mine)


class TestState:
    @pytest.mark.parametrize(
        ("fields", "state"),
        [
            ({}, KeyState.IN_USE),
            ({"expires_at": NOW + timedelta(days=8)}, KeyState.IN_USE),
            ({"expires_at": NOW + timedelta(days=7)}, KeyState.EXPIRES_SOON),
            ({"expires_at": NOW}, KeyState.EXPIRED),
            ({"expires_at": NOW, "revoked_at": NOW}, KeyState.REVOKED),
        ],
    )
    def test_returns_the_state_of_a_key(self, fields: dict, state: KeyState) -> None:
        key = issue().key
        for name, value in fields.items():
            setattr(key, name, value)
        assert keys.state_of(key, NOW) is state

    def test_recognises_rotated_keys_and_inactive_consumers(self) -> None:
        old = issue()
        keys.rotate(prefix=old.key.prefix, overlap=timedelta(hours=1), now=NOW)
        old.key.refresh_from_db()
        assert keys.state_of(old.key, NOW) is KeyState.ROTATED
        old.key.consumer.is_active = False
        assert keys.state_of(old.key, NOW) is KeyState.INACTIVE


class TestLastUse:
    def test_is_written_once_a_minute(self) -> None:
        key = issue().key
        for seconds in (0, 59, 61):
            keys.touch(key, NOW + timedelta(seconds=seconds))
            key.refresh_from_db()
            assert key.last_used_at == NOW + timedelta(seconds=seconds if seconds != 59 else 0)


class TestConsumers:
    def test_changing_the_tier_sets_or_clears_the_custom_limit(self) -> None:
        consumer = issue(tier=Tier.CUSTOM, requests_per_minute=250).key.consumer
        for wanted, tier, number in (
            (consumers.Change(requests_per_minute=300), "custom", 300),
            (consumers.Change(is_active=True), "custom", 300),
            (consumers.Change(tier=Tier.PREMIUM), "premium", None),
        ):
            consumers.change(consumer, wanted, now=NOW, actor="anna")
            consumer.refresh_from_db()
            assert (consumer.tier, consumer.requests_per_minute) == (tier, number)

    def test_refusals_change_nothing(self) -> None:
        consumer = issue().key.consumer
        with pytest.raises(RefusedError):
            consumers.change(consumer, consumers.Change(tier=Tier.CUSTOM, is_active=False), now=NOW, actor="anna")
        consumer.refresh_from_db()
        assert (consumer.tier, consumer.is_active) == ("standard", True)


class TestDemoKey:
    def test_replaces_the_earlier_one(self) -> None:
        first, second = keys.issue_demo_key(), keys.issue_demo_key()
        later = NOW + timedelta(days=3650)
        assert keys.verify(first, later) is None
        demo = keys.verify(second, later)
        assert demo is not None
        assert demo.scopes == sorted(keys.SCOPES)
