"""Match reads per second and their latency, compared with a plain Django REST framework API.

Ours has token, limit, access log, freshness and ETag. The baseline (benchmarks/programs/plain_drf) is a ModelViewSet
with simplejwt and DRF's throttle over Redis. Both use the same PostgreSQL and Redis, the same server software with the
same number of processes and threads, and the same client with the same number of connections, in turns; the other
servers are stopped. Meanwhile matches change, through journal and ingest. `ratio` compares the rates; `cpu_ratio`
compares the CPU time of one request, the servers included, and is also valid on a busy machine.
"""

from __future__ import annotations

import json
import subprocess
from argparse import ArgumentParser, Namespace
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from benchmarks import results
from benchmarks.cpu import Cpu, milliseconds_each
from benchmarks.environment import BenchServers, bench_servers
from benchmarks.errors import BenchError
from benchmarks.programs.bench_process import BenchProcess
from benchmarks.programs.closed_loop_client import RequestPlan
from benchmarks.programs.web_server import OURS, WebServer
from benchmarks.progress import say, wait_until
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

SUMMARY = "match reads a second with token, limit, log and freshness, against plain DRF"
# No request is refused: the highest rate is measured.
UNLIMITED = {"RATE_LIMIT_PREMIUM_PER_MINUTE": "1000000", "RATE_LIMIT_TOKENS_PER_MINUTE": "10000"}
PLAIN = "benchmarks.programs.plain_drf"
LOG_SECONDS = 60.0
BUSY_PERCENT = 85.0  # above this share of a core the client may limit the rate
USUAL_SHARE = 0.9  # matches change meanwhile, so a few conditional requests return 200
EXPECTED_HEADERS = (
    "etag",
    "x-data-age-seconds",
    "x-data-freshness",
    "x-data-state",
    "x-ratelimit-remaining",
    "x-request-id",
)


@dataclass(frozen=True)
class Kind:
    """The requests of a turn: server, addresses, and whether the last ETag is sent."""

    name: str
    server: str
    paths: tuple[str, ...]
    is_conditional: bool = False
    usual: int = 200


@dataclass
class Turns:
    """All turns of one kind."""

    seconds: float = 0.0
    asked: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    measured: Counter[str] = field(default_factory=Counter)  # the statuses without those of the warm-up
    milliseconds: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu: list[Cpu] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    client_percent: float = 0.0
    late_rows: int = 0  # access-log rows not yet written at the end of the turn

    @property
    def rate(self) -> float:
        return len(self.milliseconds) / self.seconds if self.seconds else 0.0

    def figures(self) -> dict[str, Any]:
        return {
            "a_second": round(self.rate, 1),
            **{f"p{each}_ms": round(results.percentile(self.milliseconds, each), 2) for each in (50, 95, 99)},
            "round_rates": [round(each, 1) for each in self.rates],
            "answers": self.measured,
            "cpu_ms_each": milliseconds_each(self.cpu, self.asked),
            "caller_cpu_percent": round(self.client_percent, 1),
        }


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5.0, help="a turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each kind (%(default)s)")
    parser.add_argument("--matches", type=int, default=100, help="live matches (%(default)s)")
    parser.add_argument("--consumers", type=int, default=100, help="consumers, used in rotation (%(default)s)")
    parser.add_argument("--connections", type=int, default=8, help="connections of the client (%(default)s)")
    parser.add_argument("--changes", type=float, default=5.0, help="readings committed a second (%(default)s)")
    parser.add_argument("--only", nargs="*", default=[], metavar="KIND", help="only these kinds; nothing is saved")


def run(options: Namespace) -> dict[str, Any]:
    say("starting PostgreSQL (durable) and Redis")
    with bench_servers(database="postgresql", settings=UNLIMITED) as servers, ExitStack() as stack:
        return _measured(servers, options, stack)


