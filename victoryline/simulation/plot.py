"""The result of a night as a picture: ages, grade, times of faults. SVG, the same bytes for the same night."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape

from victoryline.simulation.faults import Fault
from victoryline.simulation.measures import FRESH_SECONDS, Sample
from victoryline.simulation.night import SAMPLE_SECONDS, NightResult

WIDTH, HEIGHT, LEFT, RIGHT = 900, 306, 64, 20
AGES, GRADES = (48, 190), (258, 14)  # top and height of each part
AGE_MARKS = (1, 2.5, 10, 60, 300, 1200)  # seconds, on a logarithmic scale
COLOURS = ("#2f6fb2", "#c2711b", "#3a8f5c")
GRADE_COLOURS = {"HEALTHY": "#3a8f5c", "DEGRADED": "#d9a520", "FAILING": "#b42318", "RECOVERING": "#2f6fb2"}
STYLE = """
text{font:11px system-ui,sans-serif;fill:#1f2933}.t{font-size:13px;font-weight:600}.g{stroke:#d9dee4;stroke-width:.6}
.l{fill:none;stroke-width:1.3;stroke-linejoin:round}.f{fill:#b42318;opacity:.1}.o{stroke:#b42318;stroke-dasharray:6 4}
.b{fill:#fff}
@media(prefers-color-scheme:dark){.b{fill:#12171d}text{fill:#e4e7eb}.g{stroke:#3e4c59}.f{fill:#ff6b5e;opacity:.18}}
"""

Scale = Callable[[float], float]


def svg(result: NightResult) -> str:
    script = result.script
    title = f"Night {script.seed}: {script.matches} matches, {script.hours:g} h, {script.faults} faults"

    def x(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / script.seconds

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<rect class="b" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="t" x="{LEFT}" y="20">{escape(title)}</text>',
        *_faults(result.world.faults.all, x),
        *_ages(result.samples, x),
        *_grades(result, x),
        *_times(script.seconds, x),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _faults(faults: Iterable[Fault], x: Scale) -> list[str]:
    top, bottom = AGES[0], sum(GRADES)
    return [
        f'<rect class="f" x="{x(fault.begin):.1f}" y="{top}" width="{max(1.0, x(fault.end) - x(fault.begin)):.1f}" '
        f'height="{bottom - top}"><title>{escape(fault.kind.value)}</title></rect>'
        for fault in faults
    ]


def _ages(samples: Sequence[Sample], x: Scale) -> list[str]:
    top, height = AGES
    lowest, highest = math.log(AGE_MARKS[0]), math.log(AGE_MARKS[-1])

    def y(age: float) -> float:
        share = (math.log(min(max(age, AGE_MARKS[0]), AGE_MARKS[-1])) - lowest) / (highest - lowest)
        return top + height * (1 - share)

    lines = [line for mark in AGE_MARKS for line in _mark(mark, y(mark))]
    for number, name in enumerate(("p50", "p95", "max")):
        lines.append(_path([(x(sample.t), y(getattr(sample, name))) for sample in samples], COLOURS[number]))
    return [*lines, *_legend(("p50", "p95", "oldest"), top - 8, "age of the data in play")]


def _grades(result: NightResult, x: Scale) -> list[str]:
    top, height = GRADES
    return [
        f'<rect x="{x(sample.t - SAMPLE_SECONDS):.1f}" y="{top}" width="{x(SAMPLE_SECONDS) - x(0):.2f}" '
        f'height="{height}" fill="{GRADE_COLOURS.get(sample.grade, "#888")}"><title>{sample.grade}</title></rect>'
        for sample in result.samples
    ] + [f'<text x="{LEFT - 6}" y="{top + 11}" text-anchor="end">grade</text>']


def _times(seconds: float, x: Scale) -> list[str]:
    y, step = sum(GRADES) + 18, 3600 if seconds > 7200 else 300
    return [
        f'<text x="{x(at):.1f}" y="{y}" text-anchor="middle">{at // 60} min</text>'
        for at in range(0, int(seconds) + 1, step)
    ]


def _mark(seconds: float, y: float) -> list[str]:
    css = "g o" if seconds == FRESH_SECONDS else "g"
    return [
        f'<line class="{css}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{seconds:g} s</text>',
    ]


def _path(points: Sequence[tuple[float, float]], colour: str) -> str:
    return f'<polyline class="l" stroke="{colour}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _legend(names: Sequence[str], y: float, title: str) -> list[str]:
    lines = [f'<text x="{LEFT}" y="{y}">{title}</text>']
    for number, name in enumerate(names):
        at = LEFT + 170 + 90 * number
        lines.append(f'<rect x="{at}" y="{y - 8}" width="10" height="8" fill="{COLOURS[number]}"/>')
        lines.append(f'<text x="{at + 14}" y="{y}">{name}</text>')
    return lines
