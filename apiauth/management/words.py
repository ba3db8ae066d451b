"""What the commands about keys share: their arguments, and how a key is printed."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import ProgrammingError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apiauth.errors import RefusedError
from apiauth.keys import IssuedKey, state_of
from apiauth.models import ApiKey
from victoryline.lib.operators import name_of
from victoryline.lib.store import STORE_AWAY, first_line
from victoryline.lib.times import as_utc_iso

MOST_DAYS = 3650
NO_TABLES = (
    "The database has not the tables that this needs ({}). Nothing was changed. Is it the right one (DATABASE_URL, "
    "VAR_DIR)? If so: manage.py migrate makes them; `make run` does that by itself."
)


def add_actor(parser: ArgumentParser) -> None:
    parser.add_argument("--by", default="", help="Who decides; written into the audit. Default: the login name.")


def actor_of(options: dict[str, Any]) -> str:
    return name_of(options["by"])


@contextmanager
def refusals_told() -> Iterator[None]:
    """What can't be done ends the command with the reason and status 1; nothing was changed then."""
    try:
        yield
    except RefusedError as refusal:
        raise CommandError(str(refusal)) from refusal
    except ProgrammingError as error:
        raise CommandError(NO_TABLES.format(first_line(error))) from error
    except STORE_AWAY as error:
        if "no such table" in str(error):  # what PostgreSQL calls a mistake in the program, SQLite calls operational
            raise CommandError(NO_TABLES.format(first_line(error))) from error
        raise CommandError(
            f"The database can't be reached ({first_line(error)}). Nothing was changed; try again when it is back."
        ) from error


def expiry_of(options: dict[str, Any], now: datetime) -> datetime | None:
    days, text = options["expires_in_days"], options["expires_at"]
    if days is not None:
        if not 1 <= days <= MOST_DAYS:
            raise CommandError(f"--expires-in-days is {days}; it must be from 1 to {MOST_DAYS}")
        return now + timedelta(days=days)
    if text is None:
        return None
    try:
        moment = parse_datetime(text) or parse_datetime(f"{text}T00:00:00")
    except ValueError:
        moment = None
    if moment is None:
        raise CommandError(f"--expires-at is {text!r}; it must be a time such as 2027-01-31 or 2027-01-31T18:00:00Z")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def as_document(key: ApiKey) -> dict[str, Any]:
    """A key as JSON shows it: everything but its secret."""
    consumer = key.consumer
    return {
        "prefix": key.prefix,
        "label": key.label,
        "consumer": consumer.name,
        "consumer_id": str(consumer.consumer_id),
        "tier": consumer.tier,
        "requests_per_minute": consumer.requests_per_minute,
        "scopes": key.scopes,
        "state": state_of(key, timezone.now()).value,
        "created_at": as_utc_iso(key.created_at),
        "expires_at": as_utc_iso(key.expires_at) if key.expires_at else None,
        "last_used_at": as_utc_iso(key.last_used_at) if key.last_used_at else None,
        "revoked_at": as_utc_iso(key.revoked_at) if key.revoked_at else None,
        "replaced_by": key.replaced_by.prefix if key.replaced_by else None,
    }


def as_text(issued: IssuedKey) -> str:
    key = issued.key
    ends = f"; expires {as_utc_iso(key.expires_at)}" if key.expires_at else ""
    return (
        f"{issued.text}\n\n"
        f"This is the key of {key.consumer.name} ({key.consumer.tier}; {', '.join(key.scopes)}{ends}). Keep it now: it "
        f"is not shown again.\n"
        f"To get a token: curl -X POST {_site()}/token/generate-token -H 'X-API-Key: <the key>'\n"
        f"To end it: manage.py revoke_api_key {key.prefix}"
    )


def _site() -> str:
    """Where consumers find us: as configured, else where `make run` last listened on this machine."""
    config = settings.CONFIG
    if config.public_url:
        return config.public_url.rstrip("/")
    try:
        return str(json.loads((settings.VAR_DIR / "demo.json").read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"http://{config.host}:{config.port}"
