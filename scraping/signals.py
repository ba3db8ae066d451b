"""The signals of scraping: how the other apps learn of events without being imported.

All are sent with `send_robust`, after the change is written: a receiver that fails does not disturb the sender. Above
each signal: when it is sent, and its arguments. Many also carry `now`, the time of the event. Every signal has a
receiver (`monitoring.audit_receivers` and `alert_receivers`, `scraping.documents`, `scraping.stats.read_stats`); delete
it with its last one.
"""

from __future__ import annotations

from django.dispatch import Signal

# Matches

# A reading or a merge was committed: match_id, sequence, is_changed, ref (as written; None for a merge).
match_updated = Signal()
# A match is read in another way than before: ref_id, source, from, to, reason.
read_mode_changed = Signal()
# Polling of a match stopped until a time, by a person or after failures: match_id, reason, actor.
match_paused = Signal()
# Polling of a paused match began again: match_id, reason, actor.
match_resumed = Signal()
# A match is polled from now on: match_id, reason, actor.
watch_began = Signal()
# A match is polled no longer: match_id, reason, actor.
watch_ended = Signal()
# A person requested a reading at once: match_id, reason, actor.
read_requested = Signal()
# A watch was requested and waits for memory: match_id, reason, actor.
watch_put_off = Signal()
# A match has ended and something of it cannot be read: match_id, missing (list of names).
match_incomplete = Signal()
# A match that had ended incomplete is complete now: match_id.
match_settled = Signal()
# Two matches became one: match_id (the one that stays), gone_id, reason, actor.
matches_joined = Signal()
# A person decided that two matches are not the same: match_id, other_id, actor.
matches_kept_apart = Signal()
# A person deleted a second name of a team: alias, name, sport, reason, actor.
team_alias_deleted = Signal()
# A person set or freed the importance of a match: match_id, importance, actor, is_fixed.
importance_set = Signal()
# A live match has no new data and the next recovery step was taken: match_id, rung, rung_name, reason, detail.
silence_climbed = Signal()
# A silent match has data again, or is not watched any more: match_id, rung, seconds, source_key.
silence_over = Signal()

# Tasks and errors

# A task ended as DEAD: task_id, match_id, error_class, error_type, reason.
task_died = Signal()
# A person retried, discarded or cancelled tasks, or their work was done since: task_ids, to, actor, reason.
tasks_moved = Signal()
# A group of errors was resolved, assigned, muted or reopened: group, action, reason, actor.
group_changed = Signal()
# An action on many rows began or ended: event, target, operation_id, applied, refused, reason, actor.
operation_changed = Signal()
# A person marked errors as resolved: count, actor.
errors_resolved = Signal()
# A match could not be parsed too many times in a row: match_id, failures, reason.
layout_lost = Signal()
# A match whose layout was lost was parsed again: match_id.
layout_found = Signal()
# No match of a source could be parsed for long, until its breaker closes: source_id, failures, reason.
source_lost = Signal()
# A source cannot be read for want of a token; sent again while it lasts: source_key, seconds, reason, worker_id.
token_lost = Signal()
# A source has a token again: source_key, worker_id.
token_found = Signal()

# Sources

# A person replaced settings of a source until a time: source_key, values, until, reason, actor.
source_overridden = Signal()
# An operator has saved other values of a source: source_key, actor, and the new values by column.
source_changed = Signal()
# An override has ended, by its time or by a person: source_key, setting, reason, actor.
source_override_ended = Signal()
# A person enabled or disabled a source: source_key, is_enabled, reason, actor.
source_switched = Signal()

# Scrapers, breakers, workers

# A scraper was replaced by a fresh one: match_id, reason, source_key, scraper_id, fresh_id, and the position of the
# reading (sequence, score, innings, events_through, last_event).
scraper_restarted = Signal()
# The first reading of a fresh scraper was compared with the last known state: match_id, reason, problems, sequence,
# events_through.
scraper_took_over = Signal()
# A breaker opened: name, match_id, source_id, reason, actor.
breaker_opened = Signal()
# A breaker lets probes through: name, match_id, source_id, reason, actor.
breaker_half_opened = Signal()
# A breaker closed: name, match_id, source_id, reason, actor.
breaker_closed = Signal()
# A person opened, closed, reset or probed a breaker: name, action, until, reason, actor.
breaker_operated = Signal()
# A worker started a new browser in place of one: worker_id, reason, seconds, cause, pids_before, pids_after,
# browser_uptime_hours, task_count.
browser_replaced = Signal()
# A browser without a worker was ended, or would be in a dry run: pid, memory_bytes, owner, dry_run, reason.
orphan_killed = Signal()
# The database is reachable again and a worker has written its spool: worker_id, seconds, written, dropped.
store_returned = Signal()
# The disk of a worker is nearly full: worker_id, free_mb.
disk_ran_short = Signal()
# The disk of a worker has room again: worker_id, free_mb.
disk_recovered = Signal()
# A worker carried out a command, or it was closed: command_id, worker_id, kind, actor, reason, outcome, has_failed,
# seconds, and of a replaced browser pids_before, pids_after, browser_uptime_hours, task_count.
command_done = Signal()
