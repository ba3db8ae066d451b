"""`python -m tests.fuzz_world`: fills the database of the environment and prints a token, a key and the ids.

Every kind of match: live, finished, upcoming, unread, paused; with corrected events,
snapshots, line-ups, two sources that disagree; and jobs.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta

import django

django.setup()

from django.core.management import call_command  # noqa: E402 - needs the apps
from django.utils import timezone  # noqa: E402

from apiauth import keys, tokens  # noqa: E402
from apiauth.models import Tier  # noqa: E402
from scraping import jobs  # noqa: E402
from scraping.matches import conflicts, lineups  # noqa: E402
from scraping.matches.reconcile.choosing import reconcile  # noqa: E402
from scraping.matches.reconcile.states import SourceView  # noqa: E402
from scraping.models import EventAction, Match, MatchRef  # noqa: E402
from scraping.models.source import PUSHED  # noqa: E402
from scraping.payloads import Status  # noqa: E402
from tests.factories import (  # noqa: E402
    cricket_state,
    football_state,
    make_event,
    make_match,
    make_ref,
    make_scraper,
    make_snapshot,
    make_source,
    make_unread_match,
)
from tests.scraping.rounds import url_of  # noqa: E402
from tests.scraping.scripted_lineups import lineups_of, side_of  # noqa: E402

SCOPES = ("read", "ingest", "operate")


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    now = timezone.now()
    issued = keys.issue(consumer_name="fuzz", tier=Tier.PREMIUM, scopes=SCOPES, now=now)
    refs = [_cricket(now), _football(now), _over(now), _upcoming(now)]
    unread = make_unread_match(now=now)
    told_twice = _of_two_sources(now)
    names = [str(ref.match_id) for ref in refs] + [f"{ref.source.key}_{ref.source_event_id}" for ref in refs]
    make_source(PUSHED)
    words = {
        "matches": [*names, str(unread.pk), str(told_twice.pk)],
        "jobs": _jobs(now),
        "sequences": [1, 2, 3],
    }
    sys.stdout.write(
        json.dumps({"key": issued.text, "token": tokens.make(issued.key, now).text, "words": words}) + "\n"
    )


def _cricket(now: datetime) -> MatchRef:
    """A live match at its third state, with a corrected and a retracted ball."""
    match = make_match(now=now, sequence=3)
    ref = make_ref(match, now=now)
    make_scraper(ref, now=now)
    for sequence in (1, 2, 3):
        at = now - timedelta(seconds=30 * (3 - sequence))
        make_snapshot(match, sequence=sequence, now=at)
        is_current = sequence == 3
        make_event(match, now=at, sequence=sequence, event_id=f"2-12.{sequence}", happened_at=at, is_current=is_current)
    make_event(match, now=now, event_id="2-12.1", revision=2, action=EventAction.UPDATE, reason="scored as two runs")
    make_event(match, now=now, event_id="2-12.2", revision=2, action=EventAction.RETRACT, reason="no longer listed")
    return ref


def _football(now: datetime) -> MatchRef:
    ref = make_ref(make_match(sport="football", now=now - timedelta(seconds=60)), source="sofascore", now=now)
    make_event(ref.match, source="sofascore", now=now, kind="goal", minute="45+2", innings=None, over="")
    return ref


def _over(now: datetime) -> MatchRef:
    match = make_match(now=now - timedelta(hours=4), status="completed", lifecycle="COMPLETED", sequence=9)
    make_snapshot(match, now=now - timedelta(hours=4))
    return make_ref(match, now=now)


def _upcoming(now: datetime) -> MatchRef:
    state = football_state(status=Status.UPCOMING)
    match = make_match(state=state, now=now, start_time=now + timedelta(hours=1))
    ref = make_ref(match, source="sofascore", now=now)
    lineups.store(lineups_of(ref, side_of("team_a"), side_of("team_b", starters=9), at=now), ref_id=ref.pk, now=now)
    return ref


def _of_two_sources(now: datetime) -> Match:
    """A match of two sources that disagree."""
    state = cricket_state().model_dump(mode="json")
    other = cricket_state(venue="Perth").model_dump(mode="json")
    other["innings"][1]["runs"] = other["score"]["team_b"]["runs"] = 80
    views = [SourceView("crex", 100, now, state), SourceView("espn", 80, now - timedelta(seconds=5), other)]
    found = reconcile(views)
    match = make_match(now=now, payload=found.state, provenance=found.provenance)
    for view in views:
        make_ref(match, source=make_source(view.source), payload=view.state, captured_at=view.captured_at, now=now)
    conflicts.note(match.pk, found.conflicts, now=now)
    return match


def _jobs(now: datetime) -> list[str]:
    asked = {"tournament": 325, "season": 87678, "round": 12}
    make_source("sofascore")
    of_round = jobs.start_round(source_key="sofascore", asked=asked, requested_by="api:fuzz", now=now)
    by_address = jobs.start_urls(urls=[url_of("15000001")], requested_by="api:fuzz", now=now)
    return [str(of_round.job.pk), str(by_address.job.pk)]


if __name__ == "__main__":
    main()
