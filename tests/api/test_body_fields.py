"""Each body has one definition: it renders exactly the fields that it documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scraping.api import bodies
from scraping.api.bodies import Body, MatchDocument, MatchItem
from scraping.api.cricket import MatchInfo
from scraping.api.history_bodies import NOT_IN_DELTA, EventRow, MatchDelta, SnapshotDocument
from scraping.payloads import MatchState
from victoryline.lib.http.openapi import EXAMPLES


def example(operation: str) -> dict[str, Any]:
    return next(iter(EXAMPLES[operation]["answer"].values()))


def fields_of(body: type[Body]) -> set[str]:
    return set(bodies._names(body))


def subclasses(body: type[Body]) -> Iterator[type[Body]]:
    for each in body.__subclasses__():
        yield each
        yield from subclasses(each)


def test_every_field_of_the_match_document_is_in_the_delta_or_a_named_exception() -> None:
    in_delta = fields_of(MatchDocument) - NOT_IN_DELTA
    assert in_delta == set(MatchState.model_fields)
    assert fields_of(MatchDocument) >= NOT_IN_DELTA


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
def test_examples_have_every_field(body: type[Body], shown: dict[str, object]) -> None:
    assert shown.keys() == fields_of(body)


def test_getters_exist_for_every_field_that_is_not_added() -> None:
    for body in subclasses(Body):
        rendered = {name for name, _ in bodies._getters(body)}
        assert rendered <= fields_of(body), body
