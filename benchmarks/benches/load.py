"""What consumers get while many matches are live: 100 requests a second, for minutes, beside scheduler and worker.

The questions come at a fixed rate, whether the last ones are answered or not, and their time runs from the moment they
were due: 70 % match reads, half of them with the ETag that was had last, 15 % lists, 10 % events and deltas, the rest
usage, /health and /status. Beside it /health is asked once a second over fresh connections, and for every new state of
a match the time from its commit to the first answer that has it is taken (`lag`).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks import results
from benchmarks.arena import Arena, arena
from benchmarks.benches.api import UNLIMITED
from benchmarks.benches.live import WARM_UP_SECONDS_A_MATCH, steady
from benchmarks.errors import BenchError
from benchmarks.progress import let_run, say, wait_until
from benchmarks.sides import crowd, sight
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

if TYPE_CHECKING:
    from benchmarks.stretch import Stretch

SUMMARY = "latency, errors and age of the API at 100 requests a second while matches are live"
HEALTH_EVERY_SECONDS = 1.0
SETTLING_SECONDS = 10.0  # first visits leave work behind: holes in the events, line-ups
END_SECONDS = 60.0
LOG_SECONDS = 30.0
LATE_MS = 10.0  # who asks later than this may be measuring how busy the machine is with something else


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (%(default)s)")
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second (%(default)s)")
    parser.add_argument("--matches", type=int, default=100, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--consumers", type=int, default=20, help="who ask by turns (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="how fast the matches move; 1 is life (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(
            arena(
                database="postgresql",
                programme=f"load:{options.matches}",
                pace=options.pace,
                settings=steady(options.interval) | UNLIMITED,
                has_commit_times=True,
            )
        )
        return _measured(place, options, stack)


@dataclass(frozen=True)
class Told:
    """What those who asked have to tell."""

    crowd: dict[str, Any]
    sight: dict[str, Any]
    health: dict[str, Any]


def _measured(place: Arena, options: Namespace, stack: contextlib.ExitStack) -> dict[str, Any]:
    from benchmarks import consumers, stretch, watch
    from scraping.models import Match

    watch.set_up_source(max_open_tasks=options.matches)
    watch.add_matches(place, up_to=options.matches)
    place.start_engine(workers=options.workers)
    url = place.start_web()
    patience = 60 + WARM_UP_SECONDS_A_MATCH * options.matches
    watch.wait_for_first_readings(place, matches=options.matches, seconds=patience)
    parts = urlsplit(url)
    address = parts.hostname or "127.0.0.1", parts.port or 0
    tokens = consumers.fetch_tokens(address, consumers.make(options.consumers))
    watcher = consumers.fetch_tokens(address, consumers.make(1, prefix="sight-"))[0]
    ids = list(Match.objects.values_list("pk", flat=True))
    seconds = options.minutes * 60
    first = _end("prober", _start_prober(place, f"{url}/health", 0.0))  # finds nothing prepared and pays for it
    let_run(SETTLING_SECONDS, what="settling", how_far=lambda: "", do=place.check)
    say(f"asking {options.rate:g} times a second")
    asking = {
        "crowd": _start(place, crowd.__name__, crowd.Orders(*address, ids, tokens, options.rate, seconds)),
        "sight": _start(place, sight.__name__, sight.Orders(*address, watcher, seconds)),
        "health": _start_prober(place, f"{url}/health", seconds),
    }
    for process in asking.values():
        stack.callback(process.kill)  # does nothing to one that has ended
    meanwhile = stretch.measure(place, matches=options.matches, seconds=seconds)
    told = Told(**{name: _end(name, process) for name, process in asking.items()})
    found = _result(options, meanwhile, told, unlogged=_unlogged(told.crowd["logged"]))
    return found | {"health_first_ms": round(max(first["milliseconds"], default=0.0), 1)}


def _start(place: Arena, module: str, orders: crowd.Orders | sight.Orders) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        python("-m", module), cwd=PROJECT_ROOT, env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(orders)).encode())
    process.stdin.close()
    process.stdin = None  # or communicate() would write to it
    return process


def _start_prober(place: Arena, url: str, seconds: float) -> subprocess.Popen[bytes]:
    times = max(1, int(seconds / HEALTH_EVERY_SECONDS))
    command = python(
        *("-m", "benchmarks.sides.prober", url, "--every", str(HEALTH_EVERY_SECONDS), "--times", str(times))
    )
    return subprocess.Popen(command, cwd=PROJECT_ROOT, env=place.env, stdout=subprocess.PIPE)


def _end(name: str, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    try:
        said, _ = process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise BenchError(f"{name} did not come to an end") from None
    if process.returncode:
        raise BenchError(f"{name} ended with {process.returncode}")
    told: dict[str, Any] = json.loads(said)
    return told


def _unlogged(asked: int) -> list[str]:
    """Every answer is in the access log, a moment later."""
    from benchmarks import consumers

    with contextlib.suppress(BenchError):
        wait_until(lambda: consumers.logged() >= asked, seconds=LOG_SECONDS, what="the access log is written")
    known = consumers.logged()
    return [] if known == asked else [f"the access log knows {known} of {asked} requests"]


def _result(options: Namespace, meanwhile: Stretch, told: Told, *, unlogged: list[str]) -> dict[str, Any]:
    by_kind: dict[str, list[float]] = told.crowd["milliseconds"]
    every = [value for values in by_kind.values() for value in values]
    live = meanwhile.figures()
    health = told.health
    return {
        **_percentiles("", every),
        "max_ms": round(max(every, default=0.0), 1),
        "errors": told.crowd["error_count"],
        "requests": len(every),
        "statuses": told.crowd["statuses"],
        "matches": options.matches,
        **_percentiles("lag_", told.sight["lags_ms"]),
        "lag_max_ms": round(max(told.sight["lags_ms"], default=0.0), 1),
        "changes": len(told.sight["lags_ms"]),
        **_percentiles("health_", health["milliseconds"]),
        "health_max_ms": round(max(health["milliseconds"], default=0.0), 1),
        "served_age_s": {f"p{each}": results.percentile(told.crowd["ages"], each) for each in (50, 95, 99)},
        "kinds": {
            kind: {"requests": len(values), **_percentiles("", values)} for kind, values in sorted(by_kind.items())
        },
        "crowd_late_p95_ms": round(results.percentile(told.crowd["late_ms"], 95), 2),
        "live": {
            name: live[name]
            for name in ("age_p50_s", "age_p99_s", "polls_a_second", "commit_ms", "cpu_percent_by_part")
        },
        "minutes": options.minutes,
        "rate": options.rate,
        "consumers": options.consumers,
        "workers": options.workers,
        "pace": options.pace,
        "problems": [*_problems(told), *unlogged, *meanwhile.problems()],
    }


def _percentiles(prefix: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{prefix}p{each}_ms": round(results.percentile(values, each), 2) for each in (50, 95, 99)}


def _problems(told: Told) -> list[str]:
    found = [f"{told.crowd['error_count']} errors, the first: {one}" for one in told.crowd["errors"][:1]]
    found += [f"never served: {', '.join(told.sight['never'][:5])}"] if told.sight["never"] else []
    found += [] if told.sight["lags_ms"] else ["no match has changed"]
    late = results.percentile(told.crowd["late_ms"], 95)
    found += (
        [f"the machine was too busy: questions were asked up to {late:.0f} ms late (p95)"] if late > LATE_MS else []
    )
    codes = {code: number for code, number in told.health["codes"].items() if code != "200"}
    return found + [f"/health: {number} answers of {code}" for code, number in codes.items()]
