"""The importance of matches: the rules, their file, and the value that an operator sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scraping import apps
from scraping.matches import discovery, importance
from scraping.matches.importance import ImportanceFileError, Rules, importance_by_rules
from scraping.models import Importance, Match, MatchLifecycle
from scraping.payloads import DiscoveredMatch, Sport, Status, Team
from scraping.scheduler import upkeep
from scraping.scheduler.upkeep import apply_importance_rules
from tests.factories import NOW, cricket_state, make_match, make_ref, make_source, make_unread_match
from tests.scraping.builders import later, payload_of, read

HIGH, NORMAL, LOW = Importance.HIGH, Importance.NORMAL, Importance.LOW
OURS = importance.read(Path("config/importance.yaml"))


def named(title: str = "", *, sport: str = "cricket", round: str = "", **fields: str) -> Match:
    payload = {"metadata": {"round": round}}
    return Match(sport=sport, title=title, payload=payload, **{"team_a": "Kenya", "team_b": "Nepal", **fields})


CASES = [
    ("an ordinary match", named("Kenya vs Nepal, 3rd ODI", series="Nepal tour of Kenya"), NORMAL),
    ("nothing is known", Match(sport="cricket"), NORMAL),
    ("a final", named("Kenya vs Nepal, Final"), HIGH),
    ("in capitals", named("KENYA V NEPAL - FINAL"), HIGH),
    ("the final of a series", named("Kenya vs Nepal", series="Tri-Series Final"), HIGH),
    ("by the round alone", named("Kenya v Nepal", round="Final"), HIGH),
    ("a semi-final", named("Kenya vs Nepal, 1st Semi-Final"), HIGH),
    ("a semifinal in one word", named("Kenya vs Nepal, 2nd Semifinal"), HIGH),
    ("semi finals in two", named("Kenya vs Nepal", round="Semi finals"), HIGH),
    ("a quarter-final", named("Kenya vs Nepal, Quarter-final 3"), HIGH),
    ("an eliminator", named("Kenya vs Nepal, Eliminator"), HIGH),
    ("a play-off with a number", named("Kenya vs Nepal, Qualifier 2"), HIGH),
    ("a qualifier is not a play-off", named("Kenya vs Nepal, World Cup Qualifier"), NORMAL),
    ("a qualifier for finals day is no final", named("Kenya vs Nepal, Finals Day qualifier"), NORMAL),
    ("the last Test is no final", named("Kenya vs Nepal, 5th and final Test"), NORMAL),
    ("a final beside a last day", named("Kenya vs Nepal, Final, final day"), HIGH),
    ("part of a longer word", named("Kenya vs Nepal, Finale of the Semifinalists"), NORMAL),
    ("a team called Finalists", named("Finalists vs Nepal", team_a="Finalists"), NORMAL),
    ("a team called Final", named("The Final FC v Youth United", team_a="The Final FC", team_b="Youth United"), NORMAL),
    ("a final between teams called so", named("Finals XI vs Nepal, Final", team_a="Finals XI"), HIGH),
    ("a great series", named(series="ICC Men\N{RIGHT SINGLE QUOTATION MARK}s T20 World Cup 2026"), HIGH),
    ("a series that only sounds like one", named("Kenya vs Nepal", series="Road to ICC Champions Trophy"), NORMAL),
    ("a popular team", named("MI vs X", team_a="Mumbai Indians"), HIGH),
    ("the popular team's women", named("", team_a="Mumbai Indians Women"), NORMAL),
    ("a popular team's name in another sport", named("", team_a="Liverpool"), NORMAL),
    ("in its own sport", named("", sport="football", team_a="Chelsea", team_b="Liverpool FC"), HIGH),
    ("with accents", named("", sport="football", series="Copa America"), HIGH),
    ("a warm-up", named("Kenya vs Nepal, Warm-up match"), LOW),
    ("a practice match", named("Kenya vs Nepal, practice match"), LOW),
    ("friendlies", named("", sport="football", series="Club Friendly Games"), LOW),
    ("a popular team's friendly", named("", sport="football", series="International Friendly", team_a="Brazil"), LOW),
    ("youth, by the series", named("Kenya vs Nepal", series="Under-19 Asia Trophy"), LOW),
    ("youth, by the team", named("", team_a="Kenya U19", team_b="Nepal Under-19"), LOW),
    ("the final of a youth cup", named("Final", team_a="Kenya U19", team_b="Nepal U19"), NORMAL),
    ("a last warm-up is no final", named("Kenya vs Nepal, final warm-up"), LOW),
]


@pytest.mark.requirement("FR-025")
@pytest.mark.parametrize(("label", "match", "expected"), CASES, ids=[case[0] for case in CASES])
def test_importance_by_our_rules(label: str, match: Match, expected: Importance) -> None:
    assert importance_by_rules(match, OURS) is expected


def test_without_rules_all_matches_are_equal() -> None:
    assert {importance_by_rules(match, Rules()) for _, match, _ in CASES} == {NORMAL}


@given(
    st.text(max_size=60), st.text(max_size=60), st.text(max_size=30), st.sampled_from(["cricket", "football", "chess"])
)
def test_any_text_has_an_importance(title: str, series: str, team: str, sport: str) -> None:
    """Titles and team names come from outside."""
    match = named(title, sport=sport, round=title, series=series, team_a=team, team_b=title)
    assert importance_by_rules(match, OURS) in Importance


def restart() -> None:
    importance.current.cache_clear()
    upkeep._are_rules_applied = False


@pytest.fixture
def rules_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Rules in which matches of Kenya are important."""
    file = tmp_path / "rules.yaml"
    file.write_text("high: {teams: {cricket: [Kenya]}}", encoding="utf-8")
    monkeypatch.setattr(importance, "path", lambda: file)
    restart()
    yield file
    restart()


