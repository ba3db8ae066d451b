"""The console shows recovery actions, their outcomes, and the grade over the day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring import audit
from monitoring.admin.history import (
    GradePeriod,
    action_label,
    change_text,
    grade_chart,
    grade_periods,
    recoveries_of_last_day,
    summary,
)
from monitoring.models import AuditEntry, Grade, GradeChange
from tests.admin.rows import EVIL
from tests.factories import NOW
from tests.monitoring.rows import make_watched

H, D, F, R = Grade.HEALTHY, Grade.DEGRADED, Grade.FAILING, Grade.RECOVERING


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


class TestGradePeriods:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param([], [(H, 0, 60)], id="no change ever"),
            pytest.param([(10, H, F), (30, F, H)], [(H, 0, 10), (F, 10, 30), (H, 30, 60)], id="there and back"),
            pytest.param([(-90, H, D)], [(D, 0, 60)], id="since before"),
            pytest.param([(-90, H, D), (15, D, F)], [(D, 0, 15), (F, 15, 60)], id="since before, then worse"),
            pytest.param([(15, D, F)], [(D, 0, 15), (F, 15, 60)], id="what was before is gone"),
            pytest.param([(15, H, F), (15, F, R)], [(H, 0, 15), (R, 15, 60)], id="two at one moment"),
        ],
    )
    def test_periods(
        self, changes: list[tuple[float, Grade, Grade]], expected: list[tuple[Grade, float, float]]
    ) -> None:
        rows = [(at(minute), was.value, to.value, "why") for minute, was, to in changes]
        made = grade_periods(rows, since=NOW, until=at(60))
        assert [(period.grade, period.since, period.until) for period in made] == [
            (grade, at(since), at(until)) for grade, since, until in expected
        ]

    def test_summary_text(self) -> None:
        parts = [GradePeriod(H, NOW, at(45)), GradePeriod(F, at(45), at(60))]
        assert summary(parts) == "HEALTHY 75.0%, FAILING 25.0%; 1 change"
        assert summary([GradePeriod(H, NOW, at(60))]) == "HEALTHY 100.0%; no changes"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"age_s": 310.0, "rung": 5}, {"age_s": 3.0, "rung": 0}, "age 310 → 3 s, rung 5 → 0"),
        ({"age_s": 310.0, "rung": 2}, {"age_s": 310.0, "rung": 2}, "unchanged"),
        ({"age_s": 310.0, "rung": 2}, {}, "age 310 s"),
        ({"grade": "FAILING", "workers": 2}, {"grade": "HEALTHY", "workers": 2}, "FAILING → HEALTHY"),
        ({"attempt": 5}, {"state": "SUCCESS"}, "task SUCCESS"),
        ({}, {}, ""),
    ],
)
def test_change_text(before: dict[str, Any], after: dict[str, Any], expected: str) -> None:
    assert change_text(before, after) == expected


@pytest.mark.parametrize(
    ("code", "expected"), [("silence_hint", "silent match: polled again"), ("key_issued", "key issued")]
)
def test_an_action_label(code: str, expected: str) -> None:
    assert action_label(code) == expected


@pytest.mark.django_db
@pytest.mark.both
class TestPages:
    def test_the_list_links_to_the_match_and_to_all_its_actions(self, admin_client: Client) -> None:
        now = timezone.now()
        match, _, _ = make_watched(now=now, age=310, title=f"A v B {EVIL}")
        other, _, _ = make_watched(now=now, title="C v D")
        for one in (match, other):
            what = {"actor": "scheduler", "action_type": "soft_restart", "trigger_condition": "no update", "now": now}
            audit.record(match_id=one.pk, target=one.title, **what)
        AuditEntry.objects.filter(match=match).update(outcome="success", after={"age_s": 2.0}, duration_seconds=4.0)
        url = reverse("admin:monitoring_auditentry_changelist")
        page = admin_client.get(url).content.decode()
        assert reverse("admin:scraping_match_change", args=[match.pk]) in page
        assert "age 310 → 2 s" in page
        assert EVIL not in page
        page = admin_client.get(url, {"match__id__exact": other.pk}).content.decode()
        assert "C v D" in page
        assert "A v B" not in page
        entry = AuditEntry.objects.get(match=match)
        page = admin_client.get(reverse("admin:monitoring_auditentry_change", args=[entry.pk])).content.decode()
        assert EVIL not in page
        assert "scraper_status" in page

    def test_the_first_page_counts_successful_actions(self, admin_client: Client) -> None:
        now = timezone.now()
        for outcome in ("success", "success", "failed", "pending"):
            AuditEntry.objects.create(
                timestamp=now, actor="x", action_type="soft_restart", trigger_condition="", outcome=outcome
            )
        AuditEntry.objects.create(timestamp=now, actor="x", action_type="key_issued", trigger_condition="a fact")
        found = recoveries_of_last_day(now)
        assert (found["count"], found["rate"], [row["action_type"] for row in found["rows"]]) == (
            4,
            "67%",
            ["soft_restart"],
        )
        page = admin_client.get(reverse("admin:index")).content.decode()
        assert "4, 67% of those decided helped" in page

    @pytest.mark.requirement("SO-9")
    def test_the_grades_of_the_day_are_drawn_and_summarized(self, admin_client: Client) -> None:
        now = timezone.now()
        make_watched(now=now, created_at=now - timedelta(hours=30))
        GradeChange.objects.create(from_grade=H, to_grade=F, at=now - timedelta(hours=6), reason=f"late {EVIL}")
        GradeChange.objects.create(from_grade=F, to_grade=H, at=now - timedelta(hours=3), reason="fresh")
        assert [period["grade"] for period in grade_chart(now)["bars"]] == ["healthy", "failing", "healthy"]
        for name in ("admin:monitoring_gradechange_changelist", "admin:index"):
            page = admin_client.get(reverse(name)).content.decode()
            assert 'role="img"' in page
            assert "HEALTHY 87.5%, FAILING 12.5%; 2 changes" in page
            assert EVIL not in page

    def test_the_time_before_the_first_match_has_no_grade(self) -> None:
        now = timezone.now()
        assert (grade_chart(now)["bars"], grade_chart(now)["summary"]) == ([], "no grade yet")
        begun = now - timedelta(hours=6)
        make_watched(now=now, created_at=begun)
        drawn = grade_chart(now)
        assert [float(period["width"]) for period in drawn["bars"]] == [pytest.approx(360, abs=1)]
        assert drawn["summary"] == f"HEALTHY 100.0%; no changes; known since {begun:%H:%M} UTC"
