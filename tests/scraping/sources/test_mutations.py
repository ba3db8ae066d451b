"""Any response becomes a payload or one of our own errors, in bounded time, and is stored as a whole or not at all.

Every recorded document (tests/recordings) is changed 500 times by seeded mutations. A failure names case, file and
number; `Mutator(body, f"{case}/{file}").mutation(number)` is its document.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from django.db import connection

from monitoring.invariants import CheckContext
from monitoring.invariants import data as data_rules
from scraping.errors import ScrapingError
from scraping.matches import discovery, lineups
from scraping.matches.validate import check, check_same_match
from scraping.models import LineupPlayer, Match, MatchEvent, MatchRef, Snapshot, Source
from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload, Status
from scraping.reading.recordings import Recording
from scraping.readings import Reading, ReadMode, Request
from scraping.sources import adapter_for
from scraping.sources.base import Adapter
from tests import recordings
from tests.factories import make_ref, make_source, make_unread_match
from tests.recordings.mutations import Mutator
from tests.scraping.builders import read
from tests.scraping.sources import builders as build

FOLDER = Path(recordings.__file__).parent
MUTATIONS = 500
STORED_EVERY = 10
MODES = tuple(ReadMode)
GIGABYTE = 2**30
CPU_SECONDS = 5.0  # of one parse; the slowest takes some milliseconds
FOLDERS = sorted(file.parent for file in FOLDER.rglob("recording.json"))
DOCUMENTS = [(folder, file) for folder in FOLDERS for file in sorted(Recording.load(folder).documents)]
IDS = [f"{folder.relative_to(FOLDER)}/{file}" for folder, file in DOCUMENTS]
pytestmark = pytest.mark.requirement("ZT-5")
EachDocument = pytest.mark.parametrize(("folder", "file"), DOCUMENTS, ids=IDS)


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    """Makes a parse that takes a gigabyte a MemoryError, which names the mutation, and not the end of all tests."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + GIGABYTE, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


