"""`Client.follow`: the document is always a state of the server, and every row of the feed comes exactly once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone

from scraping.matches import lifecycle, pairing
from scraping.models import Match, MatchEvent, MatchLifecycle, MatchRef, Snapshot
from tests.client.conftest import MakeClient, Play, rows_of, steps
from tests.client.faulty_proxy import FaultyProxy
from tests.factories import make_match, make_ref
from victoryline_client import Change, Client, Problem
from victoryline_client.follower import MAX_TIMES_BEHIND

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)

STEPS = ("bowl", "bowl", "bowl several", "correct", "retract", "ingest again")
FAULTS = ("drop", "lost", "cut", "garbage", "html", "json", "503", "429", "500")


def document_of(client: Client, match_id: int) -> dict[str, Any]:
    return {name: value for name, value in client.match(match_id).data.items() if name != "_metadata"}


@pytest.mark.requirement("BX-3", "SO-4")
class TestChanges:
    def test_the_first_is_the_full_match_with_its_feed(self, client: Client, play: Play) -> None:
        play.bowl(3)
        first = next(client.follow(play.ref.match_id))
        assert first.document == first.changed == document_of(client, play.ref.match_id)
        assert [row["id"] for row in first.events] == rows_of(play.ref.match_id)
        assert first.freshness.state == "fresh"

    def test_later_ones_have_only_new_values_and_rows(self, make_client: MakeClient, play: Play) -> None:
        changes = make_client(sleep=steps(play.bowl)).follow(play.ref.match_id)
        next(changes)
        change = next(changes)
        assert set(change.changed) == {"score", "innings", "sequence"}
        assert change.document["score"]["team_b"]["runs"] == play.runs
        assert [(row["action"], row["over"]) for row in change.events] == [("add", "0.2")]

    def test_corrections_and_retractions_are_rows(self, make_client: MakeClient, play: Play) -> None:
        play.bowl(3)
        client = make_client(sleep=steps(lambda: play.correct(2, 4), lambda: play.retract(3)))
        changes = client.follow(play.ref.match_id)
        first, corrected, retracted = next(changes), next(changes), next(changes)
        known = {row["event_id"]: row for row in first.events}
        (row,) = corrected.events
        assert (row["action"], row["runs"], known[row["event_id"]]["runs"]) == ("update", 4, 1)
        assert row["revision"] > known[row["event_id"]]["revision"]
        (row,) = retracted.events
        assert (row["action"], row["event_id"] in known) == ("retract", True)

    def test_polls_without_changes_are_304_and_silent(
        self, make_client: MakeClient, proxy: FaultyProxy, play: Play
    ) -> None:
        unchanged = [lambda: None] * 5
        changes = make_client(sleep=steps(*unchanged, play.bowl)).follow(play.ref.match_id)
        next(changes)
        next(changes)
        requests = [each for each in proxy.requests_for("/matches") if "/events" not in each.path]
        assert [each.status for each in requests] == [200, *[304] * 5, 200]
        assert len(proxy.requests_for("/events")) == 2

    def test_more_rows_than_one_page(self, make_client: MakeClient, play: Play) -> None:
        changes = make_client(sleep=steps(lambda: play.bowl(130))).follow(play.ref.match_id)
        seen = [row["id"] for row in next(changes).events]
        many = next(changes)
        assert len(many.events) == 130
        assert seen + [row["id"] for row in many.events] == rows_of(play.ref.match_id)

    def test_continues_after_a_restart_of_the_consumer(self, client: Client, play: Play) -> None:
        first = next(client.follow(play.ref.match_id))
        play.bowl(2)
        again = next(client.follow(play.ref.match_id, after=first.next_since))
        assert [row["over"] for row in again.events] == ["0.2", "0.3"]
        assert again.next_since == rows_of(play.ref.match_id)[-1]

    def test_a_match_without_data_is_followed_from_its_first_read(self, make_client: MakeClient) -> None:
        ref = make_ref(make_match(now=timezone.now(), sequence=0, payload={}, last_scraper_update=None))
        changes = make_client(sleep=steps(lambda: Play(ref))).follow(ref.match_id)
        assert next(changes).freshness.state == "unknown"
        assert next(changes).document["score"]["team_b"]["runs"] == 96

    def test_a_pause_and_its_end_are_changes(self, make_client: MakeClient, play: Play) -> None:
        match_id, now = play.ref.match_id, timezone.now()

        def pause() -> None:
            lifecycle.pause(match_id=match_id, until=now + timedelta(hours=1), reason="x", actor="me", now=now)

        def resume() -> None:
            lifecycle.resume(match_id=match_id, actor="me", now=now)

        changes = make_client(sleep=steps(pause, resume)).follow(match_id)
        found = [next(changes) for _ in range(3)]
        assert [each.document["lifecycle"] for each in found] == ["ACTIVE", "PAUSED", "ACTIVE"]
        assert found[1].freshness.state == "paused"


class TestMerge:
    @pytest.fixture
    def other(self) -> Play:
        play = Play(make_ref(make_match(now=timezone.now()), source="espn"))
        play.bowl(100)  # two pages of the feed, with the first ball
        return play

    @pytest.mark.parametrize("form", [int, str])
    def test_a_merged_match_is_followed_under_the_other_id(
        self, make_client: MakeClient, play: Play, other: Play, form: Callable[[int], int | str]
    ) -> None:
        keep, gone = other.ref.match_id, play.ref.match_id

        def join() -> None:
            pairing.merge(keep, gone, actor="me", now=timezone.now())

        changes = make_client(sleep=steps(join, play.bowl)).follow(form(gone))
        next(changes)
        merged, later = next(changes), next(changes)
        assert merged.document["id"] == keep
        assert len(later.events) == 1
        assert [row["id"] for row in (*merged.events, *later.events)] == rows_of(keep)

    def test_a_saved_place_of_a_merged_match_restarts_the_feed(self, client: Client, play: Play, other: Play) -> None:
        keep, gone = other.ref.match_id, play.ref.match_id
        saved = next(client.follow(gone)).next_since
        pairing.merge(keep, gone, actor="me", now=timezone.now())
        again = next(client.follow(gone, after=saved))
        assert again.document["id"] == keep
        assert [row["id"] for row in again.events] == rows_of(keep)


class TestServerBehind:
    def test_a_late_process_is_waited_for(self, client: Client, play: Play) -> None:
        play.bowl(2)
        changes = client.follow(play.ref.match_id, every_poll=True)
        first = next(changes)
        Match.objects.update(sequence=first.document["sequence"] - 1)
        late = next(changes)
        assert "behind" in str(late.error)
        assert late.document is first.document
        Match.objects.update(sequence=first.document["sequence"])
        assert next(changes).error is None

    def test_a_late_feed_loses_no_row(self, make_client: MakeClient, proxy: FaultyProxy, play: Play) -> None:
        proxy.applies_to = lambda path: "/events" in path
        proxy.faults.append("late")
        changes = make_client().follow(play.ref.match_id, every_poll=True)
        late, first = next(changes), next(changes)
        assert "behind" in str(late.error)
        assert [row["id"] for row in first.events] == rows_of(play.ref.match_id)

    def test_a_restored_backup_is_read_from_the_start(self, client: Client, waits: list[float], play: Play) -> None:
        """Row ids are used again after a restore: rows with known ids are new."""
        play.bowl(2)
        changes = client.follow(play.ref.match_id)
        next(changes)
        waits.clear()
        lost = MatchEvent.objects.order_by("pk").last()
        MatchEvent.objects.filter(pk=lost.pk).update(event_id="2-99", sequence=lost.sequence - 1)
        Match.objects.update(sequence=lost.sequence - 1)
        again = next(changes)
        assert again.document["sequence"] == lost.sequence - 1
        assert [row["id"] for row in again.events] == rows_of(play.ref.match_id)
        assert (again.events[-1]["event_id"], again.next_since) == ("2-99", lost.pk)
        assert len(waits) == 1 + MAX_TIMES_BEHIND

    def test_a_saved_place_beyond_the_feed_restarts_it(self, client: Client, waits: list[float], play: Play) -> None:
        play.bowl(2)
        saved = rows_of(play.ref.match_id)[-1] + 1000
        first = next(client.follow(play.ref.match_id, after=saved))
        assert [row["id"] for row in first.events] == rows_of(play.ref.match_id)
        assert len(waits) == MAX_TIMES_BEHIND


@pytest.mark.requirement("BX-2")
class TestPace:
    def test_polls_when_the_server_has_read_its_source_again(
        self, client: Client, waits: list[float], play: Play
    ) -> None:
        changes = client.follow(play.ref.match_id, every_poll=True)
        for seconds, least, most in ((0, 1, 2), (20, 19, 22), (500, 60, 66)):
            MatchRef.objects.update(next_poll_at=timezone.now() + timedelta(seconds=seconds))
            next(changes)
            next(changes)
            assert least <= waits[-1] <= most, seconds

    def test_ends_one_poll_after_the_end(self, make_client: MakeClient, waits: list[float], play: Play) -> None:
        changes = make_client(sleep=steps(play.end)).follow(play.ref.match_id)
        assert [each.document["status"] for each in changes] == ["live", "completed"]
        assert len(list(make_client().follow(play.ref.match_id, final_wait=45))) == 1
        assert waits == [45]

    def test_a_correction_after_the_end_is_a_change(self, make_client: MakeClient, play: Play) -> None:
        client = make_client(sleep=steps(play.end, lambda: play.end("Australia won by 4 wickets")))
        results = [each.document["result"] for each in client.follow(play.ref.match_id)]
        assert results == ["", "Australia won", "Australia won by 4 wickets"]


class TestErrors:
    def test_temporary_ones_are_retried_and_reported_on_request(
        self, client: Client, proxy: FaultyProxy, waits: list[float], play: Play
    ) -> None:
        changes = client.follow(play.ref.match_id, every_poll=True)
        first = next(changes)
        proxy.stop()
        play.bowl()
        failed = [next(changes) for _ in range(4)]
        assert all(each.error is not None and each.document is first.document for each in failed)
        assert not any(each.has_changes for each in failed)
        assert all(0.25 <= wait <= 5 for wait in waits[1:])
        proxy.start()
        recovered = next(changes)
        assert recovered.error is None
        assert recovered.document["score"]["team_b"]["runs"] == play.runs

    def test_retry_after_is_respected(self, client: Client, proxy: FaultyProxy, waits: list[float], play: Play) -> None:
        changes = client.follow(play.ref.match_id, every_poll=True)
        next(changes)
        proxy.retry_after = "17"
        proxy.faults.append("429")
        next(changes)
        next(changes)
        assert 17 <= waits[-1] <= 18

    @pytest.mark.parametrize("fault", ["json", "not_found", "html"])
    def test_a_response_of_another_server_is_temporary(
        self, client: Client, proxy: FaultyProxy, play: Play, fault: str
    ) -> None:
        changes = client.follow(play.ref.match_id, every_poll=True)
        first = next(changes)
        play.bowl()
        proxy.faults.append(fault)
        failed, after = next(changes), next(changes)
        assert isinstance(failed.error, httpx.TransportError)
        assert failed.document is first.document
        assert [row["id"] for row in (*first.events, *after.events)] == rows_of(play.ref.match_id)

    def test_other_refusals_are_raised(self, make_client: MakeClient, play: Play) -> None:
        with pytest.raises(Problem, match="404"):
            next(make_client().follow("no_such"))
        with pytest.raises(Problem, match="401"):
            next(make_client(key="vl_wrong").follow(play.ref.match_id))


@dataclass
class RandomSession:
    """Events between two polls, drawn by a seed: play, corrections, network faults, server restarts."""

    play: Play
    proxy: FaultyProxy
    random: random.Random
    polls_left: int
    client: Client | None = None
    waits: list[float] = field(default_factory=list)
    queue: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.polls_left -= 1
        if self.proxy.is_stopped:
            self.proxy.start()
        if self.polls_left == 0:
            self.proxy.faults.clear()
            self.play.end()
        elif self.polls_left > 0:
            for _ in range(self.random.randint(0, 2)):
                self.step()
            self.inject_faults()

    def step(self) -> None:
        play, numbers = self.play, sorted(self.play.balls)
        if not self.queue:  # all steps, in another order each time
            self.queue = self.random.sample(STEPS, len(STEPS))
        match self.queue.pop():
            case "bowl":
                play.bowl()
            case "bowl several":
                play.bowl(self.random.randint(2, 9))
            case "correct":
                play.correct(self.random.choice(numbers), self.random.randint(0, 6))
            case "retract":
                play.retract(self.random.choice(numbers[-3:]))
            case _:
                play.ingest()

    def inject_faults(self) -> None:
        if self.random.random() < 0.1:
            self.proxy.stop()
        if self.random.random() < 0.1:
            self.client._token = "expired"
        self.proxy.faults.extend(self.random.choice(FAULTS) for _ in range(self.random.choice((0, 0, 1, 2))))


@pytest.mark.requirement("BX-3", "BX-4", "SO-4")
@pytest.mark.both
@pytest.mark.parametrize("seed", [1, 2])
def test_under_random_faults_each_row_comes_once_and_the_document_is_the_servers(
    make_client: MakeClient, proxy: FaultyProxy, play: Play, seed: int
) -> None:
    play.bowl(8)
    session = RandomSession(play, proxy, random.Random(seed), polls_left=16)
    session.client = client = make_client(sleep=session.sleep)
    states: dict[int, Any] = {}
    changes: list[Change] = []
    for change in client.follow(play.ref.match_id, every_poll=True):
        changes.append(change)
        states |= dict(Snapshot.objects.values_list("sequence", "payload"))
        if change.error is None:
            then = states[change.document["sequence"]]
            assert all(change.document[name] == then[name] for name in ("score", "innings", "status"))
    assert any(each.error is not None for each in changes)
    assert [row["id"] for each in changes for row in each.events] == rows_of(play.ref.match_id)
    assert {row["action"] for each in changes for row in each.events} == {"add", "update", "retract"}
    assert changes[-1].document == document_of(client, play.ref.match_id)
    assert changes[-1].document["lifecycle"] == MatchLifecycle.COMPLETED
    sequences = [each.document["sequence"] for each in changes if each.document]
    assert sequences == sorted(sequences)
    assert min(session.waits) >= 0.25
