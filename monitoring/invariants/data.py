"""I1, I3, I5: matches and references, snapshots, events. Served data is complete and has no duplicates."""

from collections.abc import Iterator

from django.db.models import Case, Count, Exists, F, IntegerField, Max, Min, OuterRef, Q, Subquery, Sum, When
from django.db.models.functions import Coalesce

from monitoring.invariants.rules import CheckContext, rule
from scraping.models import Match, MatchEvent, MatchRef, ScrapeTask, Snapshot, TaskState
from scraping.payloads import Resource, checksum_of

STATE_RESOURCES = (Resource.SCORECARD, Resource.FULL)
UNPRUNED_MINUTES = 5
RESTORE = "Stop the workers, keep the database as it is, and restore the match from its snapshots or its source."
RECENT_MINUTES = 30  # before retention deletes the first snapshot or task and leaves gaps


@rule("I1", "matches", "Delete the match in the admin; discovery writes it again if the source still has it.")
def matches_without_ref(context: CheckContext) -> Iterator[str]:
    """Every match has a reference at a source."""
    without = Match.objects.filter(~Exists(MatchRef.objects.filter(match=OuterRef("pk"))), merged_into=None)
    for pk, title in without.values_list("pk", "title").order_by("pk"):
        yield f"match {pk} ({title}) has no reference at any source: it will not be read"


@rule("I3", "snapshots", RESTORE)
def disagreeing_snapshots(context: CheckContext) -> Iterator[str]:
    """A match is at the sequence and checksum of its newest snapshot."""
    newest = Snapshot.objects.filter(match=OuterRef("pk")).order_by("-sequence")
    matches = Match.objects.annotate(
        last_sequence=Subquery(newest.values("sequence")[:1]), last_checksum=Subquery(newest.values("checksum")[:1])
    )
    agree = Q(sequence=0, last_sequence=None) | Q(last_sequence=F("sequence"), last_checksum=F("checksum"))
    # A condition on a missing snapshot is NULL: matches that agree are excluded by their ids.
    columns = ("pk", "sequence", "checksum", "last_sequence", "last_checksum")
    differ = matches.exclude(pk__in=matches.filter(agree).values("pk")).order_by("pk")
    for pk, sequence, checksum, last, last_checksum in differ.values_list(*columns)[: context.row_limit]:
        newest_is = f"at {last} ({last_checksum[:8]})" if last else "not there"
        yield f"match {pk} is at sequence {sequence} ({checksum[:8]}), its newest snapshot is {newest_is}"


@rule("I3", "payloads", RESTORE)
def altered_payloads(context: CheckContext) -> Iterator[str]:
    """A match serves what its newest snapshot holds."""
    newest = Snapshot.objects.filter(match=OuterRef("pk"), sequence=OuterRef("sequence"))
    matches = Match.objects.filter(sequence__gt=0).annotate(shown=Subquery(newest.values("payload")[:1]))
    for pk, checksum, payload, shown in matches.values_list("pk", "checksum", "payload", "shown").iterator(200):
        if payload != shown and shown is not None:
            yield f"match {pk} serves another state than its newest snapshot"
        elif checksum_of(payload) != checksum:
            yield f"match {pk} serves a state that its checksum {checksum[:8]} is not of"


@rule("I3", "event order", RESTORE)
def events_ahead(context: CheckContext) -> Iterator[str]:
    """No event is ahead of its match."""
    ahead = MatchEvent.objects.filter(sequence__gt=F("match__sequence")).select_related("match")
    for event in ahead.order_by("pk")[: context.row_limit]:
        at = event.match.sequence
        yield f"event {event.pk} of match {event.match_id} has sequence {event.sequence}, the match is at {at}"


@rule("I3", "readings", "The next poll of the match repairs it. If it stays: check whether the match is still polled.")
def readings_ahead(context: CheckContext) -> Iterator[str]:
    """A match has the newest reading of its references."""
    ahead = MatchRef.objects.filter(captured_at__isnull=False, lacks_events=False).filter(
        Q(match__last_scraper_update__isnull=True) | Q(captured_at__gt=F("match__last_scraper_update"))
    )
    for pk, match_id, at in ahead.values_list("pk", "match_id", "captured_at").order_by("pk"):
        yield f"reference {pk} was read at {at:%H:%M:%S}, and match {match_id} does not know it"


