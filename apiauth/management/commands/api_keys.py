"""Issues, lists, rotates and revokes API keys, and changes consumers, from the terminal."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import ProgrammingError
from django.utils import timezone

from apiauth import consumers, keys, revoked
from apiauth.errors import RefusedError
from apiauth.keys import IssuedKey, KeyState, state_of
from apiauth.models import ApiKey, Tier
from victoryline.lib.availability import DATABASE_AWAY, first_line
from victoryline.lib.operators import name_of
from victoryline.lib.times import as_utc_iso

MAX_DAYS = 3650
ENDED = (KeyState.REVOKED, KeyState.EXPIRED)
COLUMNS = ("prefix", "consumer", "tier", "scopes", "label", "created", "expires", "last used", "state")


class Command(BaseCommand):
    help = "Issue, list, rotate and revoke API keys, and change consumers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        issue = actions.add_parser("issue", help="Issue a key. It is shown once: only a hash of it is stored.")
        issue.add_argument("name", help="The consumer; created if there is none of this name.")
        issue.add_argument("--label", default="", help="What the key is for.")
        issue.add_argument(
            "--scope",
            action="append",
            choices=keys.SCOPES,
            help="What the key may do; may be repeated. Default: read. It can't be changed later: issue another key.",
        )
        issue.add_argument(
            "--expires-in-days",
            type=int,
            default=keys.USUAL_DAYS,
            help=f"Days until it expires (default {keys.USUAL_DAYS}).",
        )
        issue.add_argument("--never-expires", dest="expires_in_days", action="store_const", const=None)
        listed = actions.add_parser("list", help="List keys: owner, scopes, expiry, last token. Never secrets.")
        listed.add_argument("--consumer", help="Only the keys of this one.")
        listed.add_argument("--all", action="store_true", help="Those that have ended, too.")
        rotate = actions.add_parser("rotate", help="Replace a key by a new one; both work during the overlap.")
        rotate.add_argument("prefix", help="The part between vl_ and the dot.")
        rotate.add_argument(
            "--overlap-hours", type=float, default=keys.OVERLAP_HOURS, help="How long the old key works. Default: 24."
        )
        revoke = actions.add_parser("revoke", help="Revoke a key, or all keys of a consumer, within seconds.")
        which = revoke.add_mutually_exclusive_group(required=True)
        which.add_argument("prefix", nargs="?", help="The part between vl_ and the dot.")
        which.add_argument("--consumer", help="All keys of this consumer.")
        revoke.add_argument("--reason", default="", help="Stored with the key and in the audit.")
        consumer = actions.add_parser("consumer", help="Change a consumer's tier, limit or access.")
        consumer.add_argument("name")
        access = consumer.add_mutually_exclusive_group()
        access.add_argument("--active", dest="is_active", action="store_const", const=True, help="It may use the API.")
        access.add_argument(
            "--inactive", dest="is_active", action="store_const", const=False, help="End its access to the API."
        )
        for each in (issue, consumer):
            each.add_argument("--tier", choices=Tier.values, help="Default: unchanged; standard for a new consumer.")
            each.add_argument("--requests-per-minute", type=int, help="For the tier custom only.")
        listed.add_argument("--json", action="store_true", help="One JSON object instead of a table.")
        for each in (issue, rotate, revoke, consumer):
            each.add_argument("--dry-run", action="store_true", help="Check the names, and change nothing.")
            each.add_argument("--by", default="", help="Written into the audit. Default: the login name.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        options.setdefault("by", "")
        with _command_errors():
            if options.get("dry_run"):
                prefix, name = options.get("prefix"), options.get("name") or options.get("consumer")
                if name and action != "issue":
                    consumers.find(name)
                self.stdout.write(
                    f"Would {action} {keys.find(prefix).prefix if prefix else name}. Nothing was changed."
                )
                return
            getattr(self, f"_{action}")(options, actor=name_of(options["by"]), now=timezone.now())

    def _issue(self, options: dict[str, Any], *, actor: str, now: datetime) -> None:
        days = options["expires_in_days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--expires-in-days is {days}; it must be from 1 to {MAX_DAYS}")
        issued = keys.issue(
            consumer_name=options["name"],
            tier=Tier(options["tier"]) if options["tier"] else None,
            requests_per_minute=options["requests_per_minute"],
            scopes=options["scope"] or ["read"],
            label=options["label"],
            now=now,
            expires_at=None if days is None else now + timedelta(days=days),
            actor=actor,
        )
        self._show_key(issued)
        others = keys.usable(issued.key.consumer, now, without=[issued.key])
        if others:
            noun = "key" if others == 1 else "keys"
            self.stdout.write(f"{options['name']} has {others} other {noun}, which can still be used.")

    def _list(self, options: dict[str, Any], *, actor: str, now: datetime) -> None:
        known = ApiKey.objects.select_related("consumer", "replaced_by").order_by("consumer__name", "created_at")
        if options["consumer"]:
            known = known.filter(consumer=consumers.find(options["consumer"]))
        found = [key for key in known if options["all"] or state_of(key, now) not in ENDED]
        if options["json"]:
            rows = [dict(zip(COLUMNS, _cells(key, now), strict=True)) for key in found]
            self.stdout.write(json.dumps({"keys": rows}))
        elif found:
            table = [COLUMNS, *(_cells(key, now) for key in found)]
            widths = [max(len(row[place]) for row in table) for place in range(len(COLUMNS))]
            for row in table:
                cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
                self.stdout.write("  ".join(cells).rstrip())
        else:
            self.stdout.write("No key is in use. manage.py api_keys issue NAME makes one; --all shows ended ones.")

    def _rotate(self, options: dict[str, Any], *, actor: str, now: datetime) -> None:
        hours = options["overlap_hours"]
        try:
            overlap = timedelta(hours=hours)
        except (ValueError, OverflowError) as error:  # nan; more than a timedelta can hold
            raise CommandError(f"--overlap-hours is {hours:g}; it must be from 0 to 8760") from error
        old = keys.find(options["prefix"])
        issued = keys.rotate(prefix=old.prefix, overlap=overlap, now=now, actor=actor)
        old.refresh_from_db()
        assert old.expires_at is not None
        self._show_key(issued)
        self.stdout.write(f"The old key {old.prefix} and its tokens work until {as_utc_iso(old.expires_at)}.")

    def _revoke(self, options: dict[str, Any], *, actor: str, now: datetime) -> None:
        reason = options["reason"]
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

    def _consumer(self, options: dict[str, Any], *, actor: str, now: datetime) -> None:
        wanted = consumers.Change(
            tier=Tier(options["tier"]) if options["tier"] else None,
            requests_per_minute=options["requests_per_minute"],
            is_active=options["is_active"],
        )
        if wanted == consumers.Change():
            raise CommandError("Nothing to change: give --tier, --requests-per-minute, --active or --inactive.")
        consumer = consumers.find(options["name"])
        consumers.change(consumer, wanted, now=now, actor=actor)
        limit = f", {consumer.requests_per_minute} requests a minute" if consumer.requests_per_minute else ""
        access = "may use the API" if consumer.is_active else "is shut out"
        self.stdout.write(
            f"{consumer.name}: tier {consumer.tier}{limit}; it {access}. In effect everywhere within seconds."
        )

    def _show_key(self, issued: IssuedKey) -> None:
        key, config = issued.key, settings.CONFIG
        expiry = f"; expires {as_utc_iso(key.expires_at)}" if key.expires_at else ""
        site = config.public_url.rstrip("/") or f"http://{config.host}:{config.port}"
        self.stdout.write(
            f"{issued.text}\n\n"
            f"This is the key of {key.consumer.name} ({key.consumer.tier}; {', '.join(key.scopes)}{expiry}). "
            f"Keep it now: it is not shown again.\n"
            f"To get a token: curl -X POST {site}/token/generate-token -H 'X-API-Key: <the key>'\n"
            f"To end it: manage.py api_keys revoke {key.prefix}"
        )


@contextmanager
def _command_errors() -> Iterator[None]:
    """Ends the command with the reason and status 1; nothing was changed then."""
    try:
        yield
    except RefusedError as refusal:
        raise CommandError(str(refusal)) from refusal
    except (ProgrammingError, *DATABASE_AWAY) as error:
        raise CommandError(
            f"The database can't be reached or has no tables ({first_line(error)}). Nothing was changed. Try again "
            "when it is back; manage.py migrate makes missing tables."
        ) from error


def _note_revocation(prefix: str, error: BaseException) -> None:
    """Without the database nothing can be revoked; a note in Redis reaches web processes that have none either."""
    if prefix and revoked.note([prefix]):
        minutes = revoked.LIFETIME_SECONDS // 60
        raise CommandError(
            f"The database can't be reached ({first_line(error)}), so {prefix} is NOT revoked yet. It is noted in "
            f"Redis: while the database is away, and for {minutes} minutes at most, the web processes refuse the key "
            f"anyway. Revoke it again when the database is back."
        ) from error


def _cells(key: ApiKey, now: datetime) -> tuple[str, ...]:
    state, consumer = state_of(key, now), key.consumer
    tier = f"custom {consumer.requests_per_minute}/min" if consumer.requests_per_minute else consumer.tier
    shown_state = state.value
    if state is KeyState.EXPIRES_SOON and key.expires_at:
        shown_state = f"expires in {max(0, (key.expires_at - now).days)} days"
    elif state is KeyState.ROTATED and key.replaced_by:
        shown_state = f"rotated to {key.replaced_by.prefix}"
    times = (key.created_at, key.expires_at, key.last_used_at)
    return (
        *(key.prefix, consumer.name, tier, ",".join(key.scopes), key.label or "-"),
        *(f"{moment:%Y-%m-%d %H:%M}" if moment else "never" for moment in times),
        shown_state,
    )
