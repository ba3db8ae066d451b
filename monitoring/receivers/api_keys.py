"""Receivers of signals about API keys, consumers and signing keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apiauth.signals import consumer_changed, key_issued, key_revoked, key_rotated, signing_key_rotated
from monitoring import audit
from monitoring.receivers.base import json_safe, receives
from victoryline.lib.operators import UNNAMED_OPERATOR

REQUESTED = "requested by an operator"


@receives(key_issued)
def record_issued_key(
    *, now: datetime, prefix: str, consumer: str = "", actor: str = UNNAMED_OPERATOR, **_: Any
) -> None:
    _record("key_issued", prefix, actor, now, {"consumer": consumer})


@receives(key_rotated)
def record_rotated_key(
    *,
    now: datetime,
    prefix: str,
    new_prefix: str,
    until: datetime,
    consumer: str = "",
    actor: str = UNNAMED_OPERATOR,
    **_: Any,
) -> None:
    _record("key_rotated", prefix, actor, now, {"consumer": consumer, "new_prefix": new_prefix, "works_until": until})


@receives(key_revoked)
def record_revoked_key(
    *, now: datetime, prefix: str, consumer: str = "", reason: str = "", actor: str = UNNAMED_OPERATOR, **_: Any
) -> None:
    _record("key_revoked", prefix, actor, now, {"consumer": consumer} if consumer else {}, reason=reason)


@receives(consumer_changed)
def record_changed_consumer(
    *, now: datetime, consumer: str, changes: Mapping[str, Any], actor: str = UNNAMED_OPERATOR, **_: Any
) -> None:
    _record("consumer_changed", consumer, actor, now, changes)


@receives(signing_key_rotated)
def record_rotated_signing_key(
    *, now: datetime, kid: str, old_kid: str, until: datetime, actor: str = UNNAMED_OPERATOR, **_: Any
) -> None:
    _record("signing_key_rotated", kid, actor, now, {"old_kid": old_kid, "old_verifies_until": until})


def _record(
    action: str, target: str, actor: str, now: datetime, metadata: Mapping[str, Any], *, reason: str = ""
) -> None:
    audit.record(
        actor=actor,
        action_type=action,
        trigger_condition=reason or REQUESTED,
        target=target,
        metadata=json_safe(dict(metadata)),
        now=now,
    )