@rule(
    "I3",
    "successes",
    "The next poll of the match repairs it. Keep the database and the worker's log: this must not happen.",
)
def successes_without_data(context: CheckContext) -> Iterator[str]:
    """A task that succeeded has left its data."""
    # A reading is made between its task's start and end. One that is not confirmed yet has a suspect checksum
    done = ScrapeTask.objects.filter(
        ref=OuterRef("pk"), state=TaskState.SUCCESS, resource__in=STATE_RESOURCES
    ).order_by("-pk")
    refs = MatchRef.objects.filter(suspect_checksum="").annotate(
        task=Subquery(done.values("pk")[:1]), claimed_at=Subquery(done.values("started_at")[:1])
    )
    behind = refs.filter(claimed_at__isnull=False).filter(
        Q(captured_at__isnull=True) | Q(captured_at__lt=F("claimed_at"))
    )
    for pk, task, at in behind.values_list("pk", "task", "captured_at").order_by("pk"):
        had = f"only data of {at:%H:%M:%S}, from before it began" if at else "no data"
        yield f"task {task} succeeded, and its reference {pk} has {had}"


@rule(
    "I3",
    "origins",
    "Another program than a task has written this match. Keep the database: check which programs have access.",
)
def unexplained_snapshots(context: CheckContext) -> Iterator[str]:
    """Every snapshot was written together with the end of a task."""
    # A snapshot has the time at which its task ended. Compared in Python: one query would take minutes
    since = context.ago(minutes=UNPRUNED_MINUTES)
    ended = ScrapeTask.objects.filter(state__in=(TaskState.SUCCESS, TaskState.SKIPPED), finished_at__gt=since)
    known = set(ended.filter(ref__isnull=False).values_list("ref__match_id", "finished_at"))
    joined = Match.objects.filter(merged_into__isnull=False, last_changed_at__gt=since)
    known |= set(joined.values_list("merged_into_id", "last_changed_at"))  # a merge writes a snapshot of its own
    recent = Snapshot.objects.filter(created_at__gt=since, data_source="scraper", match__merged_into=None)
    recent = recent.annotate(ended_at=Coalesce("task_finished_at", "created_at")).filter(ended_at__gt=since)
    for match_id, sequence, at in recent.order_by("pk").values_list("match_id", "sequence", "ended_at"):
        if (match_id, at) not in known:
            yield f"snapshot {sequence} of match {match_id} was written by no task that ended"


@rule("I5", "events", RESTORE)
def broken_histories(context: CheckContext) -> Iterator[str]:
    """Every event has one current revision, the newest, and none is missing."""
    current = Case(When(is_current=True, then=F("revision")), output_field=IntegerField())
    events = (
        MatchEvent.objects.order_by()
        .values("match_id", "source_id", "event_id")
        .annotate(
            rows=Count("pk"),
            newest=Max("revision"),
            currents=Sum(Case(When(is_current=True, then=1), default=0, output_field=IntegerField())),
            shown=Max(current),
        )
    )
    wrong = events.filter(~Q(rows=F("newest")) | ~Q(currents=1) | Q(shown__lt=F("newest")))
    for event in wrong:
        yield (
            f"event {event['event_id']} of match {event['match_id']}: {event['rows']} rows, newest revision "
            f"{event['newest']}, {event['currents']} of them current"
        )


@rule("I5", "history", RESTORE)
def gaps_in_history(context: CheckContext) -> Iterator[str]:
    """The snapshots of a match are numbered without gaps or duplicates."""
    recent = Snapshot.objects.filter(created_at__gt=context.ago(minutes=RECENT_MINUTES)).order_by()
    ranges = recent.values("match_id").annotate(rows=Count("pk"), first=Min("sequence"), last=Max("sequence"))
    for each in ranges.exclude(rows=F("last") - F("first") + 1):
        yield f"match {each['match_id']} has {each['rows']} snapshots from {each['first']} to {each['last']}"
