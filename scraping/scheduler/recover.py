"""Steps that recover from failures: lost workers, failing sources, silent matches, worn scrapers, lack of memory.

What is done in each case is in the packages `journal`, `matches` and `recovery`; these steps find the cases, with the
configuration as it is now.
"""

from __future__ import annotations

import gc
import logging
from datetime import datetime, timedelta

from scraping import journal
from scraping.configuration import policies
from scraping.configuration.policies import Policies
from scraping.matches import lifecycle, poll_times, scrapers, watches
from scraping.models import MatchLifecycle, MatchRef, Scraper, ScrapeTask, Worker
from scraping.payloads import BREAKS, Resource
from scraping.recovery import breakers, ladder, worker_commands
from victoryline.lib import identity
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

QUIET_SECONDS = 30.0  # after a task that cost several workers, before the next poll of its match
RESTARTS_AT_ONCE = 20  # after an outage all scrapers are worn, and polls wait for this step: the rest in 5 seconds
SCRAPERS_NAMED = 20  # in the text of a log line; its fields have all
MAX_ERRORS = 10  # in a row, of a scraper
UNCHANGED_POLLS = 12  # without a change, after which a match counts as quiet
# So long before the end of its life a scraper is replaced as soon as its match is quiet: at stumps rather than in the
# middle of an over. If the match is never quiet, it is replaced when its time is up.
QUIET_WINDOW_SECONDS = 1800.0
QUIET_WINDOW_SHARE = 12  # of a short life, no more than this part


def rescue_expired(now: datetime) -> int:
    """Returns tasks of workers that sent no heartbeat, or are known to have ended, to the journal."""
    limits = policies.current()

    def on_death(task: ScrapeTask) -> None:
        """A match whose tasks kill workers is paused like any other that fails."""
        if task.ref is None:
            return
        if task.resource == Resource.SCORECARD:
            lifecycle.after_failed_attempt(
                task.ref.match_id,
                reason="its workers fell silent",
                is_dead=True,
                pause_after=limits.pause_after_failures,
                pause_seconds=limits.pause_seconds,
                now=now,
            )
        poll_times.postpone(MatchRef.objects.filter(pk=task.ref.pk), until=now + timedelta(seconds=QUIET_SECONDS))

    journal.end_leases([name for name in journal.holders() if identity.is_gone(name)], now=now)
    rescued = journal.rescue(max_rescues=limits.max_rescues, now=now, on_death=on_death)
    if rescued:
        logger.warning("%d tasks taken back from silent workers", rescued, extra={"action": "tasks_rescued"})
    return rescued


def evaluate_source_breakers(now: datetime) -> int:
    """Makes rows for new sources, and opens, probes or closes the breaker of each source by its recent calls."""
    made = breakers.ensure_rows(now=now)
    return made + breakers.evaluate_sources(policies=policies.current(), now=now)


def end_pauses(now: datetime) -> int:
    """Resumes the matches whose pause is over, with the configuration as it is now."""
    ended = lifecycle.end_pauses(now=now)
    if ended:
        policies.reload()
    return ended


def escalate_silent_matches(now: datetime) -> int:
    """Takes the next recovery step for live matches without data; closes commands whose worker is gone."""
    closed = worker_commands.close_untaken(now)
    return closed + ladder.advance(now, staleness_threshold=policies.current().staleness_threshold_seconds)


def start_waiting_watches(now: datetime) -> int:
    """Starts watches that wait for memory if there is some; otherwise makes room for the next attempt.

    Ends idle watches and frees memory of this process; workers end orphaned browsers (`recovery.orphans`).
    """
    if not MatchRef.objects.filter(watch_at__lte=now, is_watched=False).exists():
        return 0
    if not watches.memory_shortage(now):
        return watches.begin_waiting(now=now)
    ended = watches.end_idle(now=now)
    gc.collect()
    again_at = now + timedelta(seconds=watches.ADMISSION_RETRY_SECONDS)
    waiting = watches.put_off_waiting(until=again_at)
    by_scraper = watches.memory_by_scraper(now)
    largest = [f"{key} {megabytes} MB" for key, megabytes in list(by_scraper.items())[:SCRAPERS_NAMED]]
    logger.warning(
        "Too little memory for another watch: %d wait and are tried again at %s UTC; %d idle watches were ended. "
        "Memory by worker: %s. By scraper, %d of %d: %s",
        *(waiting, f"{again_at:%H:%M:%S}", ended, "; ".join(watches.memory_by_worker(now))),
        *(len(largest), len(by_scraper), ", ".join(largest) or "none"),
        extra={
            "action": "watches_put_off",
            "waiting": waiting,
            "idle_ended": ended,
            "memory_mb_by_scraper": by_scraper,
        },
    )
    return 0


