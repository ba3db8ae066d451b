"""A night as a picture: SVG by hand, readable in light and dark, the same bytes for the same night."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape

from victoryline.night.engine import Story
from victoryline.night.faults import Fault
from victoryline.night.measures import Sample

WIDTH, LEFT, RIGHT = 900, 64, 20
AGES, LOADS, GRADES = (48, 190), (270, 110), (404, 14)  # top and height of each part
HEIGHT = 452
COLUMNS = 220
AGE_MARKS = (1, 2.5, 10, 60, 300, 1200)
COLOURS = ("#2f6fb2", "#c2711b", "#3a8f5c", "#8a5fb0")
GRADE_COLOURS = {"HEALTHY": "#3a8f5c", "DEGRADED": "#d9a520", "FAILING": "#b42318", "RECOVERING": "#2f6fb2"}
STYLE = """
text{font:11px system-ui,sans-serif;fill:#1f2933}.t{font-size:13px;font-weight:600}.g{stroke:#d9dee4;stroke-width:.6}
.l{fill:none;stroke-width:1.3;stroke-linejoin:round}.f{fill:#b42318;opacity:.1}.o{stroke:#b42318;stroke-dasharray:6 4}
.b{fill:#fff}
@media(prefers-color-scheme:dark){.b{fill:#12171d}text{fill:#e4e7eb}.g{stroke:#3e4c59}.f{fill:#ff6b5e;opacity:.18}}
"""

Scale = Callable[[float], float]


def svg(story: Story) -> str:
    hours, script = story.script.hours, story.script
    samples = _thinned(story.measures.samples)
    title = f"Night {script.seed}: {story.figures.matches} matches, {hours:g} h, {script.faults} faults"
    x: Scale = lambda t: LEFT + (WIDTH - LEFT - RIGHT) * t / script.seconds  # noqa: E731 - one line, used everywhere
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<rect class="b" width="{WIDTH}" height="{HEIGHT}"/>',  # or text for the night stands on a browser's white
        f'<text class="t" x="{LEFT}" y="20">{escape(title)}</text>',
        *_faults(story.faults, x),
        *_ages(samples, x),
        *_loads(samples, story, x),
        *_grades(story, x),
        *_hours(hours, x),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _thinned(samples: Sequence[Sample]) -> list[Sample]:
    """At most so many columns, each the worst of its stretch."""
    size = max(1, math.ceil(len(samples) / COLUMNS))
    return [_worst(samples[first : first + size]) for first in range(0, len(samples), size)]


def _worst(some: Sequence[Sample]) -> Sample:
    return Sample(
        some[0].t,
        max(one.p50 for one in some),
        max(one.p95 for one in some),
        max(one.max for one in some),
        max(one.matches for one in some),
        some[-1].grade,
        tuple(round(sum(polls) / len(some)) for polls in zip(*(one.polls for one in some), strict=True)),
    )


def _faults(faults: Iterable[Fault], x: Scale) -> list[str]:
    top, bottom = AGES[0], GRADES[0] + GRADES[1]
    return [
        f'<rect class="f" x="{x(one.begin):.1f}" y="{top}" width="{max(1.0, x(one.end) - x(one.begin)):.1f}" '
        f'height="{bottom - top}"><title>{escape(one.kind.value)}</title></rect>'
        for one in faults
    ]


def _ages(samples: Sequence[Sample], x: Scale) -> list[str]:
    top, height = AGES
    lowest, highest = math.log(AGE_MARKS[0]), math.log(AGE_MARKS[-1])

    def y(age: float) -> float:
        share = (math.log(min(max(age, AGE_MARKS[0]), AGE_MARKS[-1])) - lowest) / (highest - lowest)
        return top + height * (1 - share)

    lines = [line for mark in AGE_MARKS for line in _mark(y(mark), f"{mark:g} s", is_limit=mark == 10)]
    for number, name in enumerate(("p50", "p95", "max")):
        lines.append(_path([(x(one.t), y(getattr(one, name))) for one in samples], COLOURS[number]))
    return [*lines, *_legend(("p50", "p95", "oldest"), top - 8, "age of the data in play")]


def _loads(samples: Sequence[Sample], story: Story, x: Scale) -> list[str]:
    top, height = LOADS
    step = samples[1].t - samples[0].t if len(samples) > 1 else 15.0
    per_second = min(15.0, step)
    most = max((max(one.polls, default=0) for one in samples), default=0) / per_second or 1.0

    def y(polls: float) -> float:
        return top + height * (1 - polls / per_second / most)

    lines = _mark(y(0), "0") + _mark(y(most * per_second), f"{most:.1f}/s")
    for number in range(len(story.sources)):
        lines.append(_path([(x(one.t), y(one.polls[number])) for one in samples], COLOURS[number]))
    names = tuple(site.row.key for site in story.sources)
    return [*lines, *_legend(names, top - 8, "polls a second")]


def _grades(story: Story, x: Scale) -> list[str]:
    top, height = GRADES
    ends = [at for at, _ in story.measures.grades[1:]] + [story.script.seconds]
    return [
        f'<rect x="{x(at):.1f}" y="{top}" width="{max(0.5, x(end) - x(at)):.1f}" height="{height}" '
        f'fill="{GRADE_COLOURS.get(grade, "#888")}"><title>{grade}</title></rect>'
        for (at, grade), end in zip(story.measures.grades, ends, strict=True)
    ] + [f'<text x="{LEFT - 6}" y="{top + 11}" text-anchor="end">grade</text>']


def _hours(hours: float, x: Scale) -> list[str]:
    y = GRADES[0] + GRADES[1] + 18
    return [
        f'<text x="{x(hour * 3600.0):.1f}" y="{y}" text-anchor="middle">{hour} h</text>'
        for hour in range(int(hours) + 1)
    ]


def _mark(y: float, words: str, *, is_limit: bool = False) -> list[str]:
    css = "g o" if is_limit else "g"
    return [
        f'<line class="{css}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>',
    ]


def _path(points: Sequence[tuple[float, float]], colour: str) -> str:
    return f'<polyline class="l" stroke="{colour}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _legend(names: Sequence[str], y: float, what: str) -> list[str]:
    """What is drawn, and in which colour."""
    lines = [f'<text x="{LEFT}" y="{y}">{escape(what)}</text>']
    for number, name in enumerate(names):
        at = LEFT + 170 + 90 * number
        lines.append(f'<rect x="{at}" y="{y - 8}" width="10" height="8" fill="{COLOURS[number]}"/>')
        lines.append(f'<text x="{at + 14}" y="{y}">{escape(name)}</text>')
    return lines
