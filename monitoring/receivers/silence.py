"""Each thing that is tried for a silent match, and the end of the silence. The alert is the staleness watchdog's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from monitoring.models import AuditEntry
from monitoring.receivers.listening import listens_to, plain, record_of_match
from scraping import signals
from scraping.policies.ladder import Rung

ACTIONS = {
    Rung.HINT: "silence_hint",
    Rung.SESSION: "silence_session",
    Rung.BROWSER: "silence_browser",
    Rung.OTHER_SOURCE: "silence_other_source",
    Rung.FROZEN: "frozen",
}
_LATE_NOTES = timedelta(seconds=30)  # a silence begins at the last reading, its first rung a little later


@listens_to(signals.silence_climbed)
def note_rung(
    *, now: datetime, match_id: int, rung: int, reason: str, detail: dict[str, Any] | None = None, **_: Any
) -> None:
    record_of_match(
        match_id,
        actor="scheduler",
        action_type=ACTIONS[Rung(rung)],
        trigger_condition=reason,
        metadata={"rung": rung, **plain(detail or {})},
        now=now,
    )


@listens_to(signals.silence_over)
def note_end_of_silence(
    *, now: datetime, match_id: int, rung: int, seconds: float, source_key: str = "", **_: Any
) -> None:
    since = now - timedelta(seconds=seconds) - _LATE_NOTES
    tried = AuditEntry.objects.filter(match_id=match_id, action_type__in=ACTIONS.values(), timestamp__gte=since)
    words = f"heard of again from {source_key}" if source_key else "nobody waits for it any more"
    record_of_match(
        match_id,
        actor="scheduler",
        action_type="silence_over",
        trigger_condition=f"{words}, after {seconds:.0f} s",
        duration_seconds=seconds,
        metadata={
            "rung": rung,
            "source_key": source_key,
            "tried": list(tried.order_by("timestamp", "pk").values_list("action_type", flat=True)),
        },
        now=now,
    )
