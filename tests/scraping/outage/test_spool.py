"""The spool: updates are on disk first, memory is bounded, and files of dead processes are adopted."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from scraping.outage.spool import HeldMatch, Spool, SpoolLimits, Update
from scraping.payloads import Payload
from scraping.readings import Site
from tests.factories import NOW, cricket_state
from tests.scraping.builders import balls

MATCH = HeldMatch(7, "crex_13KM", "cricket", Site("crex"), "13KM", "http://crex.test/13KM", 0.5)
ROOT = Path(__file__).resolve().parents[3]


def update(number: int = 1, *, is_critical: bool = True, events: int = 3) -> Update:
    payload = Payload(
        source="crex",
        captured_at=NOW + timedelta(seconds=number),
        source_event_id="13KM",
        state=cricket_state(),
        events=balls(*range(1, events + 1)),
    )
    return Update(uuid.UUID(int=number), 7, "crex_13KM", "w-1", is_critical, payload)


def spool(folder: Path, *, name: str = "w-1", items: int = 1000, size: int = 10_000_000) -> Spool:
    return Spool(folder, name=name, limits=SpoolLimits(items, size))


def ids(found: list[Update]) -> list[int]:
    return [one.update_id.int for one in found]


def dead(one: Spool) -> None:
    """Simulates the end of the process: the lock is free, the file stays."""
    if one._file is not None:
        one._file.close()


class TestQueue:
    def test_returns_updates_in_order(self, tmp_path: Path) -> None:
        queue = spool(tmp_path)
        for number in range(1, 6):
            queue.put(update(number, is_critical=bool(number % 2)))
        assert ids(queue.batch(3)) == [1, 2, 3]
        assert queue.batch(1)[0] == update(1)

    def test_keeps_a_batch_until_it_is_done(self, tmp_path: Path) -> None:
        queue = spool(tmp_path)
        for number in range(1, 5):
            queue.put(update(number))
        first = queue.batch(2)
        assert ids(queue.batch(2)) == [1, 2]
        queue.done(first)
        assert ids(queue.batch(9)) == [3, 4]

    def test_leaves_no_file_behind_when_all_is_done(self, tmp_path: Path) -> None:
        queue = spool(tmp_path)
        queue.put(update())
        queue.done(queue.batch(9))
        assert queue.disk_bytes == 0
        queue.close()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.requirement("FR-011", "NFR-015", "EC-2")
    def test_over_the_limit_the_oldest_minor_update_is_dropped_and_logged(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        queue = spool(tmp_path, items=3)
        for number, is_critical in enumerate((True, False, False, True, True), 1):
            queue.put(update(number, is_critical=is_critical))
        assert ids(queue.batch(9)) == [1, 4, 5]
        assert queue.dropped == 2
        assert [record.action for record in caplog.records] == ["update_dropped", "update_dropped"]  # type: ignore[attr-defined]

    @pytest.mark.requirement("FR-011", "NFR-009", "NFR-015")
    def test_critical_updates_are_never_dropped_and_memory_stays_bounded(self, tmp_path: Path) -> None:
        queue = spool(tmp_path, items=10, size=100_000)
        for number in range(1, 101):
            queue.put(update(number))
            assert queue.memory_bytes == 0
        assert queue.disk_bytes > 100_000
        assert ids(queue.batch(200)) == list(range(1, 101))

    def test_a_full_disk_keeps_the_update_in_memory(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        queue = spool(tmp_path, items=2)
        queue.put(update(1))
        assert queue._file is not None
        queue._file.execute("PRAGMA max_page_count = 1")  # as many as it has
        for number in (2, 3, 4):
            queue.put(update(number, events=100))
        assert not queue.is_on_disk
        assert queue.memory_bytes > 0
        assert ids(queue.batch(9)) == [1, 2, 3, 4]
        queue._file.execute("PRAGMA max_page_count = 1000000")
        queue.put(update(5))
        assert queue.memory_bytes == 0
        assert ids(queue.batch(9)) == [1, 2, 3, 4, 5]
        assert [r.levelname for r in caplog.records] == ["CRITICAL"]  # once, not for every update

    def test_without_a_folder_updates_are_in_memory(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        queue = spool(tmp_path / "file")
        queue.put(update(1))
        assert not queue.is_on_disk
        assert ids(queue.batch(9)) == [1]


class TestAfterACrash:
    @pytest.mark.requirement("BX-13")
    def test_the_next_process_adopts_the_file(self, tmp_path: Path) -> None:
        old = spool(tmp_path, name="old")
        old.hold([MATCH])
        old.put(update(1))
        dead(old)
        new = spool(tmp_path, name="new")
        new.put(update(2))
        assert new.adopt() == [MATCH]
        assert ids(new.batch(9)) == [1, 2]
        new.done(new.batch(9))
        assert [path.name for path in tmp_path.glob("*.spool")] == ["new.spool"]

    def test_a_file_of_a_living_process_is_not_adopted(self, tmp_path: Path) -> None:
        holder = (
            "import sys, pathlib; from pydantic import TypeAdapter;"
            "from scraping.outage.spool import Spool, SpoolLimits, Update;"
            "one = Spool(pathlib.Path(sys.argv[1]), name='other', limits=SpoolLimits());"
            "one.put(TypeAdapter(Update).validate_json(sys.argv[2])); print('held', flush=True); input()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", holder, str(tmp_path), TypeAdapter(Update).dump_json(update(1))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            queue = spool(tmp_path)
            assert queue.adopt() == []
            assert (tmp_path / "other.spool").exists()
            process.kill()
        queue.adopt()
        assert queue.batch(9) == [update(1)]
        assert list(tmp_path.glob("other*")) == []

    def test_an_update_that_was_half_written_is_skipped(self, tmp_path: Path) -> None:
        old = spool(tmp_path / "before", name="old")
        old.put(update(1))
        old.put(update(2))
        folder = shutil.copytree(tmp_path / "before", tmp_path / "after")
        log = folder / "old.spool-wal"
        log.write_bytes(log.read_bytes()[:-20])
        new = spool(folder, name="new")
        new.adopt()
        assert ids(new.batch(9)) == [1]

    def test_an_update_that_cannot_be_read_is_left_out(self, tmp_path: Path) -> None:
        queue = spool(tmp_path)
        queue.put(update(1))
        queue.put(update(2))
        assert queue._file is not None
        queue._file.execute("UPDATE updates SET body = '{}' WHERE read_at = (SELECT min(read_at) FROM updates)")
        assert ids(queue.batch(9)) == [2]
        assert len(queue) == 1

    def test_dropped_updates_stay_dropped(self, tmp_path: Path) -> None:
        old = spool(tmp_path, name="old", items=1)
        old.put(update(1, is_critical=False))
        old.put(update(2))
        dead(old)
        new = spool(tmp_path, name="new")
        new.adopt()
        assert ids(new.batch(9)) == [2]

    def test_a_file_that_is_no_spool_is_put_aside(self, tmp_path: Path) -> None:
        (tmp_path / "x.spool").write_bytes(b"hello\n\x00\xff\n" * 100)
        queue = spool(tmp_path)
        assert queue.adopt() == []
        assert len(queue) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["x.damaged"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.booleans()),
        st.tuples(st.just("done"), st.integers(1, 5)),
        st.tuples(st.just("die"), st.none()),
    ),
    max_size=40,
)


@pytest.mark.requirement("BX-13", "NFR-009")
@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_no_critical_update_is_ever_lost_or_reordered(steps: list[tuple[str, Any]], tmp_path_factory: Any) -> None:
    """For any order of puts, writes and kills: critical updates that are not done are kept, in order."""
    folder: Path = tmp_path_factory.mktemp("spool")
    queue, generation, number = spool(folder, name="0", items=4), 0, 0
    expected: list[int] = []
    for step, argument in steps:
        if step == "put":
            number += 1
            queue.put(update(number, is_critical=argument, events=0))
            expected += [number] if argument else []
        elif step == "done":
            batch = queue.batch(argument)
            queue.done(batch)
            expected = [each for each in expected if each not in ids(batch)]
        else:
            dead(queue)
            generation += 1
            queue = spool(folder, name=str(generation), items=4)
            queue.adopt()
        waiting = [one for one in queue.batch(1000) if one.is_critical]
        found = [each for each in ids(waiting) if each in expected]
        assert found == expected
    dead(queue)
