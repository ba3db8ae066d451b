"""The match page in the admin: line-ups, check of the ended match, download of the match log."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from scraping.matches import lineups, match_logs
from scraping.models import Match, MatchArchive
from scraping.payloads import Status
from tests.factories import football_state, make_match, make_ref
from tests.scraping.scripted_lineups import lineups_of, player, side_of

pytestmark = [pytest.mark.django_db, pytest.mark.both]


@pytest.fixture
def match(settings: Any, tmp_path: Path) -> Match:
    settings.STORAGE_DIR = tmp_path
    now = timezone.now()
    state = football_state(status=Status.UPCOMING)
    match = make_match(state=state, now=now, start_time=now + timedelta(hours=1))
    ref = make_ref(match, source="sofascore", now=now)
    home = side_of("team_a", players=(player(1, is_captain=True), *(player(number) for number in range(2, 14))))
    lineups.store(lineups_of(ref, home, side_of("team_b", starters=9), at=now), ref_id=ref.pk, now=now)
    return match


def page(client: Client, match: Match) -> str:
    return client.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()


@pytest.mark.requirement("FS-19")
def test_the_match_page_shows_both_sides(admin_client: Client, match: Match) -> None:
    shown = page(admin_client, match)
    for words in ("Before the start", "Starters (11)", "Bench (2)", "4-3-3", "Player a1 (c)", "Player b9"):
        assert words in shown
    assert "confirmed; fewer than eleven starters are known" in shown


def test_the_list_shows_team_and_state_of_the_line_up(admin_client: Client, match: Match) -> None:
    shown = admin_client.get(reverse("admin:scraping_lineup_changelist")).content.decode()
    for words in (match.team_a, match.team_b, "before the start", "confirmed", "fewer than eleven"):
        assert words in shown
    assert "team_b" not in shown


def test_a_live_match_without_line_ups_is_described(admin_client: Client) -> None:
    shown = page(admin_client, make_match())
    assert "lineup-side" not in shown
    assert "None have been read" in shown
    assert "Not ended" in shown


@pytest.mark.requirement("EC-3")
def test_missing_parts_are_listed_and_the_match_log_can_be_downloaded(admin_client: Client, match: Match) -> None:
    checks = {"result": True, "figures": False, "events": None, "reads": 4, "given_up": True}
    Match.objects.update(final_checks=checks)
    archive = match_logs.write(match.pk, now=timezone.now())
    assert archive is not None
    shown = page(admin_client, match)
    for words in ("result: present", "figures: missing", "events: not expected", "are not requested any more"):
        assert words in shown
    url = reverse("admin:scraping_matcharchive_download", args=[archive.pk])
    assert url in shown
    answer = admin_client.get(url)
    assert answer["Content-Disposition"] == f'attachment; filename="match-{match.pk}.json.gz"'
    assert json.loads(gzip.decompress(answer.content))["match"]["id"] == match.pk


def test_a_match_log_needs_permission(client: Client, match: Match) -> None:
    archive = match_logs.write(match.pk, now=timezone.now())
    assert archive is not None
    url = reverse("admin:scraping_matcharchive_download", args=[archive.pk])
    assert client.get(url).status_code == 302
    client.force_login(User.objects.create_user("visitor", is_staff=True))
    assert client.get(url).status_code == 403


def test_a_match_log_outside_its_folder_is_not_served(admin_client: Client, match: Match, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.gz"
    outside.write_bytes(b"secret")
    row = MatchArchive.objects.create(
        match=match, file="../outside.gz", size_bytes=6, sha256="0" * 64, created_at=timezone.now()
    )
    url = reverse("admin:scraping_matcharchive_download", args=[row.pk])
    assert admin_client.get(url).status_code == 404
