"""Queries over the other apps' tables that health, metrics, grade, audit and watchdogs share."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import Error
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Concat

from monitoring.alerts import alert_keys
from monitoring.models import Alert
from scraping.configuration import policies
from scraping.errors import ERROR_RULES, ErrorClass
from scraping.models import (
    Breaker,
    ErrorGroup,
    JobKind,
    Match,
    MatchLifecycle,
    MatchRef,
    ScrapeError,
    Source,
    Worker,
)
from scraping.models.match import MatchQuerySet
from scraping.readings import ReadMode
from scraping.stats import fill_rates, traffic
from scraping.stats.read_stats import Cost
from victoryline.lib import availability, pg_wait


class DatabaseReadError(Exception):
    """The database does not answer; the message is the class of the driver's error."""


@contextmanager
def database_read() -> Iterator[None]:
    """Bounds the reads of its body in time; raises DatabaseReadError if they fail, or at once if that is known already.

    `__cause__` is the driver's error, and None where no query was made.
    """
    if availability.database.is_away():
        raise DatabaseReadError(availability.database.reason())
    try:
        with pg_wait.within(availability.READ_SECONDS):
            yield
    except Error as error:
        availability.database.report(error)
        raise DatabaseReadError(type(error).__name__) from error


def workers_at_work(now: datetime) -> list[Worker]:
    return list(Worker.objects.at_work(now).order_by("started_at"))


def matches_to_watch() -> MatchQuerySet:
    """Returns matches that must be fresh: live, not paused, watched at an enabled source."""
    watched = MatchRef.objects.filter(match=OuterRef("pk"), is_watched=True, source__is_enabled=True)
    return Match.objects.live().filter(
        Exists(watched), lifecycle__in=(MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE)
    )


@dataclass(frozen=True)
class LiveMatch:
    """A match to watch; `age_seconds` since it was last read, or since its discovery if it never was."""

    match_id: int
    key: str  # its public key: reasons are public, and titles are match data
    age_seconds: float

    def __str__(self) -> str:
        return f"{self.key} is {self.age_seconds:.0f} s old"


def live_matches(now: datetime) -> list[LiveMatch]:
    refs = MatchRef.objects.filter(match=OuterRef("pk")).order_by("-source__precedence_weight", "pk")
    key = Subquery(refs.values(key=Concat("source__key", Value("_"), "source_event_id"))[:1])
    rows = matches_to_watch().values_list("pk", key, "last_scraper_update", "created_at")
    return [
        LiveMatch(pk, key, max(0.0, (now - (updated or created)).total_seconds())) for pk, key, updated, created in rows
    ]


def open_alerts(live: Sequence[LiveMatch]) -> QuerySet[Alert]:
    """Returns the open alerts, for every list of alerts.

    Without those of silent matches that were read since or are not watched any more: the watchdog closes these within
    seconds. `live`: the present `live_matches`.
    """
    ages = {match.match_id: match.age_seconds for match in live}
    opened = Alert.objects.filter(closed_at__isnull=True)
    over = [alert.pk for alert in opened.filter(key__startswith=alert_keys.STALE) if _is_over(alert, ages)]
    return opened.exclude(pk__in=over)


def _is_over(alert: Alert, ages: dict[int, float]) -> bool:
    """Returns whether the match of an alert about silence was read since the alert was updated."""
    age = ages.get(alert.detail.get("match_id", 0))
    return age is None or age < alert.detail.get("silent_seconds", 0)


def scraper_errors() -> QuerySet[ScrapeError]:
    """Returns the errors of live matches' scrapers: of their polls, not of jobs and their addresses."""
    return ScrapeError.objects.filter(scraper_id__isnull=False).filter(
        Q(task__isnull=True) | Q(task__job__isnull=True) | Q(task__job__kind=JobKind.WATCH)
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the nearest-rank percentile, a value that really occurred; 0 for no values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * share // 1))
    return float(ordered[int(rank) - 1])


@dataclass
class SourceStats:
    """Calls, traffic, read modes and integrity of a source, from the tables that all workers add to (FS-16)."""

    attempts: int = 0
    successes: int = 0
    # By type and reason; type is "soft" (may pass without a change of ours) or "hard".
    failures: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    cost: Cost = field(default_factory=Cost)
    budget_used_ratio: float | None = None  # None: no budget is set
    integrity_score: float | None = None  # None: no reading in the last hour
    matches_by_read_mode: dict[str, int] = field(default_factory=dict)
    request_mode: str = ""  # learned from refusals; empty: its endpoints are requested directly
    request_mode_reason: str = ""

    @property
    def reads(self) -> dict[str, int]:
        return {
            ReadMode.VISIT.value: self.cost.visits,
            ReadMode.DIRECT.value: self.cost.direct_reads,
            ReadMode.ATTACHED.value: self.cost.attached_reads,
            ReadMode.IN_PAGE.value: self.cost.in_page_reads,
        }


def source_stats(now: datetime) -> dict[str, SourceStats]:
    """Returns stats by source key, sorted by key; six queries for any number of sources."""
    sources = list(Source.objects.order_by("key").values_list("pk", "key", "request_mode", "request_mode_reason"))
    keys = {pk: key for pk, key, _, _ in sources}
    found = {key: SourceStats(request_mode=mode, request_mode_reason=reason) for _, key, mode, reason in sources}
    breakers = Breaker.objects.filter(source__isnull=False)
    for key, calls, successes in breakers.values_list("source__key", "total_calls", "total_successes"):
        found[key].attempts, found[key].successes = calls, successes
    groups = ErrorGroup.objects.order_by().values_list("source__key", "error_class", "error_code")
    for key, error_class, reason, number in groups.annotate(number=Sum("count")):
        kind = "soft" if ERROR_RULES[ErrorClass(error_class)].is_soft else "hard"
        found[key].failures[kind, reason] += number
    for key, cost in traffic.totals().items():
        found[key].cost = cost
    for pk, budget in traffic.budgets(now.astimezone(UTC).date()).items():
        found[keys[pk]].budget_used_ratio = budget.percent / 100
    for pk, fill in fill_rates.integrity_by_source(policies.current().drift, now=now).items():
        found[keys[pk]].integrity_score = fill.percent / 100
    watched = MatchRef.objects.filter(is_watched=True).exclude(read_mode="").order_by()
    for key, mode, number in watched.values_list("source__key", "read_mode").annotate(number=Count("pk")):
        found[key].matches_by_read_mode[mode] = number
    return found
