"""Creates one row in every table, with scraped text that contains markup."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from apiauth.models import AccessLog, ApiKey, Consumer, UsageHour
from monitoring.alerts.registry import raise_alert
from monitoring.audit import record
from monitoring.health.log import log_health
from monitoring.models import GradeChange, LogEntry, Severity
from scraping.models import (
    Breaker,
    BulkOperation,
    CommandKind,
    Conflict,
    ErrorGroup,
    Evidence,
    FieldFill,
    JobItem,
    JobKind,
    Lease,
    Lineup,
    LineupPlayer,
    Match,
    MatchArchive,
    MatchRef,
    OutcomeBucket,
    PairingReview,
    PlayerFigure,
    ProxySession,
    ScrapeJob,
    SourceDay,
    Submission,
    TaskState,
    TaskTransition,
    Team,
    TeamAlias,
    UnknownValue,
)
from scraping.recovery import worker_commands
from tests.factories import cricket_state, make_event, make_snapshot, make_source
from tests.monitoring.rows import make_error, make_task, make_watched, make_worker

EVIL = "<script>alert(1)</script>"


def make_everything() -> None:
    now = timezone.now()
    source = make_source(name=EVIL)
    match, ref, _ = make_watched(title=EVIL, state=cricket_state(title=EVIL))
    make_snapshot(match, now=now, delta={"title": EVIL})
    make_event(match, now=now, description=EVIL, detail={"text": EVIL})
    _make_submission(ref, now)
    job = ScrapeJob.objects.create(kind=JobKind.WATCH, name=EVIL, source=source, created_at=now)
    group = ErrorGroup.objects.create(
        fingerprint="f" * 64,
        source=source,
        error_class="drift",
        error_code="layout",
        sample_message=EVIL,
        first_seen_at=now,
        last_seen_at=now,
    )
    task = make_task(ref, state=TaskState.DEAD, job=job, reason=EVIL, error={"message": EVIL})
    JobItem.objects.create(job=job, ref=ref, task=task)
    TaskTransition.objects.create(
        task=task, from_state="EXECUTING", to_state="DEAD", at=now, actor="worker", reason=EVIL
    )
    error = make_error(match, task=task, group=group, error_message=EVIL, stack_trace=EVIL, evidence=EVIL)
    Evidence.objects.create(error=error, kind="page", path=f"evidence/{EVIL}", size_bytes=1, created_at=now)
    Breaker.objects.create(name=f"{ref.key}_scraper", ref=ref, reason=EVIL, last_state_change=now)
    OutcomeBucket.objects.create(source=source, starts_at=now, calls=3, bad=1)
    SourceDay.objects.create(source=source, day=now.date(), bytes_in=5_000_000, requests=30, visits=2)
    FieldFill.objects.create(
        source=source, payload_schema="cricket/v1/play", field="venue", starts_at=now, seen=20, filled=15
    )
    ProxySession.objects.create(
        session_id="0123abcd", source=source, worker_id="w-1", proxy_hash="0123456789ab", geo="de", created_at=now,
        last_used_at=now, ended_at=now, end_reason=EVIL, quarantined_until=now,
    )  # fmt: skip
    _make_disagreement(match, now)
    _make_lineups_and_log(match, now)
    BulkOperation.objects.create(
        table="scraping.match",
        action="pause",
        label=EVIL,
        filter=EVIL,
        actor=EVIL,
        total=1,
        refusals=[EVIL],
        created_at=now,
    )
    make_worker()
    worker_commands.issue(CommandKind.RECYCLE_BROWSER, worker_id="w1", reason=EVIL, actor=EVIL, now=now)
    Lease.objects.create(name="scheduler", holder="engine", expires_at=now)
    log_health(now)
    LogEntry.objects.create(timestamp=now, level="ERROR", event=EVIL, action=EVIL[:60], line={"event": EVIL})
    raise_alert("k", Severity.CRITICAL, EVIL, {"text": EVIL}, now)
    record(actor="Ann", action_type="retry", trigger_condition=EVIL, metadata={"text": EVIL}, now=now)
    GradeChange.objects.create(from_grade="HEALTHY", to_grade="DEGRADED", at=now, reason=EVIL)
    consumer = Consumer.objects.create(name=EVIL, created_at=now)
    ApiKey.objects.create(consumer=consumer, prefix="ab12", secret_hash="s3cr3t" * 8, scopes=["read"], created_at=now)
    AccessLog.objects.create(
        consumer=consumer, timestamp=now, method="GET", endpoint="/x", response_status=200, request_id="r"
    )
    UsageHour.objects.create(consumer=consumer, hour=now, route=EVIL, requests=3, refused=1)


def _make_submission(ref: MatchRef, now: datetime) -> None:
    Submission.objects.create(
        sender="c-1", sender_name=EVIL, idempotency_key=EVIL, body_hash="0" * 64, body={"title": EVIL}, ref=ref,
        state="refused", reason=EVIL, created_at=now,
    )  # fmt: skip


def _make_disagreement(match: Match, now: datetime) -> None:
    """Adds a second source that shows other names, another score and another status."""
    other = make_watched(title=EVIL)[0]
    Team.objects.create(sport="cricket", key="scriptalert1script", name=EVIL, created_at=now)
    TeamAlias.objects.create(sport="cricket", alias=EVIL, name=EVIL, squeezed="scriptalert1script")
    PairingReview.objects.create(match=match, candidate=other, score=0.7, reasons=[EVIL], created_at=now)
    Conflict.objects.create(
        match=match, field=EVIL, chosen_source="crex", chosen_value=EVIL, other_source="espn", other_value=EVIL,
        first_seen_at=now, last_seen_at=now,
    )  # fmt: skip
    UnknownValue.objects.create(
        source=make_source(), payload_schema="crex.v1", path=EVIL, value=EVIL, first_seen_at=now, last_seen_at=now
    )
    others = [{"source": "espn", "value": EVIL, "confidence": 1.0, "timestamp": now.isoformat()}]
    entry = {"source": EVIL, "confidence": 0.7, "timestamp": now.isoformat(), "others": others}
    Match.objects.filter(pk=match.pk).update(provenance={"title": entry})


def _make_lineups_and_log(match: Match, now: datetime) -> None:
    """Adds line-ups, figures and the match log."""
    lineup = Lineup.objects.create(
        match=match, source=make_source(), side="team_a", snapshot_type="post_match", formation=EVIL[:20],
        payload_schema="crex.v1", kickoff=now, captured_at=now, created_at=now,
    )  # fmt: skip
    LineupPlayer.objects.create(lineup=lineup, place=1, player_id_ext="1", name=EVIL, is_starter=True, rating=7.5)
    PlayerFigure.objects.create(
        match=match, source=make_source(), side="team_a", role="batting", player_id_ext="1", name=EVIL,
        values={"how": EVIL}, captured_at=now,
    )  # fmt: skip
    MatchArchive.objects.create(match=match, file=EVIL, size_bytes=9, sha256="0" * 64, created_at=now)
    Match.objects.filter(pk=match.pk).update(final_checks={"result": True, "figures": False, "reads": 1})
