"""The delta loop: in step with the server whatever happens between two looks, every row of the feed exactly once."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping.matches import lifecycle, pairing
from scraping.models import Match, MatchEvent, MatchLifecycle, MatchRef, Snapshot
from scraping.payloads import Event, Status
from tests.client.chaos import ChaosProxy
from tests.client.conftest import MakeClient
from tests.factories import make_match, make_ref
from tests.scraping.builders import ball, chasing, payload_of, read
from victoryline_client import Answer, Change, Client, NotFound, Unauthorized, Unreachable
from victoryline_client.following import EVENT_PAGE, TIMES_AHEAD, follow
from victoryline_client.patience import LONGEST_LOOK

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)

HAPPENINGS = ("bowl", "bowl", "many", "correct", "take back", "again", "prune")
FAULTS = ("drop", "lost", "cut", "garbage", "html", "json", "503", "429", "500")


@dataclass
class Play:
    """A match in play: what its source shows, and readings of it."""

    ref: MatchRef
    runs: int = 95
    balls: dict[int, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bowl()

    def bowl(self, count: int = 1, **fields: Any) -> None:
        for _ in range(count):
            number = max(self.balls, default=0) + 1
            self.balls[number] = ball(number, **fields)
            self.runs += 1
        self.read()

    def correct(self, number: int, runs: int) -> None:
        self.balls[number] = self.balls[number].model_copy(update={"runs": runs})
        self.read()

    def take_back(self, number: int) -> None:
        del self.balls[number]
        self.read()

    def end(self) -> None:
        self.read(status=Status.COMPLETED, result="Australia won")

    def read(self, **fields: Any) -> None:
        self.ref.refresh_from_db()
        state = chasing(self.runs, start_time=self.ref.match.start_time, **fields)
        now = timezone.now()
        events = self.balls.values()
        read(self.ref, payload_of(self.ref, state, at=now, events=events, events_are_complete=True), at=now)


@pytest.fixture
def play(ref: MatchRef) -> Play:
    return Play(ref)


def rows_of(match_id: int) -> list[int]:
    """The ids of the feed's rows as the database has them."""
    return list(MatchEvent.objects.filter(match=match_id, is_served=True).order_by("pk").values_list("pk", flat=True))


def document_of(client: Client, match_id: int) -> dict[str, Any]:
    return {name: value for name, value in client.match(match_id).data.items() if name != "_metadata"}


def steps(*actions: Callable[[], object]) -> Callable[[float], None]:
    """A sleep during which the next of these happens; nothing when all have."""
    left = deque(actions)

    def sleep(_: float) -> None:
        if left:
            left.popleft()()

    return sleep


@pytest.mark.requirement("BX-3", "SO-4")
class TestChanges:
    def test_the_first_is_the_whole_match_with_its_feed(self, client: Client, play: Play) -> None:
        play.bowl(3)
        first = next(client.follow(play.ref.match_id))
        assert first.is_whole
        assert first.document == document_of(client, play.ref.match_id)
        assert [row["id"] for row in first.events] == rows_of(play.ref.match_id)
        assert first.freshness.state == "fresh"

    def test_then_only_what_has_changed(self, client: Client, proxy: ChaosProxy, play: Play) -> None:
        changes = client.follow(play.ref.match_id, sleep=steps(play.bowl))
        next(changes)
        change = next(changes)
        assert not change.is_whole
        assert set(change.changed) == {"score", "innings"}
        assert change.document["score"]["team_b"]["runs"] == play.runs
        assert [(row["action"], row["over"]) for row in change.events] == [("add", "0.2")]
        assert proxy.seen[-1].path.endswith(f"/delta?since={change.sequence - 1}")

    def test_a_correction_and_what_is_taken_back_come_as_rows_of_their_own(self, client: Client, play: Play) -> None:
        play.bowl(3)
        correct, take_back = lambda: play.correct(2, 4), lambda: play.take_back(3)
        changes = client.follow(play.ref.match_id, sleep=steps(correct, take_back))
        first, corrected, taken_back = next(changes), next(changes), next(changes)
        known = {row["event_id"]: row for row in first.events}
        (row,) = corrected.events
        assert (row["action"], row["runs"], known[row["event_id"]]["runs"]) == ("update", 4, 1)
        assert row["revision"] > known[row["event_id"]]["revision"]
        (row,) = taken_back.events
        assert (row["action"], row["event_id"] in known) == ("retract", True)

    def test_looks_without_news_cost_nothing_and_say_nothing(
        self, client: Client, proxy: ChaosProxy, play: Play
    ) -> None:
        quiet = [lambda: None] * 5
        changes = client.follow(play.ref.match_id, sleep=steps(*quiet, play.bowl))
        next(changes)
        next(changes)
        assert [each.status for each in proxy.asked("/delta")] == [200, 304, 304, 304, 304, 200]

    def test_more_rows_than_fit_into_one_answer(self, client: Client, play: Play) -> None:
        changes = client.follow(play.ref.match_id, sleep=steps(lambda: play.bowl(130)))
        seen = [row["id"] for row in next(changes).events]
        many = next(changes)
        assert len(many.events) == 130
        assert seen + [row["id"] for row in many.events] == rows_of(play.ref.match_id)

    def test_goes_on_after_a_restart_of_the_consumer(self, client: Client, play: Play) -> None:
        first = next(client.follow(play.ref.match_id))
        play.bowl(2)
        again = next(client.follow(play.ref.match_id, after=first.next_since))
        assert [row["over"] for row in again.events] == ["0.2", "0.3"]
        assert again.next_since == rows_of(play.ref.match_id)[-1]

    def test_a_match_that_was_never_read_is_followed_from_its_first_reading(self, client: Client) -> None:
        ref = make_ref(make_match(now=timezone.now(), sequence=0, payload={}, last_scraper_update=None))
        changes = client.follow(ref.match_id, sleep=steps(lambda: Play(ref)))
        assert next(changes).freshness.state == "unknown"
        assert next(changes).document["score"]["team_b"]["runs"] == 96


