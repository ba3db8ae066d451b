"""Importance and watch of a match in the admin."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.models import Importance, Match, MatchRef
from scraping.policies.ladder import Rung
from tests.admin.test_actions import act
from tests.monitoring.rows import make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def page_of(client: Client, match: Match) -> str:
    return client.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()


@pytest.mark.requirement("FR-025", "BX-11")
class TestImportance:
    def test_is_set_for_several_matches_audited_and_reset_to_the_rules(self, admin_client: Client) -> None:
        matches = [make_watched()[0] for _ in range(2)]
        page = act(admin_client, "scraping_match", "set_importance_selected", *matches, importance="2")
        assert "2 applied, 0 refused" in page
        assert set(Match.objects.values_list("importance", "is_importance_fixed")) == {(Importance.LOW, True)}
        act(admin_client, "scraping_match", "set_importance_selected", *matches, importance="")
        assert set(Match.objects.values_list("importance", "is_importance_fixed")) == {(Importance.NORMAL, False)}
        done = AuditEntry.objects.exclude(action_type__startswith="bulk")
        assert list(done.values_list("actor", "action_type")) == [("admin", "importance")] * 4

    def test_needs_confirmation_on_the_page_of_the_match(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        url = reverse("admin:scraping_match_set_importance_one", args=[match.pk])
        assert "Set importance" in admin_client.get(url, headers={"HX-Request": "true"}).content.decode()
        for said, expected in (("0", (Importance.HIGH, True)), ("", (Importance.NORMAL, False))):
            admin_client.post(url, {"_form_submitted": "on", "importance": said})
            match.refresh_from_db()
            assert (match.importance, match.is_importance_fixed) == expected
        admin_client.post(url, {"_form_submitted": "on", "importance": "7"})
        match.refresh_from_db()
        assert match.importance == Importance.NORMAL

    def test_needs_the_permission_to_change_matches(self, client: Client) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_match"))
        client.force_login(viewer)
        match, _, _ = make_watched()
        act(client, "scraping_match", "importance_high_selected", match)
        match.refresh_from_db()
        assert match.importance == Importance.NORMAL

    def test_filters_lists(self, admin_client: Client) -> None:
        high, other = (make_watched()[0] for _ in range(2))
        Match.objects.filter(pk=high.pk).update(importance=Importance.HIGH, title="Kenya v Nepal")
        Match.objects.filter(pk=other.pk).update(title="Oman v Uganda")
        page = admin_client.get(reverse("admin:scraping_match_changelist"), {"importance__exact": 0}).content.decode()
        assert ("Kenya v Nepal" in page, "Oman v Uganda" in page) == (True, False)


class TestWatch:
    def test_shows_interval_and_reason(self, admin_client: Client) -> None:
        match, ref, _ = make_watched()
        MatchRef.objects.filter(pk=ref.pk).update(polling_interval_seconds=5.0, pace_reason="slowed by <errors>")
        page = page_of(admin_client, match)
        assert f"{ref.source.name}: every 5 s (slowed by &lt;errors&gt;)" in page
        assert "<errors>" not in page

    def test_shows_recovery_steps_of_a_silent_match(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        tried_at = timezone.now() - timedelta(minutes=5)
        Match.objects.filter(pk=match.pk).update(silence_rung=Rung.SESSION, silence_rung_at=tried_at)
        said = "silent: fresh session tried 5 min ago"
        assert said in page_of(admin_client, match)
        assert said in admin_client.get(reverse("admin:scraping_match_changelist")).content.decode()
        Match.objects.filter(pk=match.pk).update(silence_rung=Rung.FROZEN, frozen_at=tried_at)
        assert "silent: frozen 5 min ago" in page_of(admin_client, match)
