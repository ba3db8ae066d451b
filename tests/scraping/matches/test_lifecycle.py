"""The lifecycle of a match: legal transitions and priorities."""

from __future__ import annotations

from typing import Any

import pytest

from scraping.matches.lifecycle import ALLOWED_TRANSITIONS, NotAllowed, _move, priority_of
from scraping.models import Match, MatchLifecycle, Priority
from scraping.payloads import Status
from tests.factories import NOW
from tests.scraping.builders import later

L = MatchLifecycle


@pytest.mark.requirement("SO-8")
class TestTransitions:
    WAYS = frozenset(
        {
            (L.DISCOVERED, L.ACTIVE),
            (L.DISCOVERED, L.PAUSED),
            (L.DISCOVERED, L.COMPLETED),
            (L.ACTIVE, L.PAUSED),
            (L.ACTIVE, L.COMPLETED),
            (L.PAUSED, L.ACTIVE),
            (L.PAUSED, L.COMPLETED),
            (L.COMPLETED, L.ACTIVE),
            (L.COMPLETED, L.ARCHIVED),
        }
    )

    @pytest.mark.parametrize("to", list(L))
    @pytest.mark.parametrize("from_", list(L))
    def test_only_these_transitions_are_legal(self, from_: MatchLifecycle, to: MatchLifecycle) -> None:
        match = Match(lifecycle=from_, title="Kenya vs Nepal")
        if from_ == to or (from_, to) in self.WAYS:
            _move(match, to)
            assert match.lifecycle == to
        else:
            with pytest.raises(NotAllowed, match=f"is {from_} and cannot become {to}"):
                _move(match, to)

    def test_every_state_has_a_row(self) -> None:
        assert set(ALLOWED_TRANSITIONS) == set(L)

    @pytest.mark.parametrize(
        ("what", "status", "start", "expected"),
        [
            ("live", Status.LIVE, None, Priority.LIVE),
            ("starts within the hour", Status.UPCOMING, later(3600), Priority.IMMINENT),
            ("starts later", Status.UPCOMING, later(3601), Priority.COMPLETED),
            ("should have started", Status.UPCOMING, later(-60), Priority.IMMINENT),
            ("should have started this morning", Status.UPCOMING, later(-6 * 3600 - 1), Priority.COMPLETED),
            ("start unknown", Status.UPCOMING, None, Priority.COMPLETED),
            ("over", Status.COMPLETED, later(-9000), Priority.COMPLETED),
            ("abandoned", Status.ABANDONED, later(60), Priority.COMPLETED),
        ],
    )
    def test_priority(self, what: str, status: Status, start: Any, expected: Priority) -> None:
        assert priority_of(status, start, NOW) == expected
