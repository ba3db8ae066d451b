"""Every error class is complete: a missing part of a new class makes one of these tests fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from monitoring.alerts import alert_keys
from scraping import errors
from scraping.admin.tasks import RESOURCE_VERBS, what_next
from scraping.errors import ERROR_RULES, OUR_FAULTS, SOURCE_FAULTS, ErrorClass, ScrapingError, error_for_status
from scraping.models import ErrorGroup, ScrapeError, ScrapeTask, TaskState
from scraping.payloads import Resource


def exception_classes(parent: type[ScrapingError] = ScrapingError) -> Iterator[type[ScrapingError]]:
    for child in parent.__subclasses__():
        yield child
        yield from exception_classes(child)


def documented(file: str, header: str) -> list[str]:
    """Returns the classes in the first column of the table that begins with this header."""
    text = (Path(settings.BASE_DIR) / "docs" / file).read_text(encoding="utf-8")
    rows = text.partition(header)[2].partition("\n\n")[0].splitlines()[1:]
    return [name for row in rows for name in re.findall(r"\w+", row.split("|")[1].partition("(")[0])]


class TestEveryClass:
    def test_has_one_row_in_enum_order(self) -> None:
        assert list(ERROR_RULES) == list(ErrorClass)

    @pytest.mark.parametrize("error_class", ErrorClass)
    def test_has_advice_and_possible_pauses(self, error_class: ErrorClass) -> None:
        rule = ERROR_RULES[error_class]
        assert rule.advice.endswith(".")
        assert (rule.first_pause_seconds is None) == (rule.longest_pause_seconds is None)
        assert rule.first_pause_seconds is None or rule.first_pause_seconds <= (rule.longest_pause_seconds or 0)
        assert rule.attempts is None or rule.attempts >= 1

    def test_is_charged_where_it_feeds_a_breaker_or_pauses_a_match(self) -> None:
        pausing = {one for one, rule in ERROR_RULES.items() if rule.pauses_match}
        assert not (SOURCE_FAULTS | pausing) & OUR_FAULTS

    def test_is_raised_by_an_exception(self) -> None:
        raised = {kind.error_class for kind in exception_classes()} | {ErrorClass.BUG}  # any other exception
        assert raised == set(ErrorClass), "a class without an exception in scraping/errors.py"

    def test_has_exceptions_with_a_code_of_their_own(self) -> None:
        unnamed = [kind.__name__ for kind in exception_classes() if kind.error_code == ScrapingError.error_code]
        assert not unnamed, "set error_code in scraping/errors.py: error rows and metrics would count them as bugs"

    def test_has_its_exceptions_in_the_tree_of_the_docstring(self) -> None:
        named = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
        assert sorted(named) == sorted(kind.__name__ for kind in exception_classes()), "docstring of scraping/errors.py"

    def test_is_a_choice_of_the_models(self) -> None:
        for model in (ScrapeTask, ScrapeError, ErrorGroup):
            choices = {value for value, _ in model._meta.get_field("error_class").choices or ()}
            assert choices == {one.value for one in ErrorClass}

    @pytest.mark.django_db
    def test_is_in_a_migration(self) -> None:
        loader = MigrationLoader(connection)
        detector = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
        changes = detector.changes(graph=loader.graph).get("scraping")
        assert not changes, "run: manage.py makemigrations scraping"

    @pytest.mark.parametrize("error_class", ErrorClass)
    def test_advises_the_operator_on_the_page_of_a_dead_task(self, error_class: ErrorClass) -> None:
        task = ScrapeTask(state=TaskState.DEAD, error_class=error_class.value)
        assert ERROR_RULES[error_class].advice in what_next(task)

    def test_is_documented(self) -> None:
        rows = documented("architecture.md", "| class | examples | what follows |\n")
        assert rows == [*ErrorClass], "docs/architecture.md, table of error classes"

    def test_has_its_breakers_documented(self) -> None:
        text = (Path(settings.BASE_DIR) / "docs/architecture.md").read_text(encoding="utf-8")
        named = text.partition(" failures count for two breakers")[0].rpartition("\n")[2].lower()
        classes = set(re.findall(r"\w+", named)) - {"and"}
        assert classes == SOURCE_FAULTS, "docs/architecture.md, classes that count for breakers"

    def test_has_documented_attempts(self) -> None:
        limited = {one for one, rule in ERROR_RULES.items() if rule.is_charged}
        rows = documented("operations.md", "| error class | attempts |\n")
        assert set(rows) == limited, "docs/operations.md, table of attempts by error class"

    @pytest.mark.parametrize("error_class", [one for one, rule in ERROR_RULES.items() if rule.is_charged])
    def test_has_the_documented_number_of_attempts(self, error_class: ErrorClass) -> None:
        text = (Path(settings.BASE_DIR) / "docs/operations.md").read_text(encoding="utf-8")
        row = re.search(
            rf"^\| .*`{error_class.value}`.* \| (.+) \|$", text.partition("| error class | attempts |")[2], re.MULTILINE
        )
        attempts = ERROR_RULES[error_class].attempts
        expected = "1 + `RETRY_MAX_ATTEMPTS`" if attempts is None else str(attempts)
        assert row is not None
        assert row[1].partition(",")[0] == expected, "docs/operations.md, table of attempts by error class"


def test_alerts_of_an_error_class_give_its_advice() -> None:
    assert alert_keys.BLOCKED.action == ERROR_RULES[ErrorClass.BLOCKED].advice
    assert alert_keys.LAYOUT.action == alert_keys.CHANGED.action == ERROR_RULES[ErrorClass.DRIFT].advice


def test_every_resource_has_a_verb_on_the_page_of_a_dead_task() -> None:
    assert set(RESOURCE_VERBS) == set(Resource)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, None),
        (400, None),
        (401, ErrorClass.AUTH),
        (403, ErrorClass.BLOCKED),
        (404, ErrorClass.GONE),
        (408, ErrorClass.TRANSIENT),
        (410, ErrorClass.GONE),
        (425, ErrorClass.TRANSIENT),
        (429, ErrorClass.BLOCKED),
        (500, ErrorClass.TRANSIENT),
        (503, ErrorClass.TRANSIENT),
    ],
)
def test_a_status_has_its_class(status: int, expected: ErrorClass | None) -> None:
    kind = error_for_status(status)
    assert (kind.error_class if kind else None) == expected
