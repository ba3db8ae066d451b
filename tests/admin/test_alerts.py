"""Operator actions on alerts in the admin; each is written to the audit."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from io import StringIO

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from prometheus_client import generate_latest

from monitoring.alerts.alert_keys import kind_of
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.health.evaluation import Evaluation
from monitoring.metrics.exposition import SystemFigures
from monitoring.models import Alert, AuditEntry, Severity
from monitoring.views import published_status
from scraping.models import Match
from tests.admin.test_actions import act
from tests.monitoring.rows import make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def make_alert(key: str = "layout:7", severity: Severity = Severity.CRITICAL, minutes: float = 5) -> Alert:
    raise_alert(key, severity, f"trouble with {key}", {}, timezone.now() - timedelta(minutes=minutes))
    return Alert.objects.get(key=key)


class TestAlerts:
    def test_lists_open_alerts_first_and_critical_before_warnings(self, admin_client: Client) -> None:
        make_alert("over", minutes=1)
        close_alert("over", timezone.now())
        make_alert("later", Severity.WARNING, minutes=2)
        make_alert("first", minutes=60)
        page = admin_client.get(reverse("admin:monitoring_alert_changelist")).content.decode()
        places = [page.index(f"trouble with {key}") for key in ("first", "later", "over")]
        assert places == sorted(places)
        assert "open for 1\xa0hour" in page

    @pytest.mark.requirement("US3.2")
    def test_an_alert_that_is_over_is_in_no_list(self, admin_client: Client) -> None:
        """The match was read since, and the watchdog has not closed its alert yet."""
        match, _, _ = make_watched(age=1)
        detail = {"match_id": match.pk, "silent_seconds": 310}
        raise_alert(f"stale:{match.pk}", Severity.CRITICAL, "it is silent", detail, timezone.now())
        alert = Alert.objects.get()

        def lists() -> list[str]:
            out = StringIO()
            call_command("alerts", stdout=out)
            address = reverse("admin:monitoring_alert_changelist")
            pages = [admin_client.get(url).content.decode() for url in (address, f"{address}?open=yes", "/status")]
            return [out.getvalue(), *pages]

        assert not [text for text in lists() if "it is silent" in text or f"{match.key} has had" in text]
        figures = generate_latest(SystemFigures(Evaluation(timezone.now()))).decode()
        assert 'scraper_alerts_open{severity="critical"} 0.0' in figures
        assert admin_client.get(reverse("admin:monitoring_alert_change", args=[alert.pk])).status_code == 200
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=320))
        published_status.forget()
        assert len([text for text in lists() if "it is silent" in text or f"{match.key} has had" in text]) == 4

    def test_acknowledging_shows_the_operator(self, admin_client: Client) -> None:
        alert, over = make_alert(), make_alert("over")
        close_alert("over", timezone.now())
        page = act(admin_client, "monitoring_alert", "acknowledge_selected", alert, over)
        alert.refresh_from_db()
        assert (alert.acknowledged_by, alert.acknowledged_at is not None) == ("admin", True)
        assert "Acknowledged 1 alert." in page
        assert "1 refused: over is closed." in page
        assert (
            AuditEntry.objects.filter(actor="admin", action_type="alert_acknowledged", target="layout:7").count() == 1
        )

    def test_mute_and_unmute(self, admin_client: Client) -> None:
        alert = make_alert()
        page = act(admin_client, "monitoring_alert", "mute_selected", alert, minutes=60, reason="the night")
        alert.refresh_from_db()
        assert alert.muted_until is not None
        assert timedelta(minutes=54) < alert.muted_until - timezone.now() < timedelta(minutes=66)
        assert "1 applied, 0 refused" in page
        act(admin_client, "monitoring_alert", "unmute_selected", alert)
        alert.refresh_from_db()
        assert alert.muted_until is None
        done = AuditEntry.objects.exclude(action_type__startswith="bulk").values_list("action_type", flat=True)
        assert set(done) == {"alert_muted", "alert_unmuted"}

    def test_needs_confirmation_on_the_page_of_the_alert(self, admin_client: Client) -> None:
        alert = make_alert()
        for action in ("acknowledge_one", "mute_one"):
            url = reverse(f"admin:monitoring_alert_{action}", args=[alert.pk])
            assert admin_client.get(url, headers={"HX-Request": "true"}).status_code == 200
            alert.refresh_from_db()
            assert action == "mute_one" or alert.acknowledged_at is None
            form = {"_form_submitted": "on", "minutes": 720, "reason": "until the morning"}
            assert admin_client.post(url, form).status_code == 302
        alert.refresh_from_db()
        assert alert.acknowledged_by == "admin"
        assert alert.muted_until is not None
        assert timedelta(hours=11) < alert.muted_until - timezone.now() < timedelta(hours=13)
        assert AuditEntry.objects.get(action_type="alert_muted").trigger_condition.endswith(": until the morning")
        admin_client.post(reverse("admin:monitoring_alert_unmute_one", args=[alert.pk]), {"_form_submitted": "on"})
        alert.refresh_from_db()
        assert alert.muted_until is None

    def test_needs_the_permission(self, client: Client) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_alert"))
        client.force_login(viewer)
        alert = make_alert()
        act(client, "monitoring_alert", "acknowledge_selected", alert)
        alert.refresh_from_db()
        assert alert.acknowledged_at is None

    def test_page_shows_advice_and_notified_channels(self, admin_client: Client) -> None:
        alert = make_alert()
        Alert.objects.update(webhook_sent="critical", notified_at=timezone.now() - timedelta(minutes=3))
        page = admin_client.get(reverse("admin:monitoring_alert_change", args=[alert.pk])).content.decode()
        assert kind_of(alert.key).action in unescape(page)
        assert "see also" in page.lower()
        assert "Webhook, 3" in page

    def test_page_links_to_its_match(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        raise_alert(f"stale:{match.pk}", Severity.CRITICAL, "silent", {"match_id": match.pk}, timezone.now())
        alert = Alert.objects.get()
        page = admin_client.get(reverse("admin:monitoring_alert_change", args=[alert.pk])).content.decode()
        assert reverse("admin:scraping_match_change", args=[match.pk]) in page
        assert re.search(r"open for \d+ s", page)