def restart_scrapers(now: datetime) -> int:
    """Replaces scrapers that are too old, silent, failing or large by fresh ones; the old in a quiet moment (EC-7).

    Guards against a scraper that has got into a state it cannot leave. A scraper is restarted at most once in the time
    after which silence counts: a fresh start that did not help is not repeated every few seconds.
    """
    scrapers.stop_unread(now=now)
    limits = policies.current()
    active = list(
        Scraper.objects.filter(stopped_at__isnull=True, ref__match__lifecycle=MatchLifecycle.ACTIVE)
        .select_related("ref__match", "ref__source")
        # Payloads are needed for the few that are replaced only.
        .defer("ref__payload", "ref__match__payload", "ref__match__provenance", "ref__source__metadata")
        .order_by("start_time")
    )
    worker_ids = {scraper.ref.key: scraper.worker_id for scraper in active}
    workers = Worker.objects.filter(worker_id__in=set(worker_ids.values()), stopped_at__isnull=True)
    figures = scrapers.resources(workers, worker_ids)
    reasons = {one: restart_reason(one, limits, figures[one.ref.key][0], now) for one in active}
    worn = [scraper for scraper in active if reasons[scraper]]
    if not worn:
        return 0
    policies.reload()  # a fresh scraper starts with the configuration as it is now
    since = now - timedelta(seconds=limits.staleness_threshold_seconds)
    recent = Scraper.objects.filter(ref_id__in=[scraper.ref_id for scraper in worn], stopped_at__gt=since)
    spared = set(recent.values_list("ref_id", flat=True))
    restarted = 0
    for scraper in [one for one in worn if one.ref_id not in spared][:RESTARTS_AT_ONCE]:
        if scrapers.restart(scraper, reason=reasons[scraper], now=now):
            restarted += 1
            logger.warning(
                "The scraper of %s (%s) was replaced: %s; last update %s. The next one goes on from %s",
                scraper.ref.key,
                scraper.ref.url,
                reasons[scraper],
                scraper.last_update_time or "none of its own",
                ", ".join(f"{name} {value}" for name, value in scrapers.position_of(scraper.ref).items()),
                extra={"action": "scraper_restarted", "match_id": scraper.ref.key, "scraper_id": str(scraper.pk)},
            )
    return restarted


def restart_reason(scraper: Scraper, limits: Policies, memory_bytes: float, now: datetime) -> str:
    """Returns why a scraper is replaced by a fresh one now; empty if it is not."""
    lifetime, silent_seconds = limits.max_lifetime_seconds, scraper.staleness_seconds(now)
    left = lifetime - (now - scraper.start_time).total_seconds()
    if left < 0:
        return f"lifetime of {lifetime / 3600:g} h is over"
    if silent_seconds > limits.staleness_threshold_seconds:
        return f"no update for {silent_seconds:.0f} s"
    if scraper.error_count > MAX_ERRORS:
        return f"{scraper.error_count} errors in a row"
    if memory_bytes > (most := limits.memory_soft_limit_bytes):
        return f"{memory_bytes / MEGABYTE:,.0f} MB of memory, more than {most / MEGABYTE:,.0f} MB"
    if left >= min(QUIET_WINDOW_SECONDS, lifetime / QUIET_WINDOW_SHARE):
        return ""
    soon = f"lifetime of {lifetime / 3600:g} h ends soon, and"
    if scraper.ref.match.phase in BREAKS:
        return f"{soon} the match is in a break ({scraper.ref.match.phase})"
    if scraper.ref.unchanged_polls >= UNCHANGED_POLLS:
        return f"{soon} nothing has changed in {scraper.ref.unchanged_polls} polls"
    return ""
