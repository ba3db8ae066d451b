"""A night counted: what the simulator and the system itself are compared by, and how far they may be apart."""

from __future__ import annotations

from dataclasses import dataclass, field

from victoryline.night.engine import Night
from victoryline.night.faults import OF_MATCH, OF_SOURCE, Kind
from victoryline.night.world import Script

ROUND_SECONDS = 0.5  # of the scheduler, in both
OUTSIDE = OF_SOURCE | OF_MATCH | {Kind.CUT}  # what the world does to us; the rest we do to ourselves


@dataclass
class Counts:
    """What both ways of living through a night are compared by."""

    polls: int = 0
    polls_by_match: dict[int, int] = field(default_factory=dict)
    errors: int = 0
    deaths: int = 0
    pauses: int = 0
    breakers_opened: int = 0
    source_breakers_opened: int = 0
    rungs: int = 0


def only_outside(night: Night) -> Night:
    """Without the faults of ourselves."""
    night.world.faults[:] = [fault for fault in night.world.faults if fault.kind in OUTSIDE]
    night.trouble.keep(night.world.faults)
    return night


def pure_counts(script: Script) -> Counts:
    """The simulator's figures for the same world, at the same pace of rounds."""
    night = only_outside(Night(script, tick_seconds=ROUND_SECONDS))
    figures = night.run().figures
    polls = {game.match.pk: sum(watch.polls for watch in game.watches) for game in night.world.games}
    return Counts(
        polls=figures.polls,
        polls_by_match=polls,
        errors=figures.errors,
        deaths=figures.deaths,
        pauses=figures.pauses,
        breakers_opened=figures.breakers_opened,
        source_breakers_opened=figures.source_breakers_opened,
        rungs=sum(number for name, number in figures.rungs.items() if name != "undone"),
    )


def differences(real: Counts, pure: Counts) -> list[str]:
    """Where the two ways differ by more than chance and the grain of a round allow."""
    found = []
    for name, share, few in (
        ("polls", 0.05, 20.0),
        ("breakers_opened", 0.35, 4.0),
        ("source_breakers_opened", 0.5, 1.0),
        ("pauses", 0.35, 2.0),
        ("rungs", 0.5, 8.0),
    ):
        one, other = getattr(real, name), getattr(pure, name)
        if abs(one - other) > max(few, share * max(one, other)):
            found.append(f"{name}: {one} through the database, {other} in the simulator")
    for number, polls in real.polls_by_match.items():
        other = pure.polls_by_match.get(number, 0)
        if abs(polls - other) > max(15.0, 0.15 * max(polls, other)):
            found.append(f"polls of match {number}: {polls} through the database, {other} in the simulator")
    return found