class TestWhole:
    """What can't be told as a change."""

    @pytest.mark.requirement("SO-4")
    def test_too_long_ago_is_read_whole_without_losing_a_row(
        self, client: Client, proxy: ChaosProxy, play: Play
    ) -> None:
        def overflow() -> None:
            play.bowl(2)
            play.correct(1, 6)
            Snapshot.objects.exclude(sequence=Match.objects.get().sequence).delete()

        changes = client.follow(play.ref.match_id, sleep=steps(overflow))
        before, after = next(changes), next(changes)
        assert [each.status for each in proxy.asked("/delta")] == [410]
        assert after.is_whole
        assert set(after.changed) == {"score", "innings", "sequence"}
        assert after.document == document_of(client, play.ref.match_id)
        assert [row["id"] for row in (*before.events, *after.events)] == rows_of(play.ref.match_id)

    def test_a_pause_is_seen_and_so_is_its_end(self, client: Client, play: Play) -> None:
        match_id, now = play.ref.match_id, timezone.now()

        def pause() -> None:
            lifecycle.pause(match_id=match_id, until=now + timedelta(hours=1), reason="x", actor="me", now=now)

        def resume() -> None:
            lifecycle.resume(match_id=match_id, actor="me", now=now)

        changes = client.follow(match_id, sleep=steps(pause, resume))
        found = [next(changes) for _ in range(3)]
        assert [each.document["lifecycle"] for each in found] == ["ACTIVE", "PAUSED", "ACTIVE"]
        assert found[1].freshness.warning

    def test_a_match_that_became_another_one_is_followed_there(self, client: Client, play: Play) -> None:
        other = Play(make_ref(make_match(now=timezone.now()), source="espn"))
        other.bowl(4)
        keep, gone = other.ref.match_id, play.ref.match_id
        changes = client.follow(gone, sleep=steps(lambda: pairing.join(keep, gone, actor="me", now=timezone.now())))
        next(changes)
        change = next(changes)
        assert (change.is_whole, change.document["id"]) == (True, keep)
        assert change.document == document_of(client, keep)
        assert [row["id"] for row in change.events] == rows_of(keep)

    @pytest.mark.parametrize("number", [int, str])
    def test_what_it_became_is_told_once_too(
        self, client: Client, play: Play, number: Callable[[int], int | str]
    ) -> None:
        other = Play(make_ref(make_match(now=timezone.now()), source="espn"))
        other.bowl(EVENT_PAGE)  # and one before: two pages
        keep, gone = other.ref.match_id, play.ref.match_id

        def join() -> None:
            pairing.join(keep, gone, actor="me", now=timezone.now())

        changes = client.follow(number(gone), sleep=steps(join, play.bowl))
        next(changes)
        whole, step = next(changes), next(changes)
        assert (whole.is_whole, step.is_whole, len(step.events)) == (True, False, 1)
        assert [row["id"] for row in (*whole.events, *step.events)] == rows_of(keep)

    def test_who_was_away_meanwhile_begins_its_feed_anew(self, client: Client, play: Play) -> None:
        """What both matches told has another id there: nothing is doubled or lost for who forgets what it had."""
        other = Play(make_ref(make_match(now=timezone.now()), source="espn"))
        other.bowl(4)
        play.bowl(2)
        keep, gone = other.ref.match_id, play.ref.match_id
        saved = next(client.follow(gone)).next_since
        pairing.join(keep, gone, actor="me", now=timezone.now())
        again = next(client.follow(gone, after=saved))
        assert again.document["id"] == keep
        assert [row["id"] for row in again.events] == rows_of(keep)

    def test_a_process_that_is_a_moment_behind_is_waited_for(
        self, client: Client, proxy: ChaosProxy, waits: list[float], play: Play
    ) -> None:
        play.bowl(2)
        changes = client.follow(play.ref.match_id, every_look=True)
        first = next(changes)
        Match.objects.update(sequence=first.sequence - 1)  # as another process still has it
        behind = next(changes)
        assert behind.trouble is not None
        assert behind.document is first.document
        Match.objects.update(sequence=first.sequence)
        assert next(changes).trouble is None
        assert all(wait >= 1 for wait in waits)

    def test_a_feed_that_is_a_moment_behind_its_match_loses_no_row(self, client: Client, play: Play) -> None:
        """Two web processes: one tells the match after a ball, the other one the feed before it."""

        class TwoProcesses:
            def __init__(self) -> None:
                self.late = [client.events(play.ref.match_id, 0, limit=100)]

            def events(self, *args: Any, **kwargs: Any) -> Answer:
                return self.late.pop() if self.late else client.events(*args, **kwargs)

            def __getattr__(self, name: str) -> Any:
                return getattr(client, name)

        server = TwoProcesses()
        play.bowl()
        changes = follow(server, play.ref.match_id, sleep=lambda _: None, every_look=True)
        behind, first = next(changes), next(changes)
        assert "behind" in str(behind.trouble)
        assert [row["id"] for row in first.events] == rows_of(play.ref.match_id)

    def test_a_server_restored_from_a_backup_is_believed_in_the_end(self, client: Client, play: Play) -> None:
        play.bowl(2)
        changes = client.follow(play.ref.match_id)
        first = next(changes)
        Match.objects.update(sequence=first.sequence - 1)
        assert next(changes).sequence == first.sequence - 1

    def test_a_place_in_a_feed_that_was_lost_is_given_up_in_the_end(
        self, make_client: MakeClient, waits: list[float], play: Play
    ) -> None:
        play.bowl(2)
        saved = rows_of(play.ref.match_id)[-1] + 1000
        first = next(make_client().follow(play.ref.match_id, after=saved))
        assert [row["id"] for row in first.events] == rows_of(play.ref.match_id)
        assert len(waits) == TIMES_AHEAD - 1

    def test_its_feed_begins_anew_for_numbers_are_given_twice(self, client: Client, play: Play) -> None:
        play.bowl(2)
        changes = client.follow(play.ref.match_id)
        next(changes)
        lost = MatchEvent.objects.order_by("pk").last()
        MatchEvent.objects.filter(pk=lost.pk).update(event_id="2-99", sequence=lost.sequence - 1)  # as if written anew
        Match.objects.update(sequence=lost.sequence - 1)
        again = next(changes)
        assert [row["id"] for row in again.events] == rows_of(play.ref.match_id)
        assert (again.events[-1]["event_id"], again.next_since) == ("2-99", lost.pk)


