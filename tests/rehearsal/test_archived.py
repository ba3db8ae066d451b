"""The record of a match that has ended, told once more into an empty database: the same end, event for event."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scraping.matches import match_logs
from scraping.models import Match, MatchEvent, MatchRef, Source
from scraping.payloads import Event, Phase, Status, checksum_of
from tests.factories import make_ref, make_source, make_unread_match
from tests.scraping.builders import ball, chasing, later, payload_of, read
from victoryline.rehearsal import scratch
from victoryline.rehearsal.archived import load, records_in
from victoryline.rehearsal.recording import BadRecordingError
from victoryline.rehearsal.retelling import retell
from victoryline.rehearsal.system import RehearsalError, environment
from victoryline.rehearsal.verdict import Verdict

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("BX-19")]


def delivery(number: int, **fields: Any) -> Event:
    return ball(number, **{"slot": f"b:2:0:{number}", "detail": {"score": f"{94 + number}/3"}, **fields})


def named_apart(*events: Event) -> tuple[Event, ...]:
    """The same happenings with another source's ids."""
    return tuple(event.model_copy(update={"id": f"other-{event.id}"}) for event in events)


@pytest.fixture
def record(settings: Any, tmp_path: Path) -> Path:
    """Two sources, one of them late; a ball put right, one taken back, a score that goes down, and an end."""
    settings.MATCH_LOG_DIR = tmp_path / "logs"
    match = make_unread_match()
    heavy = make_ref(match, source=make_source("crex", precedence_weight=100), captured_at=None)
    light = make_ref(match, source=make_source("espncricinfo", precedence_weight=80), captured_at=None)
    told: list[Event] = [delivery(1), delivery(2)]
    read(light, payload_of(light, chasing(95), at=later(0), events=named_apart(delivery(1))))
    read(heavy, payload_of(heavy, chasing(96), at=later(5), events=told))
    told[1] = delivery(2, runs=4, detail={"score": "99/3"})
    read(heavy, payload_of(heavy, chasing(99), at=later(10), events=told))
    read(heavy, payload_of(heavy, chasing(100), at=later(15), events=(delivery(3), delivery(4))))
    for seconds in (20, 25, 30):  # a run and the last ball are taken back, believed when it is read the third time
        gone = (*told, delivery(3))
        read(heavy, payload_of(heavy, chasing(98), at=later(seconds), events=gone, events_are_complete=True))
    read(light, payload_of(light, chasing(98), at=later(31), events=named_apart(*told, delivery(3))))
    end = chasing(188, status=Status.COMPLETED, phase=Phase.FINISHED, result="Australia won by 7 wickets")
    read(heavy, payload_of(heavy, end, at=later(35), events=(delivery(4, runs=6),)))
    assert match_logs.write(match.pk, now=later(40)) is not None
    return tmp_path / "logs" / str(match.pk) / "match.json.gz"


@pytest.fixture
def emptied(record: Path) -> Path:
    Match.objects.all().delete()
    Source.objects.all().delete()
    return record