class TestFile:
    @pytest.mark.parametrize(
        ("what", "text", "says"),
        [
            ("a level that there is not", "higher: {}", "higher"),
            ("a word that there is not", "high: {players: [Kohli]}", "players"),
            ("a sport that there is not", "high: {teams: {chess: [Kenya]}}", "chess"),
            ("words instead of a list", "high: {occasions: final}", "high.occasions"),
            ("an empty word", "low: {occasions: ['']}", "low.occasions.0"),
            ("no YAML", "high: [", "rules.yaml"),
            ("a list", "- high", "rules.yaml"),
        ],
    )
    def test_a_broken_one_is_an_error_with_its_place(self, rules_file: Path, what: str, text: str, says: str) -> None:
        rules_file.write_text(text, encoding="utf-8")
        with pytest.raises(ImportanceFileError, match=says):
            importance.read(rules_file)
        (error,) = apps.check_importance_rules()
        assert (error.id, says in error.msg, str(rules_file) in str(error.hint)) == ("scraping.E002", True, True)
        assert "pydantic" not in error.msg

    def test_one_that_is_not_there_is_an_error(self, rules_file: Path) -> None:
        rules_file.unlink()
        assert [error.id for error in apps.check_importance_rules()] == ["scraping.E002"]

    def test_a_valid_one_is_no_error(self, rules_file: Path) -> None:
        assert apps.check_importance_rules() == []

    def test_an_empty_one_has_no_rules(self, rules_file: Path) -> None:
        rules_file.write_text("# later\n", encoding="utf-8")
        assert importance.read(rules_file) == Rules()

    def test_is_read_once(self, rules_file: Path) -> None:
        first = importance.current()
        rules_file.write_text("low: {teams: {cricket: [Kenya]}}", encoding="utf-8")
        assert importance.current() is first


@pytest.mark.both
@pytest.mark.django_db
@pytest.mark.usefixtures("rules_file")
@pytest.mark.requirement("FR-025")
class TestMatches:
    def found(self, **fields: Any) -> DiscoveredMatch:
        values = {"teams": (Team(name="Kenya"), Team(name="Nepal")), "sport": Sport.CRICKET, "status": Status.LIVE}
        url = "https://crex.example/m/1"
        return DiscoveredMatch(source_event_id="1", url=url, title="Kenya v Nepal", **values | fields)

    def test_a_discovered_match_gets_its_importance(self) -> None:
        discovery.register(make_source(), [self.found()], now=NOW)
        assert Match.objects.get().importance == HIGH

    def test_a_match_that_is_named_later_gets_it_then(self) -> None:
        ref = make_ref(make_unread_match(title="TBC v TBC"), captured_at=None)
        read(ref, payload_of(ref, cricket_state()))
        assert Match.objects.get().importance == NORMAL
        teams = cricket_state().teams.model_copy(update={"team_a": Team(name="Kenya")})
        read(ref, payload_of(ref, cricket_state(teams=teams), at=later(3)))
        assert Match.objects.get().importance == HIGH

    def test_the_value_of_an_operator_is_kept(self) -> None:
        ref = make_ref(make_unread_match(title="TBC v TBC"), captured_at=None)
        importance.set_by_hand(ref.match_id, LOW, actor="ann")
        teams = cricket_state().teams.model_copy(update={"team_a": Team(name="Kenya")})
        read(ref, payload_of(ref, cricket_state(teams=teams)))
        apply_importance_rules(NOW)
        assert (Match.objects.get().importance, Match.objects.get().team_a) == (LOW, "Kenya")

    def test_the_value_can_be_returned_to_the_rules(self) -> None:
        match = make_match(team_a="Kenya", title="Kenya v Nepal")
        importance.set_by_hand(match.pk, LOW, actor="ann")
        importance.set_by_hand(match.pk, None, actor="ann")
        match.refresh_from_db()
        assert (match.importance, match.is_importance_fixed) == (HIGH, False)

    def test_rules_apply_to_all_known_matches_at_a_start(self, rules_file: Path) -> None:
        kenya, other = make_match(team_a="Kenya"), make_match(team_a="Nepal")
        final = make_match(payload={"metadata": {"round_name": "Final"}}, team_a="Oman")
        over = make_match(team_a="Kenya", lifecycle=MatchLifecycle.ARCHIVED)
        rows = [kenya, other, final, over]

        def levels() -> list[int]:
            return [Match.objects.get(pk=row.pk).importance for row in rows]

        assert (apply_importance_rules(NOW), levels()) == (1, [HIGH, NORMAL, NORMAL, NORMAL])
        assert apply_importance_rules(later(5)) == 0
        rules_file.write_text("{high: {occasions: [final]}, low: {teams: {cricket: [Nepal]}}}", encoding="utf-8")
        restart()
        assert (apply_importance_rules(later(10)), levels()) == (3, [NORMAL, LOW, HIGH, NORMAL])

    def test_a_later_tick_costs_no_query(self, django_assert_num_queries: Any) -> None:
        apply_importance_rules(NOW)
        with django_assert_num_queries(0):
            apply_importance_rules(later(5))
