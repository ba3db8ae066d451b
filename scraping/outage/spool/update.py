"""Records of the spool: readings that wait for the database, and the matches that are polled meanwhile."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from scraping.payloads import Payload
from scraping.readings import Site


@dataclass(frozen=True)
class HeldMatch:
    """The facts about a match that polling it without a database needs."""

    ref_id: int
    key: str
    sport: str
    site: Site
    source_event_id: str
    url: str
    min_interval_seconds: float


@dataclass(frozen=True)
class Update:
    """A reading that the database could not accept. Its id makes replaying idempotent."""

    update_id: uuid.UUID
    ref_id: int
    key: str
    worker_id: str
    is_critical: bool
    payload: Payload


def encode(record: Update | HeldMatch) -> bytes:
    if isinstance(record, HeldMatch):
        return orjson.dumps({"held": asdict(record)})
    return orjson.dumps(
        {
            "id": str(record.update_id),
            "ref_id": record.ref_id,
            "key": record.key,
            "worker_id": record.worker_id,
            "is_critical": record.is_critical,
            "payload": record.payload.model_dump(mode="json"),
        }
    )


def encode_drop(update_id: uuid.UUID) -> bytes:
    return orjson.dumps({"dropped": str(update_id)})


def _site(values: dict[str, Any]) -> Site:
    selectors = {name: tuple(found) for name, found in values["selectors"].items()}
    return Site(**{**values, "api_hosts": tuple(values["api_hosts"]), "selectors": selectors})


def decode(line: bytes) -> Update | HeldMatch | uuid.UUID:
    """Returns the record of a line; a bare id means that this update was dropped. Raises ValueError otherwise."""
    try:
        values: dict[str, Any] = orjson.loads(line)
        if "dropped" in values:
            return uuid.UUID(values["dropped"])
        if "held" in values:
            return HeldMatch(**{**values["held"], "site": _site(values["held"]["site"])})
        return Update(
            update_id=uuid.UUID(values["id"]),
            ref_id=values["ref_id"],
            key=values["key"],
            worker_id=values["worker_id"],
            is_critical=values["is_critical"],
            payload=Payload.model_validate(values["payload"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record of the spool: {error!r}") from error
