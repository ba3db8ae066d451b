"""Fault 25: scripts, formulas and broken markup in scraped text. Pages show it as text."""

from __future__ import annotations

import json
import logging
from html.parser import HTMLParser
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from scraping.matches import conflicts
from scraping.matches.reconcile.states import FieldConflict
from scraping.payloads import LastEvent, Team, Teams
from tests.admin import rows
from tests.api_fixtures import Caller, anonymous, caller, clean_api
from tests.factories import cricket_state, make_event, make_match, make_ref
from tests.monitoring.rows import make_worker
from victoryline.lib import logs

__all__ = ["anonymous", "caller", "clean_api"]
pytestmark = [pytest.mark.fault, pytest.mark.fault_number(25), pytest.mark.django_db]
MARK = "stranger7"
EVIL = (
    f"\"'></title></textarea></script><script>{MARK}()</script><img src=x onerror={MARK}()>"
    f'<a href="javascript:{MARK}()">{{{{7*7}}}}</a>'
)
FORMULA = "=cmd|'/c calc'!A0"


class Seen(HTMLParser):
    """Finds what a browser would run on a page: scripts, event handlers, javascript: URLs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        for name, value in attrs:
            # unfold's Alpine evaluates attributes that begin with x- or @ or a colon.
            is_code = name.startswith(("on", "x-", "@", ":")) or (value or "").strip().lower().startswith("javascript:")
            if is_code and MARK in (value or ""):
                self.runs.append(f"<{tag} {name}={value}>")

    def handle_data(self, data: str) -> None:
        if self._inside in {"script", "style"} and MARK in data:
            self.runs.append(f"<{self._inside}>{data[:200]}")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def runs(page: Any) -> list[str]:
    seen = Seen()
    seen.feed(page.content.decode())
    return seen.runs


def test_the_parser_finds_executable_markup() -> None:
    class Page:
        content = f"<h1>{EVIL}</h1>".encode()

    assert len(runs(Page)) >= 3


@pytest.fixture
def console(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(rows, "EVIL", EVIL)
    rows.make_everything()
    return admin_client


@pytest.mark.slow
def test_no_page_of_the_admin_runs_scraped_text(console: Client) -> None:
    ours = [model for app in ("scraping", "monitoring", "apiauth") for model in apps.get_app_config(app).get_models()]
    shown = 0
    for model in ours:
        if not admin.site.is_registered(model):
            continue
        name, row = f"{model._meta.app_label}_{model._meta.model_name}", model._default_manager.first()
        for way, arguments in (("changelist", []), ("change", [row.pk])):
            page = console.get(reverse(f"admin:{name}_{way}", args=arguments))
            assert page.status_code == 200, (name, way)
            assert runs(page) == [], (name, way)
            shown += MARK in page.content.decode()
    assert runs(console.get(reverse("admin:index"))) == []
    assert shown > 30  # the text was there, on most of them


def make_evil_match() -> Any:
    now = timezone.now()
    make_worker()
    state = cricket_state(
        title=EVIL,
        venue=EVIL,
        teams=Teams(team_a=Team(name=FORMULA, short_name="=1+1"), team_b=Team(name=EVIL[:110], short_name="+1")),
        last_event=LastEvent(type="wicket", description=EVIL),
        metadata={"series": EVIL},
    )
    match = make_match(state=state, now=now)
    make_event(match, now=now, description=EVIL, detail={"text": FORMULA})
    make_ref(match, now=now)
    conflicts.note(match.pk, [FieldConflict("venue", "crex", EVIL, "espn", FORMULA)], now=now)
    return match


class TestOpenPages:
    def test_show_scraped_text_escaped(self, anonymous: Client) -> None:
        make_evil_match()
        page = anonymous.get("/")
        assert runs(page) == []
        assert (
            "script-src" in page["Content-Security-Policy"] or "default-src 'self'" in page["Content-Security-Policy"]
        )

    @pytest.mark.parametrize("path", ["/<script>stranger7()</script>", "/admin/<img src=x onerror=stranger7()>/"])
    def test_error_pages_escape_the_address(self, anonymous: Client, path: str) -> None:
        assert runs(anonymous.get(path, headers={"Accept": "text/html"})) == []


class TestApi:
    @pytest.mark.parametrize("rest", ["", "/events", "/conflicts", "?include=provenance"])
    def test_returns_it_unchanged_as_json(self, caller: Caller, rest: str) -> None:
        answer = caller.get(f"/api/v1/matches/{make_evil_match().pk}{rest}", Accept="text/html")
        assert answer["Content-Type"] == "application/json"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert MARK in answer.content.decode()

    def test_errors_contain_the_address_only_as_json(self, caller: Caller) -> None:
        answer = caller.get("/api/v1/matches/<script>stranger7()<script>", Accept="text/html")
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
        assert answer["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("kind", ["json", "console"])
def test_scraped_text_cannot_start_a_log_line(kind: str) -> None:
    words = 'Kohli\n{"level":"ERROR","event":"forged"}\r\n\x1b[31mred\x1b[0m\u2028next'
    record = logging.LogRecord("scraping", logging.WARNING, __file__, 1, "The title is %s", (words,), None)
    line = logs.formatter(kind).format(record)
    assert not set(line) & {"\n", "\r", "\x1b"}
    if kind == "json":
        assert json.loads(line)["level"] == "WARN"
