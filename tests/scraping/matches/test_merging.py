"""One match at two sources: found, merged without loss or duplicates, or left to an operator."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from monitoring.invariants import CheckContext, check_rules
from scraping import journal
from scraping.documents.queries import find_match, page_of_events
from scraping.journal import NewTask
from scraping.matches import discovery, importance, pairing
from scraping.matches.pairing.candidates import Candidates
from scraping.matches.reconcile.states import swap_sides
from scraping.models import (
    Conflict,
    Importance,
    Lineup,
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    PairingReview,
    PairingState,
    PlayerFigure,
    ScrapeTask,
    Snapshot,
    SnapshotType,
    TaskState,
    TeamAlias,
)
from scraping.names import squeezed
from scraping.payloads import DiscoveredMatch, Event, Resource, Sport, Status, Team, Teams
from scraping.signals import matches_joined
from tests.factories import (
    NOW,
    cricket_state,
    football_state,
    make_event,
    make_match,
    make_ref,
    make_snapshot,
    make_source,
    make_unread_match,
)
from tests.scraping.builders import balls, chasing, later, payload_of, read

pytestmark = [pytest.mark.both, pytest.mark.django_db]

INDIA, AUSTRALIA = Team(name="India", short_name="IND"), Team(name="Australia", short_name="AUS")


def listed(source: str, key: str, *teams: Team, minutes: float | None = 0, **more: Any) -> DiscoveredMatch:
    """A row of a source's list; India against Australia unless said otherwise."""
    values: dict[str, Any] = {
        "source_event_id": key,
        "url": f"https://{source}.example/match/{key}",
        "sport": Sport.CRICKET,
        "status": Status.UPCOMING,
        "teams": teams or (INDIA, AUSTRALIA),
        "start_time": None if minutes is None else NOW + timedelta(minutes=minutes),
    }
    return DiscoveredMatch(**values | more)


def register(source: str, *found: DiscoveredMatch) -> int:
    return discovery.register(make_source(source), found, now=NOW)


