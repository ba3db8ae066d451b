"""How many match reads a second the API answers, and how quickly, against a plain Django REST framework API.

Ours with everything: token, limit, access log, freshness, ETag. The baseline (benchmarks/sides/plain_drf) is a
ModelViewSet with simplejwt and DRF's throttle over Redis. Both on the same PostgreSQL and Redis, under the same server
software with the same number of processes and threads, asked by the same caller over the same number of connections,
in turns; who has no turn is frozen. Meanwhile matches change, through journal and ingest. `ratio` is that of the rates;
`cpu_ratio` compares the CPU time of one request, the servers' behind it included, and holds on a busy machine as well.
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
from benchmarks.arena import Ground, ground
from benchmarks.cpu import Cpu, milliseconds_each
from benchmarks.errors import BenchError
from benchmarks.progress import say, wait_until
from benchmarks.sides.caller import Orders
from benchmarks.sides.process import Side
from benchmarks.sides.web import OURS, Web
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

SUMMARY = "match reads a second with token, limit, log and freshness, against plain DRF"
# Nobody is to be turned away: how many requests fit is what is measured.
UNLIMITED = {"RATE_LIMIT_PREMIUM_PER_MINUTE": "1000000", "RATE_LIMIT_TOKENS_PER_MINUTE": "10000"}
PLAIN = "benchmarks.sides.plain_drf"
LOG_SECONDS = 60.0
BUSY_PERCENT = 85.0  # a caller that needs more of a core than this may be what was measured
USUAL_SHARE = 0.9  # matches change meanwhile, so a few of those that were asked for changes have some
PROMISED = ("etag", "x-data-age-seconds", "x-data-freshness", "x-data-state", "x-ratelimit-remaining", "x-request-id")


@dataclass(frozen=True)
class Kind:
    """What is asked in a turn: of whom, which addresses, and with the ETag that was had last or without."""

    name: str
    side: str
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
    caller_percent: float = 0.0
    late_rows: int = 0  # of the access log, not yet written when the turn was over

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
            "caller_cpu_percent": round(self.caller_percent, 1),
        }


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5.0, help="a turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each kind (%(default)s)")
    parser.add_argument("--matches", type=int, default=100, help="live matches (%(default)s)")
    parser.add_argument("--consumers", type=int, default=100, help="who ask by turns (%(default)s)")
    parser.add_argument("--connections", type=int, default=8, help="kept by the caller (%(default)s)")
    parser.add_argument("--changes", type=float, default=5.0, help="readings committed a second (%(default)s)")
    parser.add_argument("--only", nargs="*", default=[], metavar="KIND", help="only these kinds; nothing is saved")


def run(options: Namespace) -> dict[str, Any]:
    say("starting PostgreSQL (durable) and Redis")
    with ground(database="postgresql", settings=UNLIMITED) as stand, ExitStack() as stack:
        return _measured(stand, options, stack)


def _measured(stand: Ground, options: Namespace, stack: ExitStack) -> dict[str, Any]:
    from benchmarks import consumers
    from scraping.models import Match

    say(f"{options.matches} live matches, {options.changes:g} readings of them a second")
    scores = python(
        *("-m", "benchmarks.sides.scores", "--matches", str(options.matches), "--rate", str(options.changes))
    )
    writer = stack.enter_context(Side("scores", scores, env=stand.env, folder=stand.folder))
    kinds = [
        each
        for each in kinds_of(list(Match.objects.values_list("pk", flat=True)))
        if not options.only or each.name in options.only
    ]
    webs = _start(stand, stack)
    tokens = {
        "ours": consumers.fetch_tokens(webs["ours"].address, consumers.make(options.consumers)),
        "baseline": _plain_tokens(stand, options.consumers),
        "bare": [],
    }
    for web in webs.values():
        web.freeze()
    found = {kind.name: Turns() for kind in kinds}
    for number in range(1, options.rounds + 1):
        say(f"round {number} of {options.rounds}, {options.seconds:g} s each")
        for kind in kinds:
            told = _take_turn(webs[kind.side], kind, found[kind.name], options=options, tokens=tokens, stand=stand)
            if kind.side == "ours":
                found[kind.name].late_rows = max(found[kind.name].late_rows, _wait_for_log(kinds, found))
            webs[kind.side].freeze()
            say(f"  {told}")
    changes = writer.ask("how far?")
    webs["ours"].close()  # in good order: the last rows of the access log are written
    problems = [*_wrong(kinds, found), *_unlogged(kinds, found)]
    problems += [] if changes["is_alive"] else ["whoever commits readings has stopped"]
    problems += ["not all kinds were measured"] if options.only else []
    return _result(options, found, changes["readings"], problems)


def kinds_of(ids: list[int]) -> list[Kind]:
    """In the order of their turns."""
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


def _start(stand: Ground, stack: ExitStack) -> dict[str, Web]:
    say("starting our web process, the baseline's and a bare one")
    plain = {**stand.env, "DJANGO_SETTINGS_MODULE": f"{PLAIN}.settings"}
    webs = {
        "ours": Web("ours", OURS, env=stand.env, folder=stand.folder, ready="/health/live"),
        "baseline": Web("baseline", f"{PLAIN}.wsgi:application", env=plain, folder=stand.folder, ready="/matches/"),
        "bare": Web("bare", f"{PLAIN}.bare:application", env=plain, folder=stand.folder, ready="/bare"),
    }
    for web in webs.values():
        stack.enter_context(web)
    return webs


def _plain_tokens(stand: Ground, number: int) -> list[str]:
    env = {**stand.env, "DJANGO_SETTINGS_MODULE": f"{PLAIN}.settings"}
    command = python("-m", f"{PLAIN}.people", str(number))
    done = subprocess.run(command, cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the baseline has no users:\n{done.stderr[-3000:]}")
    tokens: list[str] = json.loads(done.stdout)
    return tokens


def _take_turn(
    web: Web, kind: Kind, turns: Turns, *, options: Namespace, tokens: dict[str, list[str]], stand: Ground
) -> str:
    """What to say of it."""
    orders = Orders(
        *web.address,
        paths=list(kind.paths),
        tokens=tokens[kind.side],
        seconds=options.seconds,
        connections=options.connections,
        is_conditional=kind.is_conditional,
    )
    web.thaw()
    before = web.mark(stand.servers)
    told = _call(orders)
    turns.cpu.append(before.until(web.mark(stand.servers)))
    turns.asked += told["asked"]
    turns.statuses.update(told["statuses"])
    turns.measured.update(told["measured"])
    turns.milliseconds += told["milliseconds"]
    turns.seconds += options.seconds
    turns.rates.append(len(told["milliseconds"]) / options.seconds)
    turns.samples += told["samples"]
    percent = 100 * told["cpu_seconds"] / (options.seconds + orders.warm_seconds)
    turns.caller_percent = max(turns.caller_percent, percent)
    return f"{kind.name}: {turns.rates[-1]:.0f} a second, caller at {percent:.0f} % of a core"


def _call(orders: Orders) -> dict[str, Any]:
    command = python("-m", "benchmarks.sides.caller")
    said = json.dumps(asdict(orders))
    done = subprocess.run(command, cwd=PROJECT_ROOT, input=said, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the caller ended with {done.returncode}:\n{done.stderr[-3000:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _wait_for_log(kinds: list[Kind], found: dict[str, Turns]) -> int:
    """Until every request so far is in the access log, off the measured time; how many were not when it began."""
    from benchmarks import consumers

    asked = _asked_of_us(kinds, found)
    late = asked - consumers.logged()
    wait_until(
        lambda: consumers.logged() >= asked,
        seconds=LOG_SECONDS,
        what="the access log is written:",
        how_far=lambda: f"{consumers.logged()} of {asked}",
    )
    return late


def _asked_of_us(kinds: list[Kind], found: dict[str, Turns]) -> int:
    return sum(found[kind.name].asked for kind in kinds if kind.side == "ours")


def _wrong(kinds: list[Kind], found: dict[str, Turns]) -> list[str]:
    """Answers that are not what the kind is about: then its figures are of something else."""
    problems = []
    for kind in kinds:
        turns = found[kind.name]
        good = turns.statuses[str(kind.usual)] + (turns.statuses["200"] if kind.is_conditional else 0)
        if good < turns.asked:
            others = dict(turns.statuses)
            problems.append(f"{kind.name}: {turns.asked - good} of {turns.asked} answers were others: {others}")
        if turns.measured[str(kind.usual)] < turns.measured.total() * USUAL_SHARE:
            problems.append(f"{kind.name}: too few answers were {kind.usual}: {dict(turns.measured)}")
        if kind.side == "ours":
            problems += _unpromised(kind.name, turns.samples)
        if turns.caller_percent > BUSY_PERCENT:
            problems.append(f"{kind.name}: the caller needed {turns.caller_percent:.0f} % of a core")
    return problems


def _unpromised(name: str, samples: list[dict[str, Any]]) -> list[str]:
    lacking = {header for each in samples for header in PROMISED if header not in each["headers"]}
    return [f"{name}: answers without {', '.join(sorted(lacking))}"] if lacking else []


def _unlogged(kinds: list[Kind], found: dict[str, Turns]) -> list[str]:
    from benchmarks import consumers

    asked = _asked_of_us(kinds, found)
    counts = {"the access log": consumers.logged(), "the sums by the hour": consumers.summed()}
    return [f"{where} knows {number} of {asked} requests" for where, number in counts.items() if number != asked]


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
