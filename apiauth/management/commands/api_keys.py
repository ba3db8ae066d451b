"""Issues, lists, rotates and revokes API keys, and changes consumers, from the terminal."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.db import ProgrammingError
from django.forms import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apiauth import consumers, keys, revoked
from apiauth.errors import RefusedError
from apiauth.keys import IssuedKey, KeyState, state_of
from apiauth.models import ApiKey, Tier
from victoryline.lib.availability import DATABASE_AWAY, first_line
from victoryline.lib.operators import name_of
from victoryline.lib.times import as_utc_iso

MAX_DAYS = 3650
TIMES = ("created_at", "expires_at", "last_used_at", "revoked_at")
ENDED = (KeyState.REVOKED, KeyState.EXPIRED)
COLUMNS = ("prefix", "consumer", "tier", "scopes", "label", "created", "expires", "last used", "state")
NO_TABLES = (
    "The database has not the tables that this needs ({}). Nothing was changed. Is it the right one (DATABASE_URL, "
    "VAR_DIR)? If so: manage.py migrate makes them; `make run` does that by itself."
)


class Command(BaseCommand):
    help = "Issue, list, rotate and revoke API keys, and change consumers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        _add_issue(actions.add_parser("issue", help="Issue a key. It is shown once: only a hash of it is stored."))
        _add_list(actions.add_parser("list", help="List keys: owner, scopes, expiry, last token. Never secrets."))
        _add_rotate(actions.add_parser("rotate", help="Replace a key by a new one; both work during the overlap."))
        _add_revoke(actions.add_parser("revoke", help="Revoke a key, or all keys of a consumer, within seconds."))
        _add_consumer(actions.add_parser("consumer", help="Change a consumer's tier, limit, contact or access."))

    def handle(self, *args: Any, **options: Any) -> None:
        run: Callable[[dict[str, Any]], None] = getattr(self, f"_{options['action']}")
        with _command_errors():
            run(options)

    def _issue(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        issued = keys.issue(
            consumer_name=options["name"],
            tier=Tier(options["tier"]) if options["tier"] else None,
            requests_per_minute=options["requests_per_minute"],
            scopes=options["scope"] or ["read"],
            label=options["label"],
            now=now,
            expires_at=_expiry(options, now),
            actor=name_of(options["by"]),
        )
        if options["json"]:
            self.stdout.write(json.dumps({"api_key": issued.text, **_document(issued.key)}))
            return
        self.stdout.write(_instructions(issued))
        if others := keys.usable(issued.key.consumer, now, without=[issued.key]):
            noun = "key" if others == 1 else "keys"
            self.stdout.write(f"{options['name']} has {others} other {noun}, which can still be used.")

    def _list(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        rows = ApiKey.objects.select_related("consumer", "replaced_by").order_by("consumer__name", "created_at")
        if options["consumer"]:
            rows = rows.filter(consumer=consumers.find(options["consumer"]))
        found = [key for key in rows if options["all"] or state_of(key, now) not in ENDED]
        if options["json"]:
            self.stdout.write(json.dumps([_document(key) for key in found], indent=2))
        elif found:
            self.stdout.write(_table([COLUMNS, *(_cells(key, now) for key in found)]))
        else:
            self.stdout.write("No key is in use. manage.py api_keys issue NAME makes one; --all shows ended ones.")

    def _rotate(self, options: dict[str, Any]) -> None:
        hours = keys.OVERLAP_HOURS if options["overlap_hours"] is None else options["overlap_hours"]
        try:
            overlap = timedelta(hours=hours)
        except (ValueError, OverflowError) as error:  # nan; more than a timedelta can hold
            raise CommandError(f"--overlap-hours is {hours:g}; it must be from 0 to 8760") from error
        old = keys.find(options["prefix"])
        issued = keys.rotate(prefix=old.prefix, overlap=overlap, now=timezone.now(), actor=name_of(options["by"]))
        old.refresh_from_db()
        assert old.expires_at is not None
        until = as_utc_iso(old.expires_at)
        if options["json"]:
            replaced = {"prefix": old.prefix, "works_until": until}
            self.stdout.write(json.dumps({"api_key": issued.text, **_document(issued.key), "replaces": replaced}))
            return
        self.stdout.write(_instructions(issued))
        self.stdout.write(f"The old key {old.prefix} and its tokens work until {until}.")

    def _revoke(self, options: dict[str, Any]) -> None:
        now, actor, reason = timezone.now(), name_of(options["by"]), options["reason"]
        if options["consumer"]:
            ended = keys.revoke_all(consumers.find(options["consumer"]), now=now, reason=reason, actor=actor)
            if not ended:
                raise CommandError(f"{options['consumer']} has no key that is not revoked already.")
            self.stdout.write(f"Revoked: {', '.join(ended)}. Their tokens stop working within seconds.")
            return
        try:
            prefix = keys.find(options["prefix"]).prefix
            if not keys.revoke(prefix=prefix, now=now, reason=reason, actor=actor):
                raise CommandError(f"The key {prefix} is revoked already.")
        except DATABASE_AWAY as error:
            _note_revocation(keys.prefix_in(options["prefix"]), error)
            raise
        self.stdout.write(f"The key {prefix} is revoked. Its tokens stop working within seconds.")

    def _consumer(self, options: dict[str, Any]) -> None:
        wanted = consumers.Change(
            tier=Tier(options["tier"]) if options["tier"] else None,
            requests_per_minute=options["requests_per_minute"],
            is_active=options["is_active"],
            contact=_checked_contact(options["contact"]),
        )
        if wanted == consumers.Change():
            raise CommandError(
                "Nothing to change: give --tier, --requests-per-minute, --contact, --active or --inactive."
            )
        consumer = consumers.find(options["name"])
        consumers.change(consumer, wanted, now=timezone.now(), actor=name_of(options["by"]))
        limit = f", {consumer.requests_per_minute} requests a minute" if consumer.requests_per_minute else ""
        access = "may use the API" if consumer.is_active else "is shut out"
        self.stdout.write(
            f"{consumer.name}: tier {consumer.tier}{limit}; it {access}. In effect everywhere within seconds."
        )


def _add_issue(parser: ArgumentParser) -> None:
    parser.add_argument("name", help="The consumer; created if there is none of this name.")
    parser.add_argument("--label", default="", help="What the key is for.")
    parser.add_argument("--tier", choices=Tier.values, help="Default: unchanged; standard for a new consumer.")
    parser.add_argument("--requests-per-minute", type=int, help="For the tier custom only.")
    parser.add_argument(
        "--scope",
        action="append",
        choices=keys.SCOPES,
        help="What the key may do; may be repeated. Default: read. It can't be changed later: issue another key.",
    )
    life = parser.add_mutually_exclusive_group()
    life.add_argument("--expires-in-days", "--expires-days", type=int, help="Days until it expires. Default: never.")
    life.add_argument("--expires-at", help="When the key expires, such as 2027-01-31T18:00:00Z.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    _add_actor(parser)


def _add_list(parser: ArgumentParser) -> None:
    parser.add_argument("--consumer", help="Only the keys of this one.")
    parser.add_argument("--all", action="store_true", help="Those that have ended, too.")
    parser.add_argument("--json", action="store_true", help="Print a JSON list.")


def _add_rotate(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", help="The part between vl_ and the dot.")
    parser.add_argument("--overlap-hours", type=float, help="How long the old key works. Default: 24.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    _add_actor(parser)


def _add_revoke(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("prefix", nargs="?", help="The part between vl_ and the dot.")
    which.add_argument("--consumer", help="All keys of this consumer.")
    parser.add_argument("--reason", default="", help="Stored with the key and in the audit.")
    _add_actor(parser)


def _add_consumer(parser: ArgumentParser) -> None:
    parser.add_argument("name")
    parser.add_argument("--tier", choices=Tier.values)
    parser.add_argument("--requests-per-minute", type=int, help="For the tier custom only.")
    parser.add_argument("--contact", help="A mail address.")
    access = parser.add_mutually_exclusive_group()
    access.add_argument("--active", dest="is_active", action="store_const", const=True, help="It may use the API.")
    access.add_argument("--inactive", dest="is_active", action="store_const", const=False, help="Shut it out.")
    _add_actor(parser)


def _add_actor(parser: ArgumentParser) -> None:
    parser.add_argument("--by", default="", help="Written into the audit. Default: the login name.")


@contextmanager
def _command_errors() -> Iterator[None]:
    """Ends the command with the reason and status 1; nothing was changed then."""
    try:
        yield
    except RefusedError as refusal:
        raise CommandError(str(refusal)) from refusal
    except (ProgrammingError, *DATABASE_AWAY) as error:
        # A missing table is a ProgrammingError on PostgreSQL, an OperationalError on SQLite.
        if isinstance(error, ProgrammingError) or "no such table" in str(error):
            raise CommandError(NO_TABLES.format(first_line(error))) from error
        raise CommandError(
            f"The database can't be reached ({first_line(error)}). Nothing was changed; try again when it is back."
        ) from error


def _note_revocation(prefix: str, error: BaseException) -> None:
    """Without the database nothing can be revoked; a note in Redis reaches web processes that have none either."""
    if prefix and revoked.note([prefix]):
        minutes = revoked.LIFETIME_SECONDS // 60
        raise CommandError(
            f"The database can't be reached ({first_line(error)}), so {prefix} is NOT revoked yet. It is noted in "
            f"Redis: while the database is away, and for {minutes} minutes at most, the web processes turn the key "
            "away all the same. Revoke it again when the database is back."
        ) from error


def _expiry(options: dict[str, Any], now: datetime) -> datetime | None:
    days, text = options["expires_in_days"], options["expires_at"]
    if days is not None:
        if not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--expires-in-days is {days}; it must be from 1 to {MAX_DAYS}")
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


def _checked_contact(text: str | None) -> str | None:
    try:
        if text:
            validate_email(text)
    except ValidationError as error:
        raise CommandError(f"--contact is {text!r}; it must be a mail address") from error
    return text


def _document(key: ApiKey) -> dict[str, Any]:
    """Returns a key for JSON: everything but its secret."""
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
        **{name: as_utc_iso(moment) if (moment := getattr(key, name)) else None for name in TIMES},
        "replaced_by": key.replaced_by.prefix if key.replaced_by else None,
    }


def _instructions(issued: IssuedKey) -> str:
    key = issued.key
    expiry = f"; expires {as_utc_iso(key.expires_at)}" if key.expires_at else ""
    return (
        f"{issued.text}\n\n"
        f"This is the key of {key.consumer.name} ({key.consumer.tier}; {', '.join(key.scopes)}{expiry}). Keep it now: "
        f"it is not shown again.\n"
        f"To get a token: curl -X POST {_site()}/token/generate-token -H 'X-API-Key: <the key>'\n"
        f"To end it: manage.py api_keys revoke {key.prefix}"
    )


def _site() -> str:
    """Returns the public address: as configured, else where `make run` last listened on this machine."""
    config = settings.CONFIG
    if config.public_url:
        return config.public_url.rstrip("/")
    try:
        return str(json.loads((settings.VAR_DIR / "demo.json").read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"http://{config.host}:{config.port}"


def _cells(key: ApiKey, now: datetime) -> tuple[str, ...]:
    state, consumer = state_of(key, now), key.consumer
    tier = f"custom {consumer.requests_per_minute}/min" if consumer.requests_per_minute else consumer.tier
    if state is KeyState.EXPIRES_SOON and key.expires_at:
        shown_state = f"expires in {max(0, (key.expires_at - now).days)} days"
    elif state is KeyState.ROTATED and key.replaced_by:
        shown_state = f"rotated to {key.replaced_by.prefix}"
    else:
        shown_state = state.value
    times = (key.created_at, key.expires_at, key.last_used_at)
    return (
        *(key.prefix, consumer.name, tier, ",".join(key.scopes), key.label or "-"),
        *(f"{moment:%Y-%m-%d %H:%M}" if moment else "never" for moment in times),
        shown_state,
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
