"""The log of a completed match, replayed into an empty database: the same outcome, event for event."""

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
from victoryline.replay import log_process
from victoryline.replay.comparison import ReplayResult
from victoryline.replay.log_replay import replay_log
from victoryline.replay.match_log import load, logs_in
from victoryline.replay.recording import InvalidRecordingError
from victoryline.replay.system import ReplayError, environment

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("BX-19")]


def delivery(number: int, **fields: Any) -> Event:
    return ball(number, **{"slot": f"b:2:0:{number}", "detail": {"score": f"{94 + number}/3"}, **fields})


def named_apart(*events: Event) -> tuple[Event, ...]:
    """The same events with another source's ids."""
    return tuple(event.model_copy(update={"id": f"other-{event.id}"}) for event in events)


@pytest.fixture
def record(settings: Any, tmp_path: Path) -> Path:
    """Two sources, one of them late; a corrected ball, a retracted one, a lower score, and the end."""
    settings.MATCH_LOG_DIR = tmp_path / "logs"
    match = make_unread_match()
    heavy = make_ref(match, source=make_source("crex", precedence_weight=100), captured_at=None)
    light = make_ref(match, source=make_source("espncricinfo", precedence_weight=80), captured_at=None)
    events: list[Event] = [delivery(1), delivery(2)]
    read(light, payload_of(light, chasing(95), at=later(0), events=named_apart(delivery(1))))
    read(heavy, payload_of(heavy, chasing(96), at=later(5), events=events))
    events[1] = delivery(2, runs=4, detail={"score": "99/3"})
    read(heavy, payload_of(heavy, chasing(99), at=later(10), events=events))
    read(heavy, payload_of(heavy, chasing(100), at=later(15), events=(delivery(3), delivery(4))))
    for seconds in (20, 25, 30):  # a run and the last ball are retracted, accepted at the third reading
        gone = (*events, delivery(3))
        read(heavy, payload_of(heavy, chasing(98), at=later(seconds), events=gone, events_are_complete=True))
    read(light, payload_of(light, chasing(98), at=later(31), events=named_apart(*events, delivery(3))))
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


def test_the_outcome_is_the_same_event_for_event(record: Path) -> None:
    match = Match.objects.get()
    payload, rows = match.payload, MatchEvent.objects.filter(match=match)
    events = sorted(rows.values_list("source__key", "event_id", "revision", "runs", "is_current"))
    Match.objects.all().delete()
    Source.objects.all().delete()
    waits: list[float] = []
    result = replay_log(load(record), speed=10, wait=waits.append)
    assert result.is_correct, result.differences
    assert (result.expected, result.present, result.missing, result.doubled) == (7, 7, 0, 0)
    assert result.corrections >= 3
    again = Match.objects.get()
    assert again.payload == payload
    assert (again.status, again.lifecycle) == ("completed", "COMPLETED")
    rows = MatchEvent.objects.filter(match=again)
    assert sorted(rows.values_list("source__key", "event_id", "revision", "runs", "is_current")) == events
    assert sum(waits) == pytest.approx(3.5)


def test_sources_keep_their_weights(emptied: Path) -> None:
    replay_log(load(emptied), speed=1000, wait=lambda _: None)
    weights = MatchRef.objects.order_by("source__key").values_list("source__key", "source__precedence_weight")
    assert list(weights) == [("crex", 100), ("espncricinfo", 80)]


def test_a_different_outcome_is_reported(emptied: Path) -> None:
    """A log with another outcome, as if the pipeline had changed."""

    def change(found: dict[str, Any]) -> None:
        found["match"]["payload"]["result"] = "Match drawn"
        current = [row for row in found["events"] if row["is_current"]]
        found["events"].append({**current[0], "id": 10**6, "event_id": "late", "sequence": 1, "is_current": True})
        found["events"][-1]["source_id"] = current[0]["source_id"]

    record = load(spoilt(emptied, change))
    result = replay_log(record, speed=1000, wait=lambda _: None)
    assert not result.is_correct
    assert result.differences == ["result is Australia won by 7 wickets, not Match drawn"]


def test_only_into_an_empty_database(record: Path) -> None:
    with pytest.raises(ReplayError, match="contains matches"):
        replay_log(load(record), speed=1000, wait=lambda _: None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda found: found.update(format="else"), "its format is", id="of another format"),
        pytest.param(lambda found: found["cut_off"].append("snapshots"), "truncated: snapshots", id="cut off"),
        pytest.param(lambda found: found["snapshots"].pop(0), "state 2 does not follow", id="without its beginning"),
        pytest.param(lambda found: found["snapshots"][3]["delta"].pop("innings"), "state 4", id="with a hole"),
        pytest.param(lambda found: found["snapshots"].clear(), "no state", id="without states"),
        pytest.param(lambda found: found["refs"].clear(), "no source", id="without sources"),
        pytest.param(lambda found: found.pop("events"), "events", id="without events"),
    ],
)
def test_an_incomplete_log_is_refused(record: Path, change: Callable[..., object], message: str) -> None:
    with pytest.raises(InvalidRecordingError, match=message):
        load(spoilt(record, change))


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "match.json.gz"
    file.write_bytes(b"not packed")
    with pytest.raises(InvalidRecordingError, match=r"match\.json\.gz is not a match log"):
        load(file)


def test_logs_are_found_in_files_and_folders(record: Path) -> None:
    assert logs_in(record) == [record]
    assert logs_in(record.parent.parent) == [record]
    assert logs_in(Path(__file__)) == []


def test_the_command_refuses_faults_for_a_log(record: Path) -> None:
    with pytest.raises(CommandError, match="a match log is replayed unchanged"):
        call_command("replay", str(record), "--outage", "5")


@pytest.mark.requirement("SO-4")
def test_states_are_those_that_were_served(record: Path) -> None:
    match = Match.objects.get()
    assert checksum_of(load(record).steps[-1].state.model_dump(mode="json")) == match.checksum


def test_the_environment_has_no_external_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "MATCH_LOG_DIR", "CONFIG_FILE"):
        monkeypatch.setenv(name, "/var/lib/live")
    found = environment({"VAR_DIR": "/tmp/scratch"})
    assert "/var/lib/live" not in found.values()
    assert found["VAR_DIR"] == "/tmp/scratch"


def test_the_process_prints_the_result(emptied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert log_process.main(emptied, 20_000) == 0
    assert ReplayResult(**json.loads(capsys.readouterr().out)).is_correct


def test_an_invalid_log_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "match.json.gz").write_bytes(gzip.compress(b"{}"))
    assert log_process.main(tmp_path / "match.json.gz", 1000) == log_process.INVALID_LOG
    assert "is not a match log" in capsys.readouterr().err
