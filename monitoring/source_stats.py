"""Stats of each source from the tables that all workers add to: calls, traffic, read modes, integrity (FS-16).

Read by /status and /metrics; six queries, whatever the number of sources.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import Count, Sum

from scraping.configuration import policies
from scraping.errors import ERROR_RULES, ErrorClass
from scraping.models import Breaker, ErrorGroup, MatchRef, Source
from scraping.readings import ReadMode
from scraping.stats import fill_rates, traffic
from scraping.stats.read_stats import Cost


@dataclass
class SourceStats:
    attempts: int = 0
    successes: int = 0
    # By type and reason; type is "soft" (may pass without a change of ours) or "hard".
    failures: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    cost: Cost = field(default_factory=Cost)
    budget_used_ratio: float | None = None  # None: no budget is set
    integrity_score: float | None = None  # None: no reading in the last hour
    matches_by_read_mode: dict[str, int] = field(default_factory=dict)

    @property
    def reads(self) -> dict[str, int]:
        return {
            ReadMode.VISIT.value: self.cost.visits,
            ReadMode.DIRECT.value: self.cost.direct_reads,
            ReadMode.ATTACHED.value: self.cost.attached_reads,
        }


def source_stats(now: datetime) -> dict[str, SourceStats]:
    """Returns stats by source key, sorted by key."""
    keys = dict(Source.objects.order_by("key").values_list("pk", "key"))
    found = {key: SourceStats() for key in keys.values()}
    breakers = Breaker.objects.filter(source__isnull=False)
    for key, calls, successes in breakers.values_list("source__key", "total_calls", "total_successes"):
        found[key].attempts, found[key].successes = calls, successes
    groups = ErrorGroup.objects.order_by().values_list("source__key", "error_class", "error_type")
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