def _measured(servers: BenchServers, options: Namespace, stack: ExitStack) -> dict[str, Any]:
    from benchmarks import consumers
    from scraping.models import Match

    say(f"{options.matches} live matches, {options.changes:g} readings of them a second")
    scores = python(
        *("-m", "benchmarks.programs.score_writer", "--matches", str(options.matches), "--rate", str(options.changes))
    )
    writer = stack.enter_context(BenchProcess("scores", scores, env=servers.env, folder=servers.folder))
    kinds = [
        each
        for each in kinds_of(list(Match.objects.values_list("pk", flat=True)))
        if not options.only or each.name in options.only
    ]
    webs = _start(servers, stack)
    tokens = {
        "ours": consumers.fetch_tokens(webs["ours"].address, consumers.make(options.consumers)),
        "baseline": _plain_tokens(servers, options.consumers),
        "bare": [],
    }
    for web in webs.values():
        web.freeze()
    found = {kind.name: Turns() for kind in kinds}
    for number in range(1, options.rounds + 1):
        say(f"round {number} of {options.rounds}, {options.seconds:g} s each")
        for kind in kinds:
            output = _take_turn(
                webs[kind.server], kind, found[kind.name], options=options, tokens=tokens, servers=servers
            )
            if kind.server == "ours":
                found[kind.name].late_rows = max(found[kind.name].late_rows, _wait_for_log(kinds, found))
            webs[kind.server].freeze()
            say(f"  {output}")
    changes = writer.request("count")
    webs["ours"].close()  # gracefully: the last rows of the access log are written
    problems = [*_unexpected(kinds, found), *_unlogged(kinds, found)]
    problems += [] if changes["is_alive"] else ["the process that commits readings has stopped"]
    problems += ["not all kinds were measured"] if options.only else []
    return _result(options, found, changes["readings"], problems)


def kinds_of(ids: list[int]) -> list[Kind]:
    """Returns the kinds in the order of their turns."""
    ours = tuple(f"/api/v1/matches/{each}" for each in ids)
    plain = tuple(f"/matches/{each}/" for each in ids)
    return [
        Kind("ours", "ours", ours),
        Kind("baseline", "baseline", plain),
        Kind("not_modified", "ours", ours, is_conditional=True, usual=304),
        Kind("bare", "bare", ("/bare",)),
        Kind("list", "ours", ("/api/v1/matches?limit=50",)),
        Kind("baseline_list", "baseline", ("/matches/",)),
    ]


def _start(servers: BenchServers, stack: ExitStack) -> dict[str, WebServer]:
    say("starting our web process, the baseline's and a bare one")
    plain = {**servers.env, "DJANGO_SETTINGS_MODULE": f"{PLAIN}.settings"}
    webs = {
        "ours": WebServer("ours", OURS, env=servers.env, folder=servers.folder, ready="/health/live"),
        "baseline": WebServer(
            "baseline", f"{PLAIN}.wsgi:application", env=plain, folder=servers.folder, ready="/matches/"
        ),
        "bare": WebServer("bare", f"{PLAIN}.bare:application", env=plain, folder=servers.folder, ready="/bare"),
    }
    for web in webs.values():
        stack.enter_context(web)
    return webs