class Fuzzed:
    """One document of a recording, and what the adapter does with a reading that has it."""

    def __init__(self, folder: Path, file: str) -> None:
        recording = Recording.load(folder)
        self.adapter: Adapter = adapter_for(recording.source)
        self.base_url = recording.base_url
        ((self.kind, names),) = recording.kinds.items()
        self.name = names[file]
        self.trial = recording.read(self.adapter, self.kind)
        self.day = recording.captured_at.date()
        body = recording.documents[file].body
        if self.kind == "round":
            first = orjson.loads(body)["events"][0]
            tournament = first["tournament"]["uniqueTournament"]["id"]
            self.asked = {
                "tournament": tournament,
                "season": first["season"]["id"],
                "round": first["roundInfo"]["round"],
            }
        self.mutator = Mutator(body, f"{folder.relative_to(FOLDER)}/{file}")

    def reading(self, number: int, body: bytes | None = None) -> Reading:
        reading = self.trial.reading
        changed = replace(reading.documents[self.name], body=body or self.mutator.mutation(number))
        mode = reading.mode if number % 3 else MODES[number % 9 // 3]
        return replace(reading, mode=mode, documents={**reading.documents, self.name: changed})

    def parse(self, reading: Reading) -> Any:
        adapter, base = self.adapter, self.base_url
        steps: dict[str, Callable[[], Any]] = {
            "match": lambda: adapter.parse(reading),
            "lineups": lambda: adapter.parse_lineups(reading),
            "figures": lambda: adapter.parse_figures(reading),
            "list": lambda: adapter.parse_list(reading, base),
            "fixtures": lambda: adapter.parse_fixtures(reading, base, self.day),
            "round": lambda: adapter.parse_round(reading, base, self.asked),
        }
        return steps[self.kind]()

    def others(self, reading: Reading) -> Iterator[Callable[[], Any]]:
        """Yields the other methods that are given the reading of a match."""
        adapter, request = self.adapter, Request(self.name, reading.ref.url, "POST", b'{"lastDocId": 5}')
        yield lambda: adapter.older_events(reading, request)
        yield lambda: adapter.follow_up(reading, self.base_url)
        yield lambda: adapter.needed_page(reading)
        yield lambda: adapter.parse_events(reading)


def test_the_recordings_have_every_kind_of_document_of_every_adapter() -> None:
    found = {(one.source, kind) for one in map(Recording.load, FOLDERS) for kind in one.kinds}
    lists = {
        (key, "list")
        for key in ("crex", "espn", "espncricinfo", "espnsoccer", "sofascore", "sofascorecricket", "board")
    }
    matches = {(key, "match") for key, _ in lists}
    figures = {(key, "figures") for key in ("crex", "espncricinfo", "sofascore", "sofascorecricket")}
    line_ups = {(key, "lineups") for key in ("crex", "espn", "espncricinfo", "sofascore", "sofascorecricket")}
    assert found == lists | matches | figures | line_ups | {("crex", "fixtures"), ("sofascore", "round")}
    assert all(
        one.read(adapter_for(one.source), kind).is_found for one in map(Recording.load, FOLDERS) for kind in one.kinds
    )


@pytest.mark.usefixtures("bounded_memory")
@EachDocument
def test_only_errors_of_ours_escape_and_no_parse_hangs(folder: Path, file: str) -> None:
    fuzzed, unread = Fuzzed(folder, file), 0
    for number in range(MUTATIONS):
        reading = fuzzed.reading(number)
        began = time.process_time()
        try:
            result = fuzzed.parse(reading)
        except ScrapingError:
            unread += 1
        except Exception as error:
            raise AssertionError(f"{folder}/{file}, mutation {number}: {error!r}") from error
        else:
            if isinstance(result, Payload):
                assert Payload.model_validate_json(result.model_dump_json()) == result, number
                assert len({event.id for event in result.events}) == len(result.events), number
        if fuzzed.kind == "match" and number % 5 == 0:
            for other in fuzzed.others(reading):
                with suppress(ScrapingError):
                    other()
        assert time.process_time() - began < CPU_SECONDS, f"{folder}/{file}, mutation {number} took too long"
    assert unread < MUTATIONS * 0.95, "nearly every mutation was refused: this shows nothing"


@pytest.mark.usefixtures("bounded_memory")
@EachDocument
def test_nothing_counts_up_to_a_number_of_a_response(folder: Path, file: str) -> None:
    fuzzed = Fuzzed(folder, file)
    for number, body in enumerate(fuzzed.mutator.with_huge_numbers()):
        for mode in (0, 3):
            with suppress(ScrapingError):
                fuzzed.parse(fuzzed.reading(mode, body))
        for other in fuzzed.others(fuzzed.reading(0, body)) if fuzzed.kind == "match" and number % 3 == 0 else ():
            with suppress(ScrapingError):
                other()


def test_pages_of_the_tournaments_of_a_day() -> None:
    adapter, day = adapter_for("sofascorecricket"), date(2026, 5, 3)
    rows = [{"tournament": {"name": "Cup", "uniqueTournament": {"id": number}}} for number in (11, 12, 13)]
    mutator = Mutator(orjson.dumps({"scheduled": rows, "hasNextPage": False}), "tournaments")
    for number in range(MUTATIONS):
        document = build.document("tournaments", mutator.mutation(number))
        with suppress(ScrapingError):
            requests = adapter.more_fixtures([build.reading(build.SOFA, document)], build.SOFA_BASE, day)
            assert all(one.url.startswith(build.SOFA_BASE) for one in requests), number


@pytest.mark.both
@pytest.mark.django_db
@EachDocument
def test_a_reading_is_stored_as_a_whole_or_not_at_all(folder: Path, file: str) -> None:
    fuzzed = Fuzzed(folder, file)
    source = make_source(fuzzed.adapter.key, base_url=fuzzed.base_url, sport=fuzzed.adapter.sport.value)
    at = fuzzed.trial.reading.captured_at
    step = STORED_EVERY * (5 if connection.vendor == "postgresql" else 1)  # there only for the limits of columns
    stored: set[str] = set()
    for number in range(0, MUTATIONS, step):
        with suppress(ScrapingError):
            result = fuzzed.parse(fuzzed.reading(number))
            if (content := content_of(result)) in stored:  # two of three change nothing that is read
                continue
            stored.add(content)
            if isinstance(result, Payload):
                match_is_whole_or_untouched(result, source, number)
            elif isinstance(result, Lineups | Figures):
                extra_is_whole_or_untouched(result, source, number)
            else:
                list_is_whole(result, source, number, at)
    context = CheckContext(at)
    rules = (data_rules.matches_without_ref, data_rules.disagreeing_snapshots, data_rules.altered_payloads,
             data_rules.events_ahead, data_rules.readings_ahead, data_rules.broken_histories,
             data_rules.gaps_in_history)  # fmt: skip
    assert [sentence for rule in rules for sentence in rule(context)] == []


def content_of(result: Any) -> str:
    """Returns everything of a result that is stored."""
    return repr(result if isinstance(result, list) else result.model_copy(update={"unknown": ()}))


def new_ref(source: Source, number: int, **match: Any) -> MatchRef:
    return make_ref(make_unread_match(**match), source=source, source_event_id=f"F{number}", captured_at=None)


def match_is_whole_or_untouched(result: Payload, source: Source, number: int) -> None:
    ref = new_ref(source, number, sport=result.state.sport)
    payload = result.model_copy(update={"source": source.key, "source_event_id": ref.source_event_id})
    is_read = True
    try:
        check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
        read(ref, payload)
    except ScrapingError:
        is_read = False
    match = Match.objects.get(pk=ref.match_id)
    events = MatchEvent.objects.filter(match=match).count()
    snapshots = Snapshot.objects.filter(match=match).count()
    if is_read:
        assert match.payload == payload.normalized(), number
        assert (match.sequence, events, snapshots) == (1, len(payload.events), 1), number
    else:
        assert (match.sequence, match.last_scraper_update, events, snapshots) == (0, None, 0, 0), number


def extra_is_whole_or_untouched(result: Lineups | Figures, source: Source, number: int) -> None:
    ref = new_ref(source, number, sport=source.sport, status=Status.COMPLETED)
    found = result.model_copy(update={"source": source.key, "source_event_id": ref.source_event_id})
    check_same_match(found, expected_id=ref.source_event_id)
    if isinstance(found, Figures):
        keys = {(one.innings, one.role, one.player_id) for one in found.figures}
        assert lineups.store_figures(found, ref_id=ref.pk) == len(keys), number
        return
    stored = lineups.store(found, ref_id=ref.pk, now=found.captured_at)
    players = {(one.side, player.player_id) for one in found.lineups for player in one.players}
    assert len(stored.changed_sides) == len(found.lineups), number
    assert LineupPlayer.objects.filter(lineup__match=ref.match_id).count() == len(players), number


def list_is_whole(result: list[DiscoveredMatch], source: Source, number: int, at: datetime) -> None:
    """Foreign addresses are left out, each other match is written once."""
    own = {one.source_event_id for one in result if one.url.startswith(source.base_url)}
    known = set(MatchRef.objects.filter(source=source).values_list("source_event_id", flat=True))
    assert discovery.register(source, result, now=at) == len(own - known), number
    assert set(MatchRef.objects.filter(source=source).values_list("source_event_id", flat=True)) == own | known, number
