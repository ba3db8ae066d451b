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
    action_label,
    change_text,
    grade_chart,
    recoveries_of_last_day,
)
from monitoring.models import AuditEntry, Grade, GradeChange
from tests.admin.rows import EVIL
from tests.factories import NOW
from tests.monitoring.rows import make_watched

H, D, F, R = Grade.HEALTHY, Grade.DEGRADED, Grade.FAILING, Grade.RECOVERING


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


@pytest.mark.django_db
class TestGradeChart:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param([], [H, H, H, H], id="no change ever"),
            pytest.param([(-50, H, F), (-31, F, H)], [F, F, H, H], id="the worst of a quarter"),
            pytest.param([(-50, H, F), (-44, F, R), (-29, R, D)], [F, F, D, D], id="what began a quarter counts"),
            pytest.param([(-2000, H, D)], [D, D, D, D], id="since before the day"),
            pytest.param([(-15, D, F)], [D, D, D, F], id="at the edge of two quarters"),
            pytest.param([(-50, H, F), (-50, F, R)], [F, R, R, R], id="two at one moment"),
        ],
    )
    def test_has_the_worst_grade_of_each_quarter_hour(
        self, changes: list[tuple[float, Grade, Grade]], expected: list[Grade]
    ) -> None:
        make_watched(now=NOW, created_at=at(-3000))
        for minute, was, to in changes:
            GradeChange.objects.create(from_grade=was, to_grade=to, at=at(minute), reason="why")
        cells = grade_chart(at(-0.01))["cells"]
        assert len(cells) == 96
        assert [cell["color"] for cell in cells[-4:]] == [f"grade-{grade.lower()}" for grade in expected]

    def test_a_cell_has_time_grade_and_reason(self) -> None:
        GradeChange.objects.create(from_grade=H, to_grade=F, at=at(-20), reason="why")
        chart = grade_chart(NOW)
        assert [cell["tooltip"] for cell in chart["cells"][-4:-1]] == [
            "11:15 to 11:30 UTC: no grade yet",
            "11:30 to 11:45 UTC: FAILING: why",
            "11:45 to 12:00 UTC: FAILING: why",
        ]
        assert chart["summary"] == "FAILING 3 of 96 quarter hours; 1 change"


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
        for name in ("admin:monitoring_gradechange_changelist", "admin:index"):
            page = admin_client.get(reverse(name)).content.decode()
            assert 'role="img"' in page
            assert "grade-failing" in page
            assert "of 96 quarter hours; 2 changes" in page
            assert EVIL not in page

    def test_the_time_before_the_first_match_has_no_grade(self) -> None:
        now = timezone.now()
        chart = grade_chart(now)
        assert ({cell["color"] for cell in chart["cells"]}, chart["summary"]) == ({"grade-none"}, "no grade yet")
        make_watched(now=now, created_at=now - timedelta(hours=6))
        colours = [cell["color"] for cell in grade_chart(now)["cells"]]
        assert 24 <= colours.count("grade-healthy") <= 25
        assert colours[0] == "grade-none"
