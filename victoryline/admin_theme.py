"""Appearance and navigation of the admin: the settings of unfold."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _item(title: str, icon: str, model: str) -> dict[str, Any]:
    app, name = model.split(".")
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{name}_changelist"),
        "permission": lambda request: request.user.has_perm(f"{app}.view_{name}"),
    }


def _group(title: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"title": title, "separator": True, "collapsible": False, "items": list(items)}


# Shades of the mark's green, from the lightest to the darkest.
GREEN = {
    "50": "oklch(97.9% .021 166.113)",
    "100": "oklch(95% .052 163.051)",
    "200": "oklch(90.5% .093 164.15)",
    "300": "oklch(84.5% .143 164.978)",
    "400": "oklch(76.5% .177 163.223)",
    "500": "oklch(62% .15 162.48)",
    "600": "oklch(52% .13 163.225)",
    "700": "oklch(45% .108 165.612)",
    "800": "oklch(39% .09 166.913)",
    "900": "oklch(34% .075 168.94)",
    "950": "oklch(26.2% .051 172.552)",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "VictoryLine",
    "SITE_HEADER": "VictoryLine",
    "SITE_SUBHEADER": "Live scores, with their age",
    "SITE_ICON": lambda _: static("victoryline/mark.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("victoryline/mark.svg")},
    ],
    "STYLES": [lambda _: static("victoryline/console.css")],
    "SCRIPTS": [lambda _: static("victoryline/console.js"), lambda _: static("victoryline/live.js")],
    "COLORS": {"primary": GREEN},
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "monitoring.admin.dashboard.dashboard",
    "COMMAND": {"search_callback": "monitoring.admin.console_search.find"},
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "show_all_applications": True,
        "navigation": [
            _group(
                "Matches",
                {"title": "Overview", "icon": "dashboard", "link": reverse_lazy("admin:index")},
                _item("Matches", "sports_score", "scraping.match"),
                _item("References", "link", "scraping.matchref"),
                _item("Events", "bolt", "scraping.matchevent"),
                _item("Snapshots", "photo_library", "scraping.snapshot"),
                _item("Pairs to review", "compare_arrows", "scraping.pairingreview"),
                _item("Conflicts", "difference", "scraping.conflict"),
                _item("Line-ups", "groups", "scraping.lineup"),
                _item("Players' figures", "leaderboard", "scraping.playerfigure"),
                _item("Records", "inventory_2", "scraping.matcharchive"),
            ),
            _group(
                "Journal",
                _item("Tasks", "checklist", "scraping.scrapetask"),
                _item("Jobs", "work", "scraping.scrapejob"),
                _item("Bulk operations", "done_all", "scraping.bulkoperation"),
                _item("Submissions", "move_to_inbox", "scraping.submission"),
                _item("Errors", "error", "scraping.scrapeerror"),
                _item("Error groups", "bug_report", "scraping.errorgroup"),
                _item("Evidence", "fingerprint", "scraping.evidence"),
            ),
            _group(
                "Sources",
                _item("Sources", "public", "scraping.source"),
                _item("Scrapers", "visibility", "scraping.scraper"),
                _item("Breakers", "power", "scraping.breaker"),
                _item("Traffic", "bar_chart", "scraping.sourceday"),
                _item("Fill rates", "grid_on", "scraping.fieldfill"),
                _item("Sessions", "vpn_lock", "scraping.proxysession"),
                _item("Team names", "badge", "scraping.teamalias"),
                _item("Unknown values", "question_mark", "scraping.unknownvalue"),
            ),
            _group(
                "Health",
                _item("Alerts", "notifications", "monitoring.alert"),
                _item("Workers", "memory", "scraping.worker"),
                _item("Worker commands", "assignment", "scraping.workercommand"),
                _item("Grades", "monitor_heart", "monitoring.gradechange"),
                _item("Health log", "timeline", "monitoring.healthlog"),
                _item("Log entries", "article", "monitoring.logentry"),
                _item("Audit", "history", "monitoring.auditentry"),
            ),
            _group(
                "API access",
                _item("Consumers", "group", "apiauth.consumer"),
                _item("Keys", "key", "apiauth.apikey"),
                _item("Usage", "bar_chart", "apiauth.usagehour"),
                _item("Access log", "receipt_long", "apiauth.accesslog"),
                _item("Users", "person", "auth.user"),
            ),
        ],
    },
}
