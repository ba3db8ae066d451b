"""What a night keeps in memory: rows of the real models, never saved, and what the database would hold around them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from scraping.models import Match, MatchRef, Scraper, Source
from scraping.payloads import Status
from scraping.policies.breaker import BreakerView
from scraping.policies.fairness import DueMatch
from scraping.policies.ladder import Rung
from scraping.recovery.silent_matches import WATCHED
from victoryline.night.plays import Play
from victoryline.night.tally import Tally

PENDING, EXECUTING, OVER = "PENDING", "EXECUTING", "OVER"
NEVER = -1e9


@dataclass(slots=True, eq=False)
class Task:
    """One unit of work in the journal."""

    number: int
    watch: Watch
    run_at: float
    state: str = PENDING
    attempt: int = 0
    charged: int = 0
    rescues: int = 0
    fence: int = 0
    is_hinted: bool = False
    is_retry: bool = False  # as it was claimed
    worker: int = -1

    @property
    def key(self) -> str:
        return str(self.number)


@dataclass(slots=True, eq=False)
class Worker:
    number: int
    threads: int
    free: int
    life: int = 0  # a new one with every start: what an old one brings counts no more
    is_alive: bool = True
    tasks: dict[int, Task] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Site:
    """A source, with its breaker and its work."""

    row: Source
    number: int
    latency: float
    breaker: BreakerView = field(default_factory=BreakerView)
    breaker_since: float = 0.0
    tally: Tally = field(default_factory=Tally)
    due: list[tuple[float, int, Watch, int]] = field(default_factory=list)  # a heap
    watches: dict[int, Watch] = field(default_factory=dict)
    waiting: dict[int, DueMatch] = field(default_factory=dict)  # due, and without a place so far
    pending: list[Task] = field(default_factory=list)  # open, and not on their way to a worker
    open_tasks: int = 0
    given: int = 0  # places, while there were too few: see fairness
    reading: int = 0  # answers that are awaited just now
    round_at: float | None = None
    is_judged: bool = False  # to be judged at the next second
    polls: int = 0
    retries: int = 0
    openings: int = 0
    peak: int = 0


@dataclass(slots=True, eq=False)
class Watch:
    """A match at a source."""

    number: int  # its ref's key
    ref: MatchRef
    game: Game
    site: Site
    breaker: BreakerView = field(default_factory=BreakerView)
    scraper: Scraper | None = None
    task: Task | None = None
    version: int = 0  # of its place in the heap of due ones
    polls: int = 0
    failed_at: float = NEVER
    errors_in_a_row: int = 0
    seen_version: int = 0  # of the match, the newest that this source has told
    is_spare: bool = False  # watched only while the other source is silent
    session: int = 0  # replaced by the ladder


@dataclass(slots=True, eq=False)
class Game:
    """A match: what is known of it, and what is true."""

    match: Match
    play: Play
    number: int
    watches: list[Watch] = field(default_factory=list)
    rung: Rung = Rung.GROUND
    rung_at: float = 0.0
    silent_since: float = 0.0
    detected_at: float = 0.0  # the first rung of this silence
    was_held_back: bool = False  # by breakers, during this silence
    heard_at: float = 0.0  # when the newest reading was made
    written_at: float = 0.0  # when it was committed
    deaths: deque[float] = field(default_factory=deque)
    errors: deque[float] = field(default_factory=deque)
    stale_play_seconds: float = 0.0
    down_seconds: float = 0.0
    longest_age: float = 0.0
    log: deque[str] = field(default_factory=lambda: deque(maxlen=40))

    @property
    def home(self) -> str:
        """The source that it is read from first."""
        return self.watches[0].site.row.key

    @property
    def is_on_watch(self) -> bool:
        is_watched = any(watch.ref.is_watched for watch in self.watches)
        return self.match.status == Status.LIVE and self.match.lifecycle in WATCHED and is_watched
