"""Each channel with a real server: the received message, and the handling of errors."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from monitoring.alerts.channels import DeliveryError, DeliveryRejected, Sentry, Webhook, post
from monitoring.alerts.message_text import document
from monitoring.models import Alert
from tests.factories import NOW
from tests.monitoring.alerts.servers import HttpReceiver


def message(*alerts: Alert) -> dict[str, Any]:
    return document(alerts or (alert(),), "webhook_sent", base_url="https://vl.test", now=NOW)


def alert(key: str = "stale:7", summary: str = "India - Australia has had no update for 5 min", **more: Any) -> Alert:
    values = {"pk": 3, "severity": "critical", "detail": {"match_id": 7}, "opened_at": NOW, "last_seen_at": NOW}
    return Alert(key=key, summary=summary, **values | more)


class TestWebhook:
    def test_posts_the_document(self, hook: HttpReceiver) -> None:
        sent = message()
        assert Webhook(hook.url).send(sent) == "answered 200"
        (got,) = hook.got
        assert got.path == "/hook/s3cret?x=1"
        assert got.headers["content-type"] == "application/json"
        assert got.headers["idempotency-key"] == sent["id"]
        assert "x-victoryline-signature" not in got.headers
        body = json.loads(got.body)
        assert (body["version"], body["event"], body["severity"]) == (2, "raised", "critical")
        assert body["text"].startswith("CRITICAL: India - Australia has had no update for 5 min")
        (entry,) = body["alerts"]
        assert (entry["key"], entry["detail"], entry["count"]) == ("stale:7", {"match_id": 7}, 1)
        assert entry["url"] == "https://vl.test/admin/monitoring/alert/3/change/"

    def test_signature_is_verified_by_the_documented_snippet(self, hook: HttpReceiver) -> None:
        Webhook(hook.url, "k3y").send(message())
        (got,) = hook.got
        is_ours = snippet()["is_ours"]
        assert is_ours(b"k3y", got.headers, got.body)
        assert not is_ours(b"k3y", got.headers, got.body + b" ")
        assert not is_ours(b"other", got.headers, got.body)
        old = str(int(time.time()) - 301)
        forged = hmac.new(b"k3y", old.encode() + b"." + got.body, hashlib.sha256).hexdigest()
        late = {"x-victoryline-timestamp": old, "x-victoryline-signature": f"v1={forged}"}
        assert not is_ours(b"k3y", late, got.body)

    @pytest.mark.parametrize(
        ("status", "headers", "error", "seconds"),
        [
            pytest.param(404, {}, DeliveryRejected, None, id="not there"),
            pytest.param(401, {}, DeliveryRejected, None, id="not allowed"),
            pytest.param(302, {"Location": "http://127.0.0.1:9/"}, DeliveryRejected, None, id="sent elsewhere"),
            pytest.param(503, {}, DeliveryError, None, id="out of order"),
            pytest.param(408, {}, DeliveryError, None, id="too slow"),
            pytest.param(429, {"Retry-After": "30"}, DeliveryError, 30, id="too many"),
            pytest.param(503, {"Retry-After": "999999"}, DeliveryError, 900, id="a quarter of an hour at most"),
        ],
    )
    def test_classifies_the_answer(
        self,
        hook: HttpReceiver,
        status: int,
        headers: dict[str, str],
        error: type[DeliveryError],
        seconds: float | None,
    ) -> None:
        hook.status, hook.headers = status, headers
        with pytest.raises(error) as raised:
            Webhook(hook.url).send(message())
        assert str(status) in str(raised.value)
        assert "s3cret" not in str(raised.value)
        assert (type(raised.value), raised.value.retry_after) == (error, seconds)
        assert len(hook.got) == 1, "no redirect is followed"

    def test_a_hanging_server_times_out(self, hook: HttpReceiver) -> None:
        hook.hangs.set()
        with pytest.raises(DeliveryError, match=r"did not answer within 0\.2 s"):
            post(hook.url, b"{}", {}, timeout=0.2)

    def test_unreachable_server(self) -> None:
        with pytest.raises(DeliveryError, match=r"127\.0\.0\.1 cannot be reached"):
            Webhook("http://127.0.0.1:1/s3cret").send(message())

    def test_its_secrets_are_not_shown(self) -> None:
        assert "s3cret" not in repr(Webhook("http://x/s3cret", "s3cret"))


def snippet() -> dict[str, Any]:
    """Returns the Python code in docs/operations.md that verifies a signature."""
    text = (Path(settings.BASE_DIR) / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?is_ours.*?)```", text, re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(found.group(1), names)  # from our own documentation
    return names


class TestMessageText:
    def test_has_one_line_for_each_alert(self) -> None:
        body = message(
            alert(severity="warning"), alert("stale:8", "It is dead"), alert("stale:9", "It is not", closed_at=NOW)
        )
        assert body["subject"] == "[VictoryLine] CRITICAL: It is dead (and 2 more)"
        assert body["text"].splitlines()[:3] == [
            "CRITICAL: It is dead",
            "WARNING: India - Australia has had no update for 5 min",
            "OVER: It is not",
        ]

    def test_limits_the_size_of_a_document(self) -> None:
        body = message(*[alert(f"x{n}", pk=n) for n in range(400)])
        assert (len(body["alerts"]), body["more"]) == (50, 350)
        assert body["subject"].endswith("(and 399 more)")
        assert len(body["subject"]) <= 300

    def test_escapes_text_from_outside(self) -> None:
        evil = alert(summary="<!channel> @all\r\nBcc: you@example.com https://me:pass@host/ is dead")
        body = message(evil)
        assert "<!channel>" not in body["text"]
        assert "@all" not in body["text"]
        assert "\n" not in body["subject"]
        assert "pass" not in json.dumps(body)

    def test_details_are_shown_without_secrets(self) -> None:
        body = message(alert(detail={"api_key": "s3cret", "url": "https://a:b@host/"}))
        assert body["alerts"][0]["detail"] == {"api_key": "***", "url": "https://***:***@host/"}

    def test_an_end(self) -> None:
        body = message(alert(closed_at=NOW, webhook_sent="critical"))
        assert body["event"] == "over"
        assert body["subject"].startswith("[VictoryLine] OVER: India - Australia")


@pytest.mark.requirement("FS-17")
class TestSentry:
    def events(self, hook: HttpReceiver) -> list[dict[str, Any]]:
        bodies = [gzip.decompress(got.body) if got.body[:2] == b"\x1f\x8b" else got.body for got in hook.got]
        return [json.loads(body.splitlines()[2]) for body in bodies]

    def send(self, hook: HttpReceiver, *alerts: Alert) -> str:
        return Sentry(f"http://publickey@127.0.0.1:{hook.port}/42").send(message(*alerts))

    def test_one_event_an_alert_with_its_key_as_fingerprint(self, hook: HttpReceiver) -> None:
        assert self.send(hook, alert("layout:7"), alert("breaker:crex", pk=4)) == "accepted 2 events"
        assert {got.path for got in hook.got} == {"/api/42/envelope/"}
        assert "sentry_key=publickey" in hook.got[0].headers["x-sentry-auth"]
        first, second = self.events(hook)
        assert (first["fingerprint"], second["fingerprint"]) == (["layout:7"], ["breaker:crex"])
        assert first["level"] == "error"
        assert first["logentry"]["formatted"] == "India - Australia has had no update for 5 min"
        assert not {"user", "request", "server_name", "modules"} & first.keys()

    @pytest.mark.parametrize(
        ("key", "severity", "event", "level"),
        [
            ("changed:crex", "critical", "schema_break", "error"),
            ("layout:7", "critical", "schema_break", "error"),
            ("challenge:crex", "critical", "anti_bot_challenge", "error"),
            ("breaker:crex_source", "critical", "circuit_opened", "warning"),
            ("sparse:crex", "warning", "data_integrity_degraded", "warning"),
            ("drift:crex:play:venue", "warning", "data_integrity_degraded", "warning"),
        ],
    )
    def test_names_its_events(self, hook: HttpReceiver, key: str, severity: str, event: str, level: str) -> None:
        self.send(hook, alert(key, severity=severity))
        (got,) = self.events(hook)
        assert (got["tags"]["event"], got["level"]) == (event, level)

    def test_ends_are_not_sent(self, hook: HttpReceiver) -> None:
        assert self.send(hook, alert(closed_at=NOW + timedelta(minutes=1))) == "accepted 0 events"
        assert not hook.got

    def test_invalid_dsn(self) -> None:
        with pytest.raises(DeliveryRejected, match="SENTRY_DSN"):
            Sentry("nonsense").send(message())
