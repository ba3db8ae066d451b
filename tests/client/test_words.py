"""The client's pure parts: problem documents, waits, ages, and matches in words."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import victoryline_client
from scraping.api import examples
from victoryline_client import (
    BadRequest,
    Client,
    ClientError,
    Conflict,
    Forbidden,
    Freshness,
    Gone,
    NotFound,
    Patience,
    Problem,
    RateLimited,
    ServerFault,
    TooStale,
    Unauthorized,
    Unavailable,
    Unreachable,
    words,
)
from victoryline_client.answers import freshness_of
from victoryline_client.connection import Connections
from victoryline_client.errors import clean, problem_of, retry_after_of
from victoryline_client.patience import after_failure, until_next_look


def refusal(status: int, kind: str = "x", **more: Any) -> Problem:
    return problem_of(status, {}, json.dumps({"type": f"/problems/{kind}", "status": status, **more}).encode())


class TestProblems:
    @pytest.mark.parametrize(
        ("status", "kind", "expected"),
        [
            (400, "bad-parameter", BadRequest),
            (401, "unauthorized", Unauthorized),
            (403, "forbidden", Forbidden),
            (404, "not-found", NotFound),
            (405, "method-not-allowed", BadRequest),
            (409, "conflict", Conflict),
            (410, "delta-overflow", Gone),
            (413, "payload-too-large", BadRequest),
            (429, "too-many-requests", RateLimited),
            (500, "internal-error", ServerFault),
            (502, "bad-gateway", Unavailable),
            (503, "unavailable", Unavailable),
            (503, "too-stale", TooStale),
            (504, "gateway-timeout", Unavailable),
        ],
    )
    def test_are_named_by_what_to_do(self, status: int, kind: str, expected: type[Problem]) -> None:
        problem = refusal(status, kind)
        assert type(problem) is expected
        assert problem.code == kind

    def test_carry_what_the_document_says(self) -> None:
        problem = refusal(400, "bad-parameter", title="A", detail="B", request_id="r1", parameter="limit", code="c")
        assert (problem.title, problem.detail, problem.request_id, problem.code) == ("A", "B", "r1", "c")
        assert problem.more == {"parameter": "limit"}
        assert str(problem) == "400 A: B"

    @pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff\xfe", b'{"type": 7, "retry_after": "soon"}'])
    def test_of_somebody_who_knows_no_problem_documents(self, body: bytes) -> None:
        problem = problem_of(502, {"x-request-id": "r2"}, body)
        assert isinstance(problem, Unavailable)
        assert (problem.request_id, problem.retry_after) == ("r2", None)

    def test_a_404_of_somebody_else_says_nothing_about_a_match(self) -> None:
        for body in (b"", b"<html>default backend - 404</html>", b'{"error": "no route"}'):
            assert isinstance(problem_of(404, {}, body), Unreachable)

    @pytest.mark.parametrize(
        ("header", "told", "expected"),
        [
            ("5", None, 5),
            ("0", 9, 0),
            ("Mon, 16 Nov 2026 10:00:30 GMT", None, 30),
            ("Mon, 16 Nov 2026 09:00:00 GMT", None, 0),
            ("soon", 4, 4),
            ("", 2.5, 2.5),
            ("-3", None, None),
            ("", -1, None),
            ("", True, None),
            ("", float("nan"), None),
            ("", "7", None),
        ],
    )
    def test_retry_after(self, header: str, told: object, expected: float | None) -> None:
        now = datetime(2026, 11, 16, 10, tzinfo=UTC)
        assert retry_after_of({"retry-after": header}, told, now) == expected


def waiting(seconds: float | None) -> ClientError:
    return problem_of(429, {"retry-after": str(seconds)} if seconds is not None else {}, b"")


class TestPatience:
    @pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
    def test_never_shorter_than_told_and_twice_as_long_each_time_otherwise(self, chance: float) -> None:
        for seconds in (0, 1, 7, 60):
            assert seconds <= after_failure(waiting(seconds), 1, lambda: chance) <= seconds + 1
        own = [after_failure(Unreachable(), attempt, lambda: chance) for attempt in (1, 2, 3, 4, 50)]
        assert own == sorted(own)
        assert 0.25 <= own[0] <= 0.5
        assert 15 <= own[-1] <= 30

    @pytest.mark.parametrize(
        ("error", "attempt", "waited", "is_given_up"),
        [
            (waiting(5), 1, 0, False),
            (waiting(5), 4, 0, True),
            (waiting(5), 1, 26, True),
            (waiting(31), 1, 0, True),
            (Unreachable(), 3, 0, False),
            (refusal(404), 1, 0, True),
            (refusal(401), 1, 0, True),
            (refusal(500), 1, 0, False),
        ],
    )
    def test_gives_up(self, error: ClientError, attempt: int, waited: float, is_given_up: bool) -> None:
        assert (Patience().wait(error, attempt, waited, lambda: 0.0) is None) == is_given_up

    @pytest.mark.parametrize(
        ("told", "least", "most"), [(None, 10, 11), (0.2, 1, 1.1), (2, 2, 2.2), (60, 60, 61), (9999, 60, 61)]
    )
    def test_looks_are_a_second_to_a_minute_apart(self, told: float | None, least: float, most: float) -> None:
        assert least <= until_next_look(told, lambda: 0.0) <= until_next_look(told, lambda: 0.999) <= most


class TestFreshness:
    def test_headers_that_make_no_sense_count_as_not_said(self) -> None:
        headers = {"x-data-age-seconds": "old", "x-data-freshness": "yesterday", "x-next-update-in": "-1"}
        found = freshness_of(headers, asked_at=0.0, clock=lambda: 5.0)
        assert (found.state, found.age_seconds, found.scraped_at, found.next_update_in) == ("unknown", None, None, None)
        assert (found.age_now(), found.next_update_now()) == (None, None)

    def test_a_clock_that_runs_backwards_makes_nothing_younger(self) -> None:
        assert Freshness(state="fresh", age_seconds=3, asked_at=9.0, clock=lambda: 1.0).age_now() == 3


FRESH = Freshness(state="fresh", age_seconds=3, next_update_in=2, asked_at=0.0, clock=lambda: 0.0)
FOOTBALL = {
    "teams": {"team_a": {"name": "Arsenal"}, "team_b": {"name": "Chelsea"}},
    "score": {"team_a": {"goals": 2}, "team_b": {"goals": 1}},
    "clock": "67",
    "status": "live",
    "phase": "halftime",
}


class TestWords:
    def test_cricket(self) -> None:
        assert words.status_words(examples.MATCH, FRESH) == (
            "India 187/5 (20.0) v Australia 95/3 (12.3) · live · fresh, 3 s old, next in 2 s"
        )
        assert words.title_words(examples.MATCH) == (
            "India vs Australia, 3rd T20I · India tour of Australia 2025 · MCG, Melbourne"
        )

    def test_football(self) -> None:
        assert words.score_words(FOOTBALL) == "Arsenal 2 v Chelsea 1, 67'"
        assert words.standing_words(FOOTBALL) == "live, halftime"

    def test_the_end(self) -> None:
        over = {**examples.MATCH, "status": "completed", "phase": "finished", "result": "India won by 12 runs"}
        final = Freshness(state="final", age_seconds=90000)
        assert words.status_words(over, final).endswith("· completed: India won by 12 runs · final")

    @pytest.mark.parametrize(
        ("width", "expected"),
        [
            (99, "India 187/5 (20.0) v Australia 95/3 (12.3) · live · fresh, 3 s old, next in 2 s"),
            (72, "IND 187/5 (20.0) v AUS 95/3 (12.3) · live · fresh, 3 s old, next in 2 s"),
            (66, "IND 187/5 (20.0) v AUS 95/3 (12.3) · fresh, 3 s old, next in 2 s"),
            (51, "IND 187/5 (20.0) v AUS 95/3 (12.3) · fresh, 3 s old"),
            (43, "IND 187/5 (20.0) v AUS 95… · fresh, 3 s old"),
            (20, "IN… · fresh, 3 s old"),
            (8, " 3 s old"),
        ],
    )
    def test_a_narrow_line_keeps_the_age(self, width: int, expected: str) -> None:
        assert words.status_line(examples.MATCH, FRESH, width) == expected

    def test_a_match_that_nobody_has_read(self) -> None:
        unread = {"title": "Kenya vs Nepal", "status": "upcoming", "phase": "scheduled", "teams": None, "score": None}
        assert words.status_words(unread, Freshness()) == "Kenya vs Nepal · upcoming · unknown, never read"

    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(0.9, "0 s old"), (119, "119 s old"), (190, "3 min 10 s old"), (7500, "2 h 5 min old")],
    )
    def test_ages(self, seconds: float, expected: str) -> None:
        assert words.age_words(seconds) == expected

    @pytest.mark.parametrize(
        ("row", "expected"),
        [
            (examples.EVENT, "  12.3  wicket: Smith c Kohli b Bumrah 42 (28)"),
            ({"over": "3.1", "kind": "runs", "runs": 1, "action": "add"}, "   3.1  runs: 1 run"),
            ({"minute": "45+2", "kind": "own_goal", "action": "add"}, " 45+2'  own goal"),
            (
                {**examples.EVENT, "action": "update", "reason": "third umpire"},
                "corrected: 12.3  wicket: Smith c Kohli b Bumrah 42 (28) (third umpire)",
            ),
            ({"over": "3.1", "kind": "six", "action": "retract"}, "taken back: 3.1  six"),
        ],
    )
    def test_events(self, row: dict[str, Any], expected: str) -> None:
        assert words.event_words(row) == expected

    def test_a_score_of_nothing_is_a_score(self) -> None:
        nil = {**FOOTBALL, "score": {"team_a": {"goals": 0}, "team_b": {"goals": 0}}}
        assert words.score_words(nil) == "Arsenal 0 v Chelsea 0, 67'"

    def test_events_are_ordered_as_they_happened(self) -> None:
        happened = [(1, "19.6"), (2, "0.2"), (2, "0.10"), (2, "1.1")]
        rows = [{"id": 9 - n, "innings": innings, "over": over} for n, (innings, over) in enumerate(happened)]
        learned = rows[::-1]
        assert sorted(learned, key=words.place_in_match) == rows
        goals = [{"id": 1, "minute": "9"}, {"id": 3, "minute": "45"}, {"id": 2, "minute": "45+2"}]
        learned = goals[::-1]
        assert sorted(learned, key=words.place_in_match) == goals

    def test_a_source_cannot_command_the_terminal(self) -> None:
        evil = "\x1b[2J\x1b]0;pwned\x07\u202eGoal\r\nroot#\x9b31m"
        assert clean(evil) == "[2J]0;pwnedGoal root#31m"
        row = {"kind": evil, "description": evil, "over": evil, "reason": evil, "action": "update"}
        teams = {"team_a": {"name": evil}, "team_b": {"name": evil}}
        document = {**examples.MATCH, "teams": teams, "title": evil, "result": evil, "venue": evil, "status": evil}
        found = Freshness(state=evil, age_seconds=1)
        for text in (words.event_words(row), words.status_words(document, found), words.title_words(document)):
            assert text.isprintable()


class TestAddress:
    @pytest.mark.parametrize("url", ["", "scores.example.com", "ftp://x", "http://me:secret@x", "http://x?y"])
    def test_what_is_no_address_is_refused_at_once(self, url: str) -> None:
        with pytest.raises(ValueError, match="address"):
            Client(url, "key")

    def test_nobody_at_a_port_is_told_with_the_port(self) -> None:
        with pytest.raises(Unreachable, match=r"^127\.0\.0\.1:9 did not answer GET /x: "):
            Connections("http://127.0.0.1:9", timeout=2).ask("GET", "/x?a=b", {})

    def test_a_key_in_the_clear_is_warned_about(self, caplog: pytest.LogCaptureFixture) -> None:
        Client("http://scores.example.com", "vl_secret")
        assert "in the clear" in caplog.text
        assert "vl_secret" not in caplog.text


def test_needs_nothing_but_python(tmp_path: Path) -> None:
    """Without the packages of this environment and outside of this folder: a consumer copies it and has it."""
    (tmp_path / "victoryline_client").symlink_to(Path(victoryline_client.__file__).parent)
    command = [sys.executable, "-S", "-E", "-m", "victoryline_client"]
    shown = subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == victoryline_client.__version__
    bare = subprocess.run([*command, "follow"], cwd=tmp_path, capture_output=True, text=True, env={}, check=False)
    assert bare.returncode == 1
    assert "VICTORYLINE_API_KEY" in bare.stderr