@pytest.mark.requirement("BX-2")
class TestPace:
    def test_never_before_the_server_has_read_its_source_again(
        self, make_client: MakeClient, waits: list[float], play: Play
    ) -> None:
        changes = make_client().follow(play.ref.match_id, every_look=True)
        for seconds, least, most in ((0, 1, 2), (20, 20, 22), (500, LONGEST_LOOK, LONGEST_LOOK + 1)):
            MatchRef.objects.update(next_poll_at=timezone.now() + timedelta(seconds=seconds))
            next(changes)
            next(changes)
            assert least <= waits[-1] <= most, seconds

    def test_ends_one_look_after_the_end(self, client: Client, waits: list[float], play: Play) -> None:
        changes = client.follow(play.ref.match_id, final_wait=45, sleep=steps(play.end))
        assert [each.document["status"] for each in changes] == ["live", "completed"]
        late = client.follow(play.ref.match_id, final_wait=45, sleep=waits.append)
        assert len(list(late)) == 1
        assert waits == [45]

    def test_a_correction_after_the_end_is_not_missed(self, client: Client, play: Play) -> None:
        late = steps(play.end, lambda: play.read(status=Status.COMPLETED, result="Australia won by 4 wickets"))
        results = [each.document["result"] for each in client.follow(play.ref.match_id, sleep=late)]
        assert results == ["", "Australia won", "Australia won by 4 wickets"]


