"""Draws one saved result: age of the data above, memory below, over the same time. `draw.py RESULT.json OUT...`

Runs in its own virtual environment (draw.txt) and imports nothing of VictoryLine.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

INK, FAINT, LIMIT = "#1f2933", "#d9dee4", "#b42318"
AGE = {"p50_s": ("#2f6fb2", "p50"), "p99_s": ("#c2711b", "p99")}
# In the order in which they are stacked.
PARTS = {
    "browser_mb": ("#9dc3e6", "browser"),
    "driver_mb": ("#c9b8e0", "browser's driver"),
    "worker_mb": ("#f4c58f", "worker"),
    "engine_mb": ("#f4c58f", "engine"),
    "scheduler_mb": ("#b5d8b0", "scheduler"),
}
MARKS = {"crash": ("#b42318", "kill"), "recycle": ("#2f6fb2", "recycle")}
STYLE = {
    "font.size": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",  # text stays text: smaller, and searchable
    "svg.hashsalt": "victoryline",  # the same result, the same file
}


def main() -> None:
    result = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with plt.rc_context(STYLE):
        figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(10, 6), layout="constrained")
        figure.suptitle(result["picture"]["title"], x=0.01, ha="left", fontsize=13, fontweight="bold")
        draw_ages(above, result)
        draw_memory(below, result)
        figure.align_ylabels()
        for out in sys.argv[2:]:
            figure.savefig(out, dpi=110, facecolor="white", metadata={"Date": None} if out.endswith("svg") else None)


def draw_ages(axes: Axes, result: dict[str, Any]) -> None:
    ages, limit = result["series"]["age"], result["picture"]["age_limit_s"]
    minutes = [at / 60 for at in ages["at_s"]]
    for name, (colour, label) in AGE.items():
        axes.plot(minutes, ages[name], color=colour, linewidth=1.4, label=label)
    draw_limit(axes, limit, f"{limit:g} s")
    marks = draw_marks(axes, result["series"]["marks"])
    axes.set_ylabel("age of the data, seconds")
    axes.set_ylim(0, max(1.15 * max(ages["p99_s"], default=0), 1.2 * limit))
    lines, labels = axes.get_legend_handles_labels()
    finish(axes, [*lines, *marks], [*labels, *(str(mark.get_label()) for mark in marks)])


def draw_memory(axes: Axes, result: dict[str, Any]) -> None:
    memory, limit = result["series"]["memory"], result["picture"]["memory_limit_mb"]
    minutes = [at / 60 for at in memory["at_s"]]
    there = [name for name in PARTS if name in memory]
    axes.stackplot(
        minutes,
        [memory[name] for name in there],
        colors=[PARTS[name][0] for name in there],
        labels=[PARTS[name][1] for name in there],
        linewidth=0,
    )
    draw_limit(axes, limit, f"{limit:,.0f} MB")
    draw_marks(axes, result["series"]["marks"])
    highest = max((sum(values) for values in zip(*(memory[name] for name in there), strict=True)), default=0)
    axes.set_ylim(0, 1.15 * max(highest, limit))
    axes.set_ylabel("memory, MB")
    axes.set_xlabel("minutes")
    axes.set_xlim(0, max(minutes, default=1))
    lines, labels = axes.get_legend_handles_labels()
    finish(axes, lines[::-1], labels[::-1])


def draw_limit(axes: Axes, value: float, text: str) -> None:
    axes.axhline(value, color=LIMIT, linewidth=1, linestyle=(0, (6, 4)))
    axes.annotate(
        text, (1, value), xycoords=("axes fraction", "data"), xytext=(-4, 3), textcoords="offset points",
        ha="right", color=LIMIT, fontsize=9, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )  # fmt: skip


def draw_marks(axes: Axes, marks: list[dict[str, Any]]) -> list[Line2D]:
    """Draws thin lines for events of the bench; one legend entry for each kind."""
    seen: dict[str, Line2D] = {}
    for mark in marks:
        colour, label = MARKS.get(mark["kind"], (INK, mark["kind"]))
        line = axes.axvline(mark["at_s"] / 60, color=colour, linewidth=0.8, alpha=0.55, linestyle=":", zorder=0.5)
        line.set_label("_")
        seen.setdefault(mark["kind"], Line2D([], [], color=colour, linewidth=1, linestyle=":", label=label))
    return list(seen.values())


def finish(axes: Axes, lines: list[Any], labels: list[str]) -> None:
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(lines, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)


if __name__ == "__main__":
    main()
