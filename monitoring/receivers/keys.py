"""Keys of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apiauth.signals import key_issued, key_revoked
from monitoring import audit
from monitoring.receivers.listening import listens_to


@listens_to(key_issued)
def note_issued_key(*, now: datetime, prefix: str, consumer: str = "", actor: str = "operator", **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="key_issued",
        trigger_condition="asked for by a person",
        target=prefix,
        metadata={"consumer": consumer},
        now=now,
    )


@listens_to(key_revoked)
def note_revoked_key(*, now: datetime, prefix: str, actor: str = "operator", **_: Any) -> None:
    audit.record(
        actor=actor, action_type="key_revoked", trigger_condition="asked for by a person", target=prefix, now=now
    )