@pytest.mark.requirement("FS-19")
class TestDiscovery:
    def test_a_match_that_two_sources_list_is_one_match(self) -> None:
        register("crex", listed("crex", "V1"))
        register("espn", listed("espn", "77", minutes=10))
        assert Match.objects.count() == 1
        assert {ref.key for ref in MatchRef.objects.all()} == {"crex_V1", "espn_77"}

    def test_a_crossed_source_is_marked(self) -> None:
        register("crex", listed("crex", "V1"))
        register("espn", listed("espn", "77", AUSTRALIA, INDIA))
        assert dict(MatchRef.objects.values_list("source__key", "is_crossed")) == {"crex": False, "espn": True}

    @pytest.mark.parametrize(
        ("what", "other"),
        [
            ("the next match of the series", {"minutes": 24 * 60}),
            ("the women's", {"teams": (Team(name="India Women"), Team(name="Australia Women"))}),
            ("another sport", {"sport": Sport.FOOTBALL}),
        ],
    )
    def test_a_different_match_is_not_merged(self, what: str, other: dict[str, Any]) -> None:
        register("crex", listed("crex", "V1"))
        register("espn", listed("espn", "77", **other))
        assert pairing.sweep(now=NOW) == 0
        assert Match.objects.count() == 2
        assert not PairingReview.objects.exists()

    def test_a_match_that_was_merged_meanwhile_gets_no_ref(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The list was compared with the matches from before its write began."""
        first, second = pair()
        stale = pairing.Finder(make_source("sofascore"), "cricket", now=NOW)
        stale.known = Candidates(one for one in stale.known.all if one.match_id == second.pk)
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        monkeypatch.setattr(pairing, "Finder", lambda *_, **__: stale)
        assert register("sofascore", listed("sofascore", "S1", status=Status.LIVE, minutes=-120)) == 1
        found = MatchRef.objects.get(source__key="sofascore").match
        assert found.merged_into is None
        monkeypatch.undo()
        assert pairing.sweep(now=NOW) == 1
        assert first.refs.count() == 3

    def test_a_match_that_got_a_ref_of_the_source_meanwhile_gets_no_second(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        register("crex", listed("crex", "C1"))
        stale = pairing.Finder(make_source("espn"), "cricket", now=NOW)
        register("espn", listed("espn", "E1"))
        monkeypatch.setattr(pairing, "Finder", lambda *_, **__: stale)
        register("espn", listed("espn", "E2"))
        assert Match.objects.count() == 2

    def test_a_source_does_not_list_one_match_twice(self) -> None:
        register("crex", listed("crex", "V1"))
        assert register("espn", listed("espn", "77"), listed("espn", "78", minutes=15)) == 2
        assert Match.objects.count() == 2
        assert sorted(Match.objects.get(refs__source__key="crex").refs.values_list("source__key", flat=True)) == [
            "crex",
            "espn",
        ]

    def test_a_doubtful_pair_is_left_to_an_operator(self) -> None:
        register("crex", listed("crex", "V1"))
        register("espn", listed("espn", "77", minutes=75))
        assert pairing.sweep(now=NOW) == 0
        assert Match.objects.count() == 2
        review = PairingReview.objects.get()
        assert review.state == PairingState.OPEN
        assert any("75 minutes" in reason for reason in review.reasons)

    def test_an_alias_makes_two_names_one_team(self) -> None:
        TeamAlias.objects.create(
            sport="cricket", alias="Baggy Greens", name="Australia", squeezed=squeezed("Baggy Greens")
        )
        register("crex", listed("crex", "V1"))
        register("espn", listed("espn", "77", INDIA, Team(name="Baggy Greens")))
        assert Match.objects.count() == 1

    def test_finds_a_single_match(self) -> None:
        register("crex", listed("crex", "V1"))
        source = make_source("espn")
        finder = pairing.Finder(source, "cricket", now=NOW)
        assert finder.find(listed("espn", "78", minutes=75)) == (None, False)
        assert finder.find(listed("espn", "77")) == (Match.objects.get().pk, False)

    def test_a_tie_is_left_to_an_operator(self) -> None:
        register("crex", listed("crex", "V1"), listed("crex", "V2"))
        register("espn", listed("espn", "77"))
        assert pairing.sweep(now=NOW) == 0
        assert Match.objects.count() == 3
        assert PairingReview.objects.count() == 2


def pair(*, is_crossed: bool = False) -> tuple[Match, Match]:
    """Creates India against Australia at crex (match 1) and at espn (match 2)."""
    state = cricket_state()
    first = make_match(state=state)
    make_ref(first, source="crex", payload=first.payload)
    second = make_match(state=state)
    if is_crossed:
        second.payload = swap_sides(second.payload)
        second.save()
    make_ref(second, source="espn", payload=second.payload)
    for match in (first, second):
        make_snapshot(match)
    return first, second


class TestSweep:
    def test_merges_a_pair_that_the_first_reading_made_sure(self) -> None:
        first, second = pair()
        assert pairing.sweep(now=NOW) == 1
        second.refresh_from_db()
        assert (second.merged_into, second.lifecycle) == (first, MatchLifecycle.ARCHIVED)
        assert first.refs.count() == 2

    def test_a_title_is_enough_for_a_match_that_was_never_read(self) -> None:
        first = make_match(state=cricket_state(), start_time=NOW)
        make_ref(first, source="crex", payload=first.payload)
        second = make_unread_match(title="India v Australia, 2nd ODI", start_time=NOW)
        make_ref(second, source="espn", captured_at=None)
        assert pairing.sweep(now=NOW) == 1

    def test_three_sources_of_one_match_become_one(self) -> None:
        first, _ = pair()
        third = make_match(state=cricket_state())
        make_ref(third, source="sofascore", payload=third.payload)
        assert pairing.sweep(now=NOW) == 2
        assert first.refs.count() == 3

    def test_keeps_apart_a_pair_that_an_operator_called_two_matches(self) -> None:
        first, second = pair()
        review = PairingReview.objects.create(match=second, candidate=first, score=0.9, created_at=NOW)
        pairing.keep_apart(review.pk, actor="ann", now=NOW)
        assert pairing.sweep(now=NOW) == 0
        assert Match.objects.filter(merged_into=None).count() == 2

    def test_keeps_apart_also_after_one_of_them_was_merged(self) -> None:
        """Three matches of India against Australia; an operator has called two of them different."""
        first, second = pair()
        third = make_match(state=cricket_state())
        make_ref(third, source="sofascore", payload=third.payload)
        review = PairingReview.objects.create(match=third, candidate=second, score=0.9, created_at=NOW)
        pairing.keep_apart(review.pk, actor="ann", now=NOW)
        for _ in range(2):
            pairing.sweep(now=NOW)
        second.refresh_from_db()
        third.refresh_from_db()
        assert (second.merged_into, third.merged_into) == (first, None)
        inherited = PairingReview.objects.get(match=first, candidate=third)
        assert (inherited.state, inherited.decided_by) == (PairingState.APART, "ann")

    def test_a_pair_that_cannot_be_merged_does_not_stop_the_others(self, caplog: Any) -> None:
        first, second = pair()
        Snapshot.objects.filter(match=first).update(sequence=2)  # the unique key of the row that merging will write
        Match.objects.filter(pk=second.pk).update(payload=second.payload | {"venue": "Perth"})
        MatchRef.objects.filter(match=second).update(payload=second.payload | {"venue": "Perth"})
        fine = [make_match(state=football_state()) for _ in range(2)]
        for match, source in zip(fine, ("crex", "espn"), strict=True):
            make_ref(match, source=source, payload=match.payload)
        assert pairing.sweep(now=NOW) == 1
        assert Match.objects.get(merged_into__isnull=False).pk == fine[1].pk
        assert "could not be merged" in caplog.text

    def test_an_open_review_is_closed_when_the_pair_becomes_sure(self) -> None:
        first, second = pair()
        PairingReview.objects.create(match=second, candidate=first, score=0.7, created_at=NOW)
        assert pairing.sweep(now=NOW) == 1
        assert PairingReview.objects.get().state == PairingState.JOINED

    def test_a_pair_is_reviewed_once(self) -> None:
        first, second = pair()
        Match.objects.filter(pk=second.pk).update(status="upcoming", start_time=first.start_time + timedelta(hours=1))
        for _ in range(2):
            assert pairing.sweep(now=NOW) == 0
        assert PairingReview.objects.count() == 1


class TestMerge:
    def test_nothing_is_lost_and_nothing_is_served_twice(self) -> None:
        first, second = pair()
        for match, source, numbers in ((first, "crex", (1, 2, 3)), (second, "espn", (2, 3, 4))):
            for ball in numbers:
                make_event(match, source=source, slot=f"b:2:12:{ball}", kind="dot", runs=0)
        newest = MatchEvent.objects.latest("pk").pk
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        assert MatchEvent.objects.filter(match=first).count() == 6
        served, _ = page_of_events(first.pk, since=0, limit=100)
        assert sorted(event.slot for event in served) == ["b:2:12:1", "b:2:12:2", "b:2:12:3", "b:2:12:4"]
        # A consumer of the feed gets events that are new to this match, even if they were stored long ago.
        fresh, _ = page_of_events(first.pk, since=newest, limit=100)
        assert [event.slot for event in fresh] == ["b:2:12:4"]

    def test_events_of_a_source_without_a_ref_are_kept(self) -> None:
        first, second = pair()
        make_event(second, source="sofascore", slot="b:2:12:1", kind="dot", runs=0)
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        assert MatchEvent.objects.get(match=first).is_served

    def test_the_next_reading_of_a_crossed_source_corrects_nothing(self) -> None:
        first = make_match(state=football_state())
        make_ref(first, source="sofascore", payload=first.payload)
        turned = football_state(teams=Teams(team_a=football_state().teams.team_b, team_b=football_state().teams.team_a))
        second = make_unread_match(sport="football", title="Chelsea vs Arsenal")
        ref = make_ref(second, source="espn", captured_at=None)
        goal = Event(id="7", kind="goal", slot="g:team_a:1", detail={"team": "team_a", "score": "1-0"})
        read(ref, payload_of(ref, turned, events=[goal]))
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        ref.refresh_from_db()
        read(ref, payload_of(ref, turned.model_copy(update={"clock": "70"}), events=[goal], at=later(2)))
        event = MatchEvent.objects.get()
        assert (event.slot, event.detail) == ("g:team_b:1", {"team": "team_b", "score": "0-1"})

    def test_the_importance_set_by_an_operator_is_kept(self) -> None:
        keep, gone = pair()
        importance.set_by_hand(gone.pk, Importance.HIGH, actor="ann")
        joined = pairing.merge(keep.pk, gone.pk, actor="ann", now=NOW)
        joined.refresh_from_db()
        assert (joined.importance, joined.is_importance_fixed) == (Importance.HIGH, True)

    def test_the_state_is_reconciled_from_both(self) -> None:
        first, second = pair()
        MatchRef.objects.filter(match=second).update(payload=second.payload | {"venue": "Perth"})
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        first.refresh_from_db()
        assert (first.payload["venue"], first.sequence) == ("Perth", 2)
        assert first.provenance["venue"]["source"] == "espn"
        assert Snapshot.objects.get(match=first, sequence=2).delta["venue"] == "Perth"

    def test_a_crossed_source_is_swapped(self) -> None:
        first = make_match(state=football_state())
        make_ref(first, source="sofascore", payload=first.payload)
        second = make_match(state=football_state())
        second.payload = swap_sides(second.payload)
        second.save()
        make_ref(second, source="espn", payload=second.payload)
        make_event(second, source="espn", slot="g:team_a:1", kind="goal", detail={"side": "team_a", "player": "Saka"})
        side = {"match": second, "source": make_source("espn"), "side": "team_a"}
        Lineup.objects.create(
            **side,
            snapshot_type=SnapshotType.PRE_MATCH,
            payload_schema="x",
            kickoff=NOW,
            captured_at=NOW - timedelta(hours=1),
            created_at=NOW,
        )
        PlayerFigure.objects.create(**side, role="rating", player_id_ext="7", name="Saka", captured_at=NOW)
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        first.refresh_from_db()
        assert MatchRef.objects.get(source__key="espn").is_crossed
        assert first.payload["score"]["team_a"]["goals"] == 2
        assert not Conflict.objects.exists()
        event = MatchEvent.objects.get()
        assert (event.slot, event.detail["side"]) == ("g:team_b:1", "team_b")
        assert (Lineup.objects.get().side, PlayerFigure.objects.get().side) == ("team_b", "team_b")

    def test_a_task_under_way_for_the_merged_match_writes_nothing(self) -> None:
        first, second = pair()
        ref = second.refs.get()
        journal.open_tasks([NewTask(ref.source_id, ref.pk, Resource.SCORECARD, 0, NOW)], now=NOW)
        claim = journal.claim(ScrapeTask.objects.get().pk, worker_id="w", lease_seconds=30, now=NOW)
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        assert ScrapeTask.objects.get().state == TaskState.CANCELLED
        assert claim is not None
        with pytest.raises(Exception, match="no longer ours"), journal.finishing(claim, now=NOW):
            pass

    def test_the_old_id_redirects_to_the_merged_match(self) -> None:
        first, second = pair()
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        found = find_match(str(second.pk))
        assert found is not None
        assert found.pk == first.pk

    def test_a_chain_of_merges_redirects_to_the_last(self) -> None:
        first, second = pair()
        third = make_match(state=cricket_state())
        make_ref(third, source="sofascore", payload=third.payload)
        pairing.merge(second.pk, third.pk, actor="ann", now=NOW)
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        third.refresh_from_db()
        assert third.merged_into == first

    def test_is_refused_where_a_source_has_both(self) -> None:
        first, second = pair()
        make_ref(second, source="crex")
        with pytest.raises(pairing.MergeRefused, match="Crex has both"):
            pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        assert Match.objects.filter(merged_into=None).count() == 2

    def test_is_refused_twice(self) -> None:
        first, second = pair()
        pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        with pytest.raises(pairing.MergeRefused, match="already"):
            pairing.merge(first.pk, second.pk, actor="ann", now=NOW)

    def test_is_logged_and_signalled(self, django_capture_on_commit_callbacks: Any) -> None:
        received: list[dict[str, Any]] = []

        def listen(sender: object, **announced: Any) -> None:
            received.append(announced)

        matches_joined.connect(listen)
        first, second = pair()
        with django_capture_on_commit_callbacks(execute=True):
            pairing.merge(first.pk, second.pk, actor="ann", now=NOW)
        matches_joined.disconnect(listen)
        assert [(one["match_id"], one["gone_id"], one["actor"]) for one in received] == [(first.pk, second.pk, "ann")]

    def test_the_invariants_hold(self) -> None:
        refs = [
            make_ref(make_unread_match(), source=key, captured_at=None, next_poll_at=NOW) for key in ("crex", "espn")
        ]
        for number, ref in enumerate(refs, start=1):
            read(ref, payload_of(ref, chasing(96), at=later(number), events=balls(1, 2, 3)), at=later(number))
        pairing.merge(refs[0].match_id, refs[1].match_id, actor="ann", now=later(3))
        results = check_rules(CheckContext(later(4)))
        assert {one.name: one.broken for one in results if not one.is_ok} == {}


class TestOperators:
    def test_merge_a_pair(self) -> None:
        first, second = pair()
        review = PairingReview.objects.create(match=second, candidate=first, score=0.7, created_at=NOW)
        assert pairing.merge_reviewed(review.pk, actor="ann", now=NOW) == first
        review.refresh_from_db()
        assert (review.state, review.decided_by) == (PairingState.JOINED, "ann")

    def test_a_decided_pair_is_not_decided_again(self) -> None:
        first, second = pair()
        review = PairingReview.objects.create(match=second, candidate=first, score=0.7, created_at=NOW)
        pairing.keep_apart(review.pk, actor="ann", now=NOW)
        with pytest.raises(pairing.MergeRefused, match="decided already by ann"):
            pairing.merge_reviewed(review.pk, actor="bob", now=NOW)
