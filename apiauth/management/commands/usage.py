"""`manage.py usage`: who asked how much of us, and what came of it, for whoever is on call."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime, timedelta
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apiauth import usage
from apiauth.management import words
from apiauth.models import Consumer
from apiauth.usage import Sums

LINE = "{:32} {:>10} {:>10} {:>10} {:>9} {:>8} {:>10} {:>9} {:>10} {:>9}"
HEADINGS = (
    "requests", "answered", "unchanged", "throttled", "refused", "failed", "mean ms", "mean age", "oldest",
)  # fmt: skip
MOST_DAYS = 3650  # KEEP_USAGE_DAYS allows no more


class Command(BaseCommand):
    help = "Show how much consumers asked, from the sums by the hour: of all of them, or of one by route and day."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("consumer", nargs="?", help="Its name. Default: all, the busiest first.")
        parser.add_argument("--days", type=int, default=7, help="How many, today among them. Default: 7.")
        parser.add_argument("--json", action="store_true", help="One JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        if not 1 <= options["days"] <= MOST_DAYS:
            raise CommandError(f"--days is {options['days']}; it must be from 1 to {MOST_DAYS}")
        since = usage.day_of(now) - timedelta(days=options["days"] - 1)
        name = options["consumer"]
        with words.refusals_told():
            found = _of_one(_consumer(name), since, now) if name else {"consumers": usage.consumers(since, now)}
        if options["json"]:
            self.stdout.write(orjson.dumps(_document(name, since, found), option=orjson.OPT_NON_STR_KEYS).decode())
            return
        until = f"{since:%Y-%m-%d} to {now:%Y-%m-%d %H:%M} UTC"
        days = (now - since).days + 1
        self.stdout.write(f"{name or 'All consumers'}, {days} {'day' if days == 1 else 'days'}: {until}")
        if not any(found.values()):
            self.stdout.write("Nothing was asked in this time. Sums are written a second or two after the requests.")
            return
        for title, sums in found.items():
            self._show(title, sums)

    def _show(self, title: str, found: Mapping[Any, Sums]) -> None:
        self.stdout.write(LINE.format(title, *HEADINGS))
        for name, sums in found.items():
            self.stdout.write(LINE.format(_shown(name), *_cells(sums)))
        if len(found) > 1:
            self.stdout.write(LINE.format("all", *_cells(usage.added(list(found.values())))))


def _consumer(name: str) -> Consumer:
    found = Consumer.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(Consumer.objects.order_by("name").values_list("name", flat=True)[:50])
        raise CommandError(f"There is no consumer {name}. There are: {known or 'none yet'}.")
    return found


def _of_one(consumer: Consumer, since: datetime, now: datetime) -> dict[str, Mapping[Any, Sums]]:
    return {
        "routes": usage.routes(since, now, consumer=consumer.pk),
        "days": usage.days(since, now, consumer=consumer.pk),
    }


def _document(name: str | None, since: datetime, found: Mapping[str, Mapping[Any, Sums]]) -> dict[str, Any]:
    first = next(iter(found.values()))
    return {
        **({"consumer": name} if name else {}),
        "since": since.isoformat(),
        "total": _figures(usage.added(list(first.values()))),
        **{title: {str(key): _figures(sums) for key, sums in sums_of.items()} for title, sums_of in found.items()},
    }


def _figures(sums: Sums) -> dict[str, Any]:
    return {**asdict(sums), "mean_ms": sums.mean_ms, "mean_age_seconds": sums.mean_age_seconds}


def _shown(name: str | date) -> str:
    text = str(name) or "(no such address)"
    return text if len(text) <= 32 else text[:31] + "…"


def _cells(sums: Sums) -> tuple[str, ...]:
    counts = (sums.requests, sums.answered, sums.not_modified, sums.throttled, sums.refused, sums.failed)
    return (
        *(f"{count:,}" for count in counts),
        _number(sums.mean_ms, ""),
        _number(sums.mean_age_seconds, " s"),
        _number(sums.most_age_seconds, " s"),
    )


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.1f}{unit}"
