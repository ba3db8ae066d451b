"""The form of a source: selectors and read mode are validated before they are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from monitoring.models import AuditEntry
from scraping.models import Source
from tests.factories import make_source

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("FR-019")]


def post(client: Client, source: Source, **changes: Any) -> str:
    """Submits the form; returns its error messages, empty if it was accepted."""
    page = f"/admin/scraping/source/{source.pk}/change/"
    form = client.get(page).context["adminform"].form
    values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    data = {name: "" if value is None else value for name, value in values.items()} | changes
    data["selectors"] = json.dumps(data["selectors"] or {})
    data = {name: value for name, value in data.items() if value is not False}
    answer = client.post(page, data)
    return "" if answer.status_code == 302 else " ".join(str(answer.context["adminform"].form.errors).split())


@pytest.fixture
def board() -> Source:
    return make_source(key="board", sport="cricket")


def test_selectors_apply_at_once(admin_client: Client, board: Source) -> None:
    own = {"total_a": [".score", "//b[@id='score']"], "balls.id": ["./@data-id"]}
    assert not post(admin_client, board, selectors=own, read_way="attached")
    board.refresh_from_db()
    assert (board.selectors, board.read_way) == (own, "attached")


@pytest.mark.requirement("BX-11")
def test_a_change_is_audited_with_its_values_and_operator(admin_client: Client, board: Source) -> None:
    assert not post(admin_client, board, precedence_weight=10)
    entry = AuditEntry.objects.get(action_type="source_changed")
    assert (entry.actor, entry.target, entry.metadata["precedence_weight"]) == ("admin", "board", 10)


@pytest.mark.parametrize(
    ("selectors", "named"),
    [
        ({"total_a": [".score["]}, "total_a: &#x27;.score[&#x27; cannot be used"),
        ({"total_a": ["//b["]}, "it is not XPath 1.0"),
        ({"totals": [".score"]}, "totals: there is no such field"),
        ({"total_a": ".score"}, "total_a: give a list"),
        ([".score"], "selectors are given by field"),
    ],
)
def test_an_invalid_selector_is_refused_by_name(
    admin_client: Client, board: Source, selectors: Any, named: str
) -> None:
    assert named in post(admin_client, board, selectors=selectors)
    board.refresh_from_db()
    assert board.selectors == {}


def test_a_source_without_selectors_cannot_be_attached(admin_client: Client) -> None:
    crex = make_source(key="crex")
    assert "its pages cannot stay open" in post(admin_client, crex, read_way="attached")
    assert "none at this source" in post(admin_client, crex, selectors={"score": [".score"]})