def spoilt(record: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    found = json.loads(gzip.decompress(record.read_bytes()))
    change(found)
    other = record.with_name("spoilt.json.gz")
    other.write_bytes(gzip.compress(json.dumps(found).encode()))
    return other


def test_the_end_is_the_same_event_for_event(record: Path) -> None:
    match = Match.objects.get()
    payload, rows = match.payload, MatchEvent.objects.filter(match=match)
    events = sorted(rows.values_list("source__key", "event_id", "revision", "runs", "is_current"))
    Match.objects.all().delete()
    Source.objects.all().delete()
    waits: list[float] = []
    verdict = retell(load(record), speed=10, wait=waits.append)
    assert verdict.is_right, verdict.differences
    assert (verdict.expected, verdict.present, verdict.missing, verdict.doubled) == (7, 7, 0, 0)
    assert verdict.corrections >= 3
    again = Match.objects.get()
    assert again.payload == payload
    assert (again.status, again.lifecycle) == ("completed", "COMPLETED")
    rows = MatchEvent.objects.filter(match=again)
    assert sorted(rows.values_list("source__key", "event_id", "revision", "runs", "is_current")) == events
    assert sum(waits) == pytest.approx(3.5)


def test_a_source_that_is_corrected_has_its_weight_again(emptied: Path) -> None:
    retell(load(emptied), speed=1000, wait=lambda _: None)
    weights = MatchRef.objects.order_by("source__key").values_list("source__key", "source__precedence_weight")
    assert list(weights) == [("crex", 100), ("espncricinfo", 80)]


def test_what_the_pipeline_makes_otherwise_is_told(emptied: Path) -> None:
    """A record that says that something else came out: as if the pipeline had changed since."""

    def change(found: dict[str, Any]) -> None:
        found["match"]["payload"]["result"] = "Match drawn"
        current = [row for row in found["events"] if row["is_current"]]
        found["events"].append({**current[0], "id": 10**6, "event_id": "late", "sequence": 1, "is_current": True})
        found["events"][-1]["source_id"] = current[0]["source_id"]

    record = load(spoilt(emptied, change))
    verdict = retell(record, speed=1000, wait=lambda _: None)
    assert not verdict.is_right
    assert verdict.differences == ["result is Australia won by 7 wickets, not Match drawn"]


def test_only_into_an_empty_database(record: Path) -> None:
    with pytest.raises(RehearsalError, match="holds matches"):
        retell(load(record), speed=1000, wait=lambda _: None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda found: found.update(format="else"), "its format is", id="of another format"),
        pytest.param(lambda found: found["cut_off"].append("snapshots"), "cut off: snapshots", id="cut off"),
        pytest.param(lambda found: found["snapshots"].pop(0), "state 2 does not follow", id="without its beginning"),
        pytest.param(lambda found: found["snapshots"][3]["delta"].pop("innings"), "state 4", id="with a hole"),
        pytest.param(lambda found: found["snapshots"].clear(), "no state", id="without states"),
        pytest.param(lambda found: found["refs"].clear(), "no source", id="without sources"),
        pytest.param(lambda found: found.pop("events"), "events", id="without events"),
    ],
)
def test_a_record_that_is_not_whole_is_refused(record: Path, change: Callable[..., object], words: str) -> None:
    with pytest.raises(BadRecordingError, match=words):
        load(spoilt(record, change))


def test_what_is_no_record_is_named(tmp_path: Path) -> None:
    file = tmp_path / "match.json.gz"
    file.write_bytes(b"not packed")
    with pytest.raises(BadRecordingError, match=r"match\.json\.gz is no record of a match"):
        load(file)


def test_records_are_found_where_they_are_kept(record: Path) -> None:
    assert records_in(record) == [record]
    assert records_in(record.parent.parent) == [record]
    assert records_in(Path(__file__)) == []


def test_the_command_refuses_what_a_record_cannot_have(record: Path) -> None:
    with pytest.raises(CommandError, match="a record is told as it was"):
        call_command("replay", str(record), "--outage", "5")


@pytest.mark.requirement("SO-4")
def test_states_are_those_that_were_served(record: Path) -> None:
    match = Match.objects.get()
    assert checksum_of(load(record).steps[-1].state.model_dump(mode="json")) == match.checksum


def test_a_rehearsal_knows_nothing_of_the_servers_of_who_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "MATCH_LOG_DIR", "CONFIG_FILE"):
        monkeypatch.setenv(name, "/var/lib/live")
    found = environment({"VAR_DIR": "/tmp/scratch"})
    assert "/var/lib/live" not in found.values()
    assert found["VAR_DIR"] == "/tmp/scratch"


def test_the_process_of_its_own_prints_the_verdict(emptied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scratch.main(emptied, 20_000) == 0
    assert Verdict(**json.loads(capsys.readouterr().out)).is_right


def test_it_tells_a_bad_record_from_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "match.json.gz").write_bytes(gzip.compress(b"{}"))
    assert scratch.main(tmp_path / "match.json.gz", 1000) == scratch.BAD_RECORD
    assert "is no record of a match" in capsys.readouterr().err
