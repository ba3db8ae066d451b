"""Each body has one definition: it renders exactly the fields that it documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from scraping.api import bodies
from scraping.api.bodies import Body, MatchDocument, MatchItem
from scraping.api.cricket import MatchInfo
from scraping.api.history_bodies import EventRow, MatchDelta, SnapshotDocument
from scraping.documents.cached_match import SHOWN, CachedMatch
from scraping.payloads import MatchState
from victoryline.lib.http import openapi


def example(operation: str) -> dict[str, Any]:
    return next(iter(openapi.EXAMPLES[operation]["answer"].values()))


def fields_of(body: type[Body]) -> set[str]:
    return set(bodies._names(body))


def subclasses(body: type[Body]) -> Iterator[type[Body]]:
    for each in body.__subclasses__():
        yield each
        yield from subclasses(each)


def test_the_match_document_has_every_field_of_the_state() -> None:
    missing = set(MatchState.model_fields) - fields_of(MatchDocument)
    assert not missing, "declare it in MatchDocument (scraping/api/bodies.py)"


@pytest.mark.parametrize("body", [MatchDocument, MatchItem])
def test_every_field_of_the_state_has_a_getter(body: type[Body]) -> None:
    attributes = {field.name for field in dataclasses.fields(CachedMatch)} | set(dir(CachedMatch))
    plain = {name for name, field in body.model_fields.items() if not any(map(callable, [*field.metadata]))}
    missing = plain & set(MatchState.model_fields) - attributes
    assert not missing, 'declare it as Annotated[..., in_payload("name")] in scraping/api/bodies.py'


@pytest.mark.parametrize("body", [MatchDocument, MatchItem])
def test_every_field_of_our_own_is_in_the_etag(body: type[Body]) -> None:
    rendered = {name for name, _ in bodies._getters(body)} - set(MatchState.model_fields)
    unknown = rendered - {"id", "match_id", "keys", "domain_id", "sequence"} - set(SHOWN)
    assert not unknown, (
        "neither a field of MatchState (scraping/payloads.py) nor in SHOWN (scraping/documents/cached_match.py)"
    )


@pytest.mark.parametrize(("stored", "shown"), [(0, 0), (None, None), ("", None), (7, 7)])
def test_zero_is_a_value_of_the_payload(stored: object, shown: object) -> None:
    match = SimpleNamespace(payload={"attendance": stored})
    assert bodies.in_payload("attendance")(match) == shown


def test_a_value_that_a_body_does_not_declare_is_refused() -> None:
    with pytest.raises(TypeError, match="MatchDelta has no chnaged"):
        MatchDelta.render(chnaged={})


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (MatchDocument, example("read_match") | {"provisional": None}),
        (MatchItem, example("list_matches")["matches"][0]),
        (MatchInfo, example("read_match_info")),
        (EventRow, example("list_events")["events"][0]),
        (MatchDelta, example("read_delta")),
        (SnapshotDocument, example("read_snapshot")),
    ],
)
def test_examples_have_no_other_fields(body: type[Body], shown: dict[str, object]) -> None:
    assert shown.keys() <= fields_of(body)


def test_getters_exist_for_every_field_that_is_not_added() -> None:
    for body in subclasses(Body):
        rendered = {name for name, _ in bodies._getters(body)}
        assert rendered <= fields_of(body), body