class TestTrouble:
    def test_is_waited_out_and_told_if_asked_for(
        self, client: Client, proxy: ChaosProxy, waits: list[float], play: Play
    ) -> None:
        changes = client.follow(play.ref.match_id, every_look=True)
        first = next(changes)
        proxy.go_away()
        play.bowl()
        away = [next(changes) for _ in range(4)]
        assert all(each.trouble is not None and each.document is first.document for each in away)
        assert all(0.25 <= wait <= 5 for wait in waits[1:])
        proxy.come_back()
        back = next(changes)
        assert back.trouble is None
        assert back.document["score"]["team_b"]["runs"] == play.runs

    def test_somebody_elses_json_is_not_taken_for_the_match(
        self, client: Client, proxy: ChaosProxy, play: Play
    ) -> None:
        def become_old_news() -> None:
            play.bowl()
            Snapshot.objects.exclude(sequence=Match.objects.get().sequence).delete()
            proxy.faults.extend(["", "json"])  # the delta is refused, and the whole match is somebody else's

        changes = client.follow(play.ref.match_id, sleep=steps(become_old_news), every_look=True)
        first, mistaken, after = next(changes), next(changes), next(changes)
        assert isinstance(mistaken.trouble, Unreachable)
        assert mistaken.document is first.document
        assert [row["id"] for row in (*first.events, *after.events)] == rows_of(play.ref.match_id)

    def test_the_server_says_how_long(self, client: Client, proxy: ChaosProxy, waits: list[float], play: Play) -> None:
        changes = client.follow(play.ref.match_id, every_look=True)
        next(changes)
        proxy.retry_after = "17"
        proxy.faults.append("429")
        next(changes)
        next(changes)
        assert 17 <= waits[-1] <= 18

    def test_a_balancer_without_servers_does_not_end_it(self, client: Client, proxy: ChaosProxy, play: Play) -> None:
        changes = client.follow(play.ref.match_id, every_look=True)
        next(changes)
        proxy.faults.append("nowhere")
        assert isinstance(next(changes).trouble, Unreachable)
        assert next(changes).trouble is None

    def test_what_waiting_does_not_help_is_raised(self, make_client: MakeClient, play: Play) -> None:
        with pytest.raises(NotFound):
            next(make_client().follow("no_such"))
        with pytest.raises(Unauthorized):
            next(make_client(key="vl_wrong").follow(play.ref.match_id))


@dataclass
class Chaos:
    """What happens between two looks, drawn by a seed: play, corrections, pruning, pauses, faults, restarts."""

    play: Play
    proxy: ChaosProxy
    client: Client
    dice: random.Random
    looks_left: int
    waits: list[float] = field(default_factory=list)
    bag: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.looks_left -= 1
        if self.proxy.is_away:
            self.proxy.come_back()
        if self.looks_left == 0:
            self.proxy.faults.clear()
            self.play.end()
        elif self.looks_left > 0:
            for _ in range(self.dice.randint(0, 2)):
                self.happen()
            self.trouble()

    def happen(self) -> None:
        play, numbers = self.play, sorted(self.play.balls)
        if not self.bag:  # all of them, in another order each time
            self.bag = self.dice.sample(HAPPENINGS, len(HAPPENINGS))
        match self.bag.pop():
            case "bowl":
                play.bowl()
            case "many":
                play.bowl(self.dice.randint(2, 9))
            case "correct":
                play.correct(self.dice.choice(numbers), self.dice.randint(0, 6))
            case "take back":
                play.take_back(self.dice.choice(numbers[-3:]))
            case "prune":
                Snapshot.objects.exclude(sequence=Match.objects.get().sequence).delete()
            case _:
                play.read()

    def trouble(self) -> None:
        if self.dice.random() < 0.1:
            self.proxy.go_away()
        if self.dice.random() < 0.1:
            self.client._tokens._token = "ended"
        self.proxy.faults.extend(self.dice.choice(FAULTS) for _ in range(self.dice.choice((0, 0, 1, 2))))


@pytest.mark.requirement("BX-3", "BX-4", "SO-4")
@pytest.mark.both
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_the_document_is_the_servers_and_each_row_comes_once(
    make_client: MakeClient, proxy: ChaosProxy, play: Play, seed: int
) -> None:
    client, dice = make_client(), random.Random(seed)
    play.bowl(8)
    chaos = Chaos(play, proxy, client, dice, looks_left=16)
    states: dict[int, Any] = {}
    changes: list[Change] = []
    for change in client.follow(play.ref.match_id, sleep=chaos.sleep, every_look=True):
        changes.append(change)
        states |= dict(Snapshot.objects.values_list("sequence", "payload"))
        if change.trouble is None:
            then = states[change.sequence]
            assert all(change.document[name] == then[name] for name in ("score", "innings", "status"))
    assert any(each.trouble is not None for each in changes)
    assert any(each.is_whole for each in changes[1:])
    assert [row["id"] for each in changes for row in each.events] == rows_of(play.ref.match_id)
    assert {row["action"] for each in changes for row in each.events} == {"add", "update", "retract"}
    assert changes[-1].document == document_of(client, play.ref.match_id)
    assert changes[-1].document["lifecycle"] == MatchLifecycle.COMPLETED
    sequences = [each.sequence for each in changes if each.sequence]
    assert sequences == sorted(sequences)
    assert min(chaos.waits) >= 0.25
