"""What scraping tells the rest of the system. Names are in the past tense; senders wait for nobody's answer.

Arguments: match_updated(match_id, sequence, is_changed, ref: as it was written, with its match), task_failed/task_died
(task_id, match_id, error_class, error_type, reason), task_rescued(task_id, worker_id, is_dead), task_retried(task_id,
actor), match_paused/match_resumed and watch_began/watch_ended/watch_put_off(match_id, reason,
actor), scraper_restarted(match_id, reason, source_key, scraper_id, fresh_id, and where it stood),
scraper_took_over(match_id, reason, problems, sequence, events_through), breaker_opened/
breaker_closed(name, match_id), browser_replaced(worker_id, reason, seconds), orphan_killed(pid, memory_bytes, owner,
dry_run), store_returned(worker_id, seconds, written, dropped), disk_ran_short/disk_recovered(worker_id, free_mb),
errors_resolved(count, actor), layout_lost(match_id, failures, reason), layout_found(match_id), token_lost(source_key,
seconds, reason, worker_id: told again while it lasts), token_found(source_key, worker_id),
source_lost(source_id, failures, reason): its readings make no sense any more, until breaker_closed(source_id),
matches_joined(match_id, gone_id, reason, actor), matches_kept_apart(match_id, other_id, actor).
match_incomplete(match_id, missing): it has ended and something of it cannot be had, until match_settled(match_id).
silence_climbed(match_id, rung: int, rung_name: str, reason: str, detail: dict): a live match is silent, and the next
thing was tried, until silence_over(match_id, rung: int, seconds: float, source_key: str): it was heard of again.
order_done(order_id, worker_id, kind, actor, reason, outcome, has_failed, seconds), importance_set(match_id, importance,
actor).
"""

from __future__ import annotations

from django.dispatch import Signal

match_updated = Signal()
read_mode_changed = Signal()
task_failed = Signal()
task_died = Signal()
task_rescued = Signal()
task_retried = Signal()
match_paused = Signal()
match_resumed = Signal()
watch_began = Signal()
watch_ended = Signal()
watch_put_off = Signal()
scraper_restarted = Signal()
scraper_took_over = Signal()
breaker_opened = Signal()
breaker_half_opened = Signal()
breaker_closed = Signal()
breaker_operated = Signal()
browser_replaced = Signal()
orphan_killed = Signal()
store_returned = Signal()
disk_ran_short = Signal()
disk_recovered = Signal()
errors_resolved = Signal()
token_lost = Signal()
token_found = Signal()
layout_lost = Signal()
layout_found = Signal()
source_lost = Signal()
matches_joined = Signal()
matches_kept_apart = Signal()
match_incomplete = Signal()
match_settled = Signal()
silence_climbed = Signal()
silence_over = Signal()
order_done = Signal()
importance_set = Signal()
