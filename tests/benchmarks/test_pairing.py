"""The generated fixtures of the bench `pairing`."""

from __future__ import annotations

from benchmarks.pairing.fixtures import SAME, TRAPS, days


def test_a_seed_gives_the_same_fixtures() -> None:
    assert list(days(100, seed=3)) == list(days(100, seed=3)) != list(days(100, seed=4))


def test_every_kind_is_made() -> None:
    kinds = {pair.kind for pairs in days(3000, seed=1) for pair in pairs}
    assert kinds >= {*SAME, *(f"trap: {kind}" for kind in TRAPS)}


def test_a_site_lists_no_two_teams_twice_at_one_time() -> None:
    """Otherwise a join with another fixture than its own would not be false."""
    for pairs in days(500, seed=2):
        listed = [(*(team.name for team in pair.theirs.teams), pair.theirs.start_time) for pair in pairs]
        assert len(set(listed)) == len(listed)
