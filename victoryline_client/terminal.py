"""Shows a followed match: lines for events and states, on a terminal also a status line; or JSON for programs."""

import argparse
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import httpx

from victoryline_client.client import Client
from victoryline_client.follower import Change
from victoryline_client.responses import Document, Freshness, Problem

ERASE = "\r\x1b[K"


def clean(value: object) -> str:
    """Removes control characters from remote text: a terminal would execute them."""
    return "".join(each for each in re.sub(r"\s", " ", str(value or "")) if each.isprintable())[:500]


def format_score(match: Document) -> str:
    """Returns India 187/5 (20.0) v Australia 95/3 (12.3), or Arsenal 2 v Chelsea 1."""
    forms = {"goals": " {}", "penalties": " ({} pens)", "runs": " {}", "wickets": "/{}", "overs": " ({})"}
    teams, scores, sides = match.get("teams") or {}, match.get("score") or {}, []
    for side in ("team_a", "team_b"):
        team, score = teams.get(side) or {}, scores.get(side) or {}
        values = [form.format(score[name]) for name, form in forms.items() if score.get(name) is not None]
        sides.append(str(team.get("name") or team.get("short_name") or "?") + "".join(values))
    return clean(" v ".join(sides) if any(teams.values()) else match.get("title"))


def format_line(match: Document, freshness: Freshness) -> str:
    """Returns state and age, score, status. The age is first: a narrow terminal must not cut it off."""
    age = freshness.age_now()
    text = "never read" if age is None else f"{age:.0f} s old" if age < 120 else f"{age / 60:.0f} min old"
    state = "final" if freshness.state == "final" else f"{freshness.state}, {text}"
    details = (match.get("status"), match.get("clock"), match.get("phase"), match.get("result"))
    return clean(" · ".join([state, format_score(match), *(str(each) for each in details if each)]))


def format_event(row: Document) -> str:
    """Returns 12.3  wicket: Smith c Kohli b Bumrah; a correction begins with "corrected:" or "retracted:"."""
    prefix = {"update": "corrected: ", "retract": "retracted: "}.get(str(row.get("action")), "")
    details = row.get("description") or ("" if row.get("runs") is None else f"runs {row['runs']}")
    reason = f" ({row['reason']})" if row.get("reason") else ""
    return clean(f"{prefix}{row.get('over') or row.get('minute') or '':>6}  {row.get('kind')}: {details}{reason}")


def format_json(change: Change) -> str:
    """Returns one object on one line. The first one has the full match in `changed`."""
    code = change.error.code if isinstance(change.error, Problem) else "unreachable"
    error = {"code": code, "detail": str(change.error)} if change.error else None
    freshness = {"state": change.freshness.state, "age_seconds": change.freshness.age_now()}
    news = {"changed": change.changed, "events": change.events, "next_since": change.next_since}
    return json.dumps({**news, "freshness": freshness, "error": error})


class View:
    """Writes lines for events, states and errors. `is_live`: a status line below them, redrawn every second."""

    def __init__(self, out: TextIO, *, past: int = 5, is_live: bool = False, is_json: bool = False) -> None:
        self._out, self._past, self._is_live, self._is_json = out, past, is_live, is_json
        self._last, self._lock = Change(), threading.Lock()
        if is_live:
            threading.Thread(target=self._redraw, daemon=True).start()

    def show(self, change: Change) -> None:
        with self._lock:
            self._out.write((ERASE if self._is_live else "") + "".join(f"{line}\n" for line in self._lines(change)))
            self._last = change
            self._draw()

    def _redraw(self) -> None:
        while True:
            time.sleep(1.0)
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._is_live and self._last.document:
            line = ("no answer · " if self._last.error else "") + format_line(self._last.document, self._last.freshness)
            self._out.write(ERASE + line[: shutil.get_terminal_size().columns - 1])
        self._out.flush()

    def _lines(self, change: Change) -> Iterator[str]:
        last = self._last
        if self._is_json:
            yield from [format_json(change)] if change.has_changes or change.error else []
            return
        if change.error:
            text = f"No answer: {clean(change.error)} The last known state is shown; retrying."
            yield from [] if last.error else [text]
            return
        if last.error:
            yield "The server answers again."
        rows = [row for row in change.events if row.get("is_critical", True) or row.get("action") != "add"]
        if not last.document:
            yield clean(change.document.get("title"))
            rows = rows[max(0, len(rows) - self._past) :]
        yield from map(format_event, rows)
        if change.freshness.state != last.freshness.state or (change.changed and not self._is_live):
            yield format_line(change.document, change.freshness)


def run(client: Client, options: argparse.Namespace, out: TextIO) -> None:
    """Follows the match of the options, or lists the live ones."""
    try:
        if options.match:
            is_live = out.isatty() and not (options.plain or options.json)
            view = View(out, past=options.past, is_live=is_live, is_json=options.json)
            for change in client.follow(options.match, every_poll=True, final_wait=options.final_wait):
                view.show(change)
        else:
            write_list(client, out)
    except KeyboardInterrupt:
        out.write("\n")
    except BrokenPipeError:  # the reader of the pipe has ended; what Python flushes at the end goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def write_list(client: Client, out: TextIO) -> None:
    """Lists the live matches, or the upcoming ones if there are none."""
    found = list(client.matches(status="live", limit=100)) or list(client.matches(status="upcoming", limit=100))
    for each in found:
        name = clean(each.data["keys"][0] if each.data["keys"] else each.data["id"])
        out.write(f"{name:<20} {format_line(each.data, each.freshness)}\n")
    out.write("" if found else "No match is live or upcoming.\n")


def find_server(url: str, key: str) -> tuple[str, str]:
    """Returns address and key: the given ones, else those of `make run`, whose key is sent to no other server."""
    path = Path("var/demo.json")
    known = json.loads(path.read_text(encoding="utf-8")) if os.access(path, os.R_OK) else {}
    url = url or known.get("url", "")
    return url, key or (known.get("api_key", "") if url == known.get("url") else "")


def main(arguments: list[str] | None = None) -> None:
    program = argparse.ArgumentParser(prog="victoryline_client", description="Follows matches of a VictoryLine server.")
    parser = program.add_subparsers(required=True).add_parser("follow", help="Shows a match, or lists matches.")
    parser.add_argument("match", nargs="?", default="", help="Id or key, such as crex_13KM; without one: a list.")
    parser.add_argument("--url", default=os.environ.get("VICTORYLINE_URL", ""), help="Or VICTORYLINE_URL.")
    parser.add_argument("--key", default=os.environ.get("VICTORYLINE_API_KEY", ""), help="Or VICTORYLINE_API_KEY.")
    parser.add_argument("--json", action="store_true", help="One JSON object a line, for programs.")
    parser.add_argument("--plain", action="store_true", help="No status line, also on a terminal.")
    parser.add_argument("--past", type=int, default=5, help="Past events to show first (%(default)s).")
    parser.add_argument("--final-wait", type=float, default=60.0, help="Seconds until the last poll after the end.")
    options = program.parse_args(arguments)
    try:
        with Client(*find_server(options.url, options.key)) as client:
            run(client, options, sys.stdout)
    except ValueError as refusal:
        sys.exit(f"{refusal} Set VICTORYLINE_URL and VICTORYLINE_API_KEY, or give --url and --key.")
    except httpx.HTTPError as error:
        sys.exit(clean(error))