def _plain_tokens(servers: BenchServers, number: int) -> list[str]:
    env = {**servers.env, "DJANGO_SETTINGS_MODULE": f"{PLAIN}.settings"}
    command = python("-m", f"{PLAIN}.users", str(number))
    done = subprocess.run(command, cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the baseline has no users:\n{done.stderr[-3000:]}")
    tokens: list[str] = json.loads(done.stdout)
    return tokens


def _take_turn(
    web: WebServer, kind: Kind, turns: Turns, *, options: Namespace, tokens: dict[str, list[str]], servers: BenchServers
) -> str:
    """Runs one turn and returns its summary for the progress output."""
    plan = RequestPlan(
        *web.address,
        paths=list(kind.paths),
        tokens=tokens[kind.server],
        seconds=options.seconds,
        connections=options.connections,
        is_conditional=kind.is_conditional,
    )
    web.thaw()
    before = web.cpu_times(servers.pids)
    output = _call(plan)
    turns.cpu.append(before.until(web.cpu_times(servers.pids)))
    turns.asked += output["asked"]
    turns.statuses.update(output["statuses"])
    turns.measured.update(output["measured"])
    turns.milliseconds += output["milliseconds"]
    turns.seconds += options.seconds
    turns.rates.append(len(output["milliseconds"]) / options.seconds)
    turns.samples += output["samples"]
    percent = 100 * output["cpu_seconds"] / (options.seconds + plan.warm_seconds)
    turns.client_percent = max(turns.client_percent, percent)
    return f"{kind.name}: {turns.rates[-1]:.0f} a second, client at {percent:.0f} % of a core"


def _call(plan: RequestPlan) -> dict[str, Any]:
    command = python("-m", "benchmarks.programs.closed_loop_client")
    text = json.dumps(asdict(plan))
    done = subprocess.run(command, cwd=PROJECT_ROOT, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the client ended with {done.returncode}:\n{done.stderr[-3000:]}")
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def _wait_for_log(kinds: list[Kind], found: dict[str, Turns]) -> int:
    """Waits until every request is in the access log; returns the number of rows that were late."""
    from benchmarks import consumers

    asked = _requests_to_ours(kinds, found)
    late = asked - consumers.logged()
    wait_until(
        lambda: consumers.logged() >= asked,
        seconds=LOG_SECONDS,
        what="waiting for the access log:",
        progress=lambda: f"{consumers.logged()} of {asked}",
    )
    return late


def _requests_to_ours(kinds: list[Kind], found: dict[str, Turns]) -> int:
    return sum(found[kind.name].asked for kind in kinds if kind.server == "ours")


def _unexpected(kinds: list[Kind], found: dict[str, Turns]) -> list[str]:
    """Returns unexpected responses, which would make the figures meaningless."""
    problems = []
    for kind in kinds:
        turns = found[kind.name]
        good = turns.statuses[str(kind.usual)] + (turns.statuses["200"] if kind.is_conditional else 0)
        if good < turns.asked:
            others = dict(turns.statuses)
            problems.append(f"{kind.name}: {turns.asked - good} of {turns.asked} responses were unexpected: {others}")
        if turns.measured[str(kind.usual)] < turns.measured.total() * USUAL_SHARE:
            problems.append(f"{kind.name}: too few responses were {kind.usual}: {dict(turns.measured)}")
        if kind.server == "ours":
            problems += _missing_headers(kind.name, turns.samples)
        if turns.client_percent > BUSY_PERCENT:
            problems.append(f"{kind.name}: the client needed {turns.client_percent:.0f} % of a core")
    return problems


def _missing_headers(name: str, samples: list[dict[str, Any]]) -> list[str]:
    lacking = {header for each in samples for header in EXPECTED_HEADERS if header not in each["headers"]}
    return [f"{name}: responses without {', '.join(sorted(lacking))}"] if lacking else []


def _unlogged(kinds: list[Kind], found: dict[str, Turns]) -> list[str]:
    from benchmarks import consumers

    asked = _requests_to_ours(kinds, found)
    counts = {"the access log": consumers.logged(), "the hourly sums": consumers.summed()}
    return [f"{where} has {number} of {asked} requests" for where, number in counts.items() if number != asked]


def _result(options: Namespace, found: dict[str, Turns], changes: int, problems: list[str]) -> dict[str, Any]:
    figures = {name: turns.figures() for name, turns in found.items()}
    rate = {name: each["a_second"] for name, each in figures.items()}
    ours, baseline = figures.get("ours", {}), figures.get("baseline", {})
    return {
        "ours": rate.get("ours"),
        "baseline": rate.get("baseline"),
        "ratio": _ratio(rate.get("ours"), rate.get("baseline")),
        **{name: ours.get(name) for name in ("p50_ms", "p95_ms", "p99_ms")},
        **{f"baseline_{name}": baseline.get(name) for name in ("p50_ms", "p95_ms", "p99_ms")},
        "not_modified": rate.get("not_modified"),
        "list": rate.get("list"),
        "baseline_list": rate.get("baseline_list"),
        "list_ratio": _ratio(rate.get("list"), rate.get("baseline_list")),
        "bare": rate.get("bare"),
        "unit": "requests a second",
        "round_ratios": [
            _ratio(*pair) for pair in zip(ours.get("round_rates", []), baseline.get("round_rates", []), strict=False)
        ],
        "cpu_ratio": _ratio(_cpu_each(baseline), _cpu_each(ours)),
        "kinds": figures,
        "log_rows_late": max((turns.late_rows for turns in found.values()), default=0),
        "readings_meanwhile": changes,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "matches": options.matches,
        "consumers": options.consumers,
        "connections": options.connections,
        "versions": {
            name: version(name)
            for name in ("django", "djangorestframework", "djangorestframework-simplejwt", "granian")
        },
        "problems": problems,
    }


def _cpu_each(figures: dict[str, Any]) -> float | None:
    return figures["cpu_ms_each"]["all"] if figures else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 2) if one and other else None
