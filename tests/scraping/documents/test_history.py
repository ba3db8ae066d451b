"""The difference between two states: applied to the first it gives exactly the second."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scraping.documents.queries import Difference, difference
from scraping.payloads import MatchState

pytestmark = pytest.mark.requirement("SO-4")
NAMES = st.sampled_from([*MatchState.model_fields, "weather", ""])
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2).map(lambda n: round(n, 1)) | st.text(max_size=3)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)
STATES = st.dictionaries(NAMES, VALUES, max_size=8)


def as_json(value: Any) -> bytes:
    """Converts to JSON text: for Python 1, 1.0 and True are equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def applied(state: dict[str, Any], found: Difference) -> dict[str, Any]:
    """Returns the new state as a consumer computes it."""
    return {name: value for name, value in state.items() if name not in found.removed} | found.changed


@settings(max_examples=60, deadline=None)
@given(STATES, STATES)
def test_leads_from_any_state_to_any_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert as_json(applied(before, difference(before, after))) == as_json(after)


@settings(max_examples=60, deadline=None)
@given(STATES, STATES)
def test_has_no_equal_field(before: dict[str, Any], after: dict[str, Any]) -> None:
    found = difference(before, after)
    assert not any(name in before and as_json(before[name]) == as_json(found.changed[name]) for name in found.changed)
    assert set(found.removed) == before.keys() - after.keys()


@settings(max_examples=60, deadline=None)
@given(STATES)
def test_of_equal_states_is_empty(state: dict[str, Any]) -> None:
    found = difference(state, dict(reversed(state.items())))
    assert (found.changed, found.removed) == ({}, [])


@settings(max_examples=30, deadline=None)
@given(st.lists(STATES, min_size=2, max_size=5))
def test_single_steps_lead_to_the_same_state(states: list[dict[str, Any]]) -> None:
    held = states[0]
    for before, after in pairwise(states):
        held = applied(held, difference(before, after))
    assert as_json(held) == as_json(applied(states[0], difference(states[0], states[-1])))


@pytest.mark.parametrize(
    ("before", "after", "changed", "removed"),
    [
        ({"a": 1}, {"a": 1}, {}, []),
        ({"a": 1}, {"a": True}, {"a": True}, []),
        ({}, {"a": None}, {"a": None}, []),
        ({"a": None}, {}, {}, ["a"]),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2}}, {"a": {"y": 2}}, []),
    ],
    ids=["same", "another kind of one", "null is a value", "gone", "a field is sent whole"],
)
def test_of_small_states(before: Any, after: Any, changed: Any, removed: Any) -> None:
    found = difference(before, after)
    assert (as_json(found.changed), found.removed) == (as_json(changed), removed)
