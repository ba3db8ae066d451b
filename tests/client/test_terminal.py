"""`python -m victoryline_client follow`: on a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from scraping.models import Match
from scraping.payloads import Status
from tests.client.conftest import MakeClient, Play, steps
from tests.client.faulty_proxy import FaultyProxy
from tests.factories import make_match, make_ref, make_unread_match
from tests.patience import stretched
from victoryline.configuration import PROJECT_ROOT
from victoryline_client import Freshness
from victoryline_client.terminal import clean, format_event, format_line, main, run

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)

DEADLINE_SECONDS = stretched(60.0)
CRICKET = {
    "title": "India vs Australia, 3rd T20I",
    "teams": {"team_a": {"name": "India"}, "team_b": {"name": "Australia"}},
    "score": {
        "team_a": {"runs": 187, "wickets": 5, "overs": "20.0"},
        "team_b": {"runs": 95, "wickets": 3, "overs": "12.3"},
    },
    "status": "live",
}
FOOTBALL = {
    "teams": {"team_a": {"name": "Arsenal"}, "team_b": {"name": "Chelsea"}},
    "score": {"team_a": {"goals": 0}, "team_b": {"goals": 1}},
    "clock": "67",
    "status": "live",
}


@pytest.fixture(autouse=True)
def no_server_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VICTORYLINE_URL", "VICTORYLINE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def output_of(make_client: MakeClient, match: object, *actions: Callable[[], object], **options: Any) -> str:
    out = io.StringIO()
    values = {"match": str(match), "json": False, "plain": False, "past": 5, "final_wait": 0, **options}
    run(make_client(sleep=steps(*actions)), Namespace(**values), out)
    return out.getvalue()


class TestFormat:
    @pytest.mark.parametrize(
        ("match", "freshness", "expected"),
        [
            (
                CRICKET,
                {"state": "fresh", "age_seconds": 3},
                "fresh, 3 s old · India 187/5 (20.0) v Australia 95/3 (12.3) · live",
            ),
            (
                FOOTBALL,
                {"state": "stale", "age_seconds": 240},
                "stale, 4 min old · Arsenal 0 v Chelsea 1 · live · 67",
            ),
            (
                {**CRICKET, "status": "completed", "result": "India won by 12 runs"},
                {"state": "final", "age_seconds": 90000},
                "final · India 187/5 (20.0) v Australia 95/3 (12.3) · completed · India won by 12 runs",
            ),
            (
                {"title": "Kenya vs Nepal", "status": "upcoming"},
                {},
                "unknown, never read · Kenya vs Nepal · upcoming",
            ),
        ],
    )
    def test_status_line(
        self, monkeypatch: pytest.MonkeyPatch, match: dict[str, Any], freshness: dict[str, Any], expected: str
    ) -> None:
        monkeypatch.setattr(Freshness, "age_now", lambda self: self.age_seconds)
        assert format_line(match, Freshness(**freshness)) == expected

    @pytest.mark.parametrize(
        ("row", "expected"),
        [
            ({"over": "12.3", "kind": "wicket", "description": "Smith b Bumrah"}, "  12.3  wicket: Smith b Bumrah"),
            ({"over": "3.1", "kind": "run", "runs": 1, "action": "add"}, "   3.1  run: runs 1"),
            (
                {"over": "3.1", "kind": "run", "runs": 4, "action": "update", "reason": "third umpire"},
                "corrected:    3.1  run: runs 4 (third umpire)",
            ),
            ({"minute": "45+2", "kind": "goal", "runs": None, "action": "retract"}, "retracted:   45+2  goal: "),
        ],
    )
    def test_event(self, row: dict[str, Any], expected: str) -> None:
        assert format_event(row) == expected

    def test_remote_text_has_no_control_characters(self) -> None:
        evil = "\x1b[2J\x1b]0;pwned\x07\u202eGoal\r\nroot#\x9b31m"
        assert clean(evil) == "[2J]0;pwnedGoal  root#31m"
        row = {"kind": evil, "description": evil, "over": evil, "reason": evil, "action": "update"}
        teams = {"team_a": {"name": evil}, "team_b": {"name": evil}}
        match = {**CRICKET, "teams": teams, "title": evil, "result": evil, "status": evil}
        for text in (format_event(row), format_line(match, Freshness(state=evil, age_seconds=1))):
            assert text.isprintable()


class TestLines:
    def test_score_events_corrections_and_the_end(self, make_client: MakeClient, play: Play) -> None:
        play.bowl(2)
        actions = (play.bowl, lambda: play.correct(2, 4), lambda: play.retract(3), play.end)
        lines = output_of(make_client, play.ref.match_id, *actions).splitlines()
        assert lines[0] == "India vs Australia"
        assert lines[1:4] == ["   0.1  run: runs 1", "   0.2  run: runs 1", "   0.3  run: runs 1"]
        assert re.match(r"fresh, \d s old · India 187/5 \(20.0\) v Australia 98/3 \(12.3\) · live", lines[4])
        assert lines[5] == "   0.4  run: runs 1"
        assert any(line.startswith("corrected:    0.2  run: runs 4") for line in lines)
        assert any(line.startswith("retracted:    0.3  run") for line in lines)
        assert lines[-1].startswith("final · ")
        assert lines[-1].endswith("· Australia won")
        assert sum("0.1  run" in line for line in lines) == 1

    def test_errors_and_states_are_shown_once(self, make_client: MakeClient, proxy: FaultyProxy, play: Play) -> None:
        def become_stale() -> None:
            Match.objects.update(last_scraper_update=timezone.now() - timedelta(hours=1))

        def nothing() -> None:
            pass

        actions = (
            become_stale,
            nothing,
            play.bowl,
            lambda: proxy.faults.extend(["503"] * 2),
            nothing,
            nothing,
            play.end,
        )
        text = output_of(make_client, play.ref.match_id, *actions)
        assert text.count("stale, 60 min old · India") == 1
        assert text.count("No answer: 503 unavailable: By the proxy. The last known state is shown; retrying.") == 1
        assert text.count("The server answers again.") == 1

    @pytest.mark.parametrize("past", [0, 3])
    def test_number_of_past_events(self, make_client: MakeClient, play: Play, past: int) -> None:
        play.bowl(9)
        play.end()
        assert output_of(make_client, play.ref.match_id, past=past).count("run: runs 1") == past

    def test_json_has_one_object_a_line(self, make_client: MakeClient, proxy: FaultyProxy, play: Play) -> None:
        def fail() -> None:
            proxy.faults.append("503")

        actions = (play.bowl, fail, lambda: play.correct(1, 6), play.end)
        lines = [
            json.loads(line) for line in output_of(make_client, play.ref.match_id, *actions, json=True).splitlines()
        ]
        document: dict[str, Any] = {}
        for line in lines:
            document |= line["changed"]
        assert document["score"]["team_b"]["runs"] == play.runs
        assert document["status"] == "completed"
        assert [row["action"] for line in lines for row in line["events"]] == ["add", "add", "update"]
        assert (lines[0]["freshness"]["state"], lines[-1]["freshness"]["state"]) == ("fresh", "final")
        assert [line["error"]["code"] for line in lines if line["error"]] == ["unavailable"]


class TestList:
    def test_live_matches(self, make_client: MakeClient, play: Play) -> None:
        make_unread_match(title="Kenya vs Nepal")
        text = output_of(make_client, "")
        assert text.startswith(f"crex_{play.ref.source_event_id} ")
        assert "India 187/5" in text
        assert "Kenya" not in text

    def test_upcoming_matches_if_none_is_live(self, make_client: MakeClient) -> None:
        make_ref(make_match(now=timezone.now(), status=Status.UPCOMING), source_event_id="SOON")
        text = output_of(make_client, "")
        assert text.startswith("crex_SOON ")
        assert "upcoming" in text

    def test_no_match(self, make_client: MakeClient, transactional_db: None) -> None:
        assert output_of(make_client, "") == "No match is live or upcoming.\n"


class TestProgram:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "var").mkdir()
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def follow(self, *arguments: str) -> None:
        main(["follow", *arguments, "--final-wait", "0"])

    def test_with_address_and_key(
        self, proxy: FaultyProxy, key: str, play: Play, capsys: pytest.CaptureFixture[str]
    ) -> None:
        play.end()
        self.follow(str(play.ref.match_id), "--url", proxy.url, "--key", key)
        assert "Australia won" in capsys.readouterr().out

    def test_uses_the_system_of_this_folder(
        self, proxy: FaultyProxy, key: str, play: Play, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "var" / "demo.json").write_text(json.dumps({"url": proxy.url, "api_key": key}))
        self.follow()
        assert "India 187/5" in capsys.readouterr().out

    def test_sends_the_key_of_this_folder_to_no_other_server(self, proxy: FaultyProxy, key: str, folder: Path) -> None:
        (folder / "var" / "demo.json").write_text(json.dumps({"url": "http://127.0.0.1:1", "api_key": key}))
        with pytest.raises(SystemExit, match="key is missing"):
            self.follow("--url", proxy.url)
        assert proxy.seen == []

    def test_errors_have_a_remedy(self, proxy: FaultyProxy, key: str, folder: Path) -> None:
        with pytest.raises(SystemExit, match="VICTORYLINE_URL and VICTORYLINE_API_KEY"):
            self.follow()
        with pytest.raises(SystemExit, match="401"):
            self.follow("1", "--url", proxy.url, "--key", "vl_wrong")
        with pytest.raises(SystemExit, match="No match is known as no_such"):
            self.follow("no_such", "--url", proxy.url, "--key", key)
        with pytest.raises(SystemExit, match="address must be like"):
            self.follow("1", "--url", "scores", "--key", key)
        (folder / "var" / "demo.json").write_text("{")
        with pytest.raises(SystemExit, match="VICTORYLINE_URL and VICTORYLINE_API_KEY"):
            self.follow()


class Terminal:
    """The program on a pseudo-terminal."""

    def __init__(self, proxy: FaultyProxy, key: str, *arguments: str, columns: int = 200) -> None:
        self.ours, theirs = pty.openpty()
        env = {**os.environ, "VICTORYLINE_URL": proxy.url, "VICTORYLINE_API_KEY": key, "COLUMNS": str(columns)}
        command = [sys.executable, "-m", "victoryline_client", "follow", *arguments]
        self.process = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.set_blocking(self.ours, False)
        self.text = ""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Waits until the pattern is shown; fails after the deadline."""
        return self.wait_until(lambda: re.search(pattern, self.text), pattern)

    def wait_until(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := condition()):
            assert time.monotonic() < deadline, f"not shown within {DEADLINE_SECONDS} s: {what}\n{self.text}"
            time.sleep(0.02)
            self.read()
        return found

    def read(self) -> str:
        with suppress(OSError):  # nothing to read, or the program has ended
            self.text += os.read(self.ours, 65536).decode(errors="replace")
        return self.text

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture
def terminal(proxy: FaultyProxy, key: str, play: Play) -> Iterator[Terminal]:
    opened = Terminal(proxy, key, str(play.ref.match_id))
    yield opened
    opened.close()


@pytest.mark.slow
class TestTerminal:
    def test_the_age_grows_while_the_server_is_silent_and_ctrl_c_ends_it_quietly(
        self, terminal: Terminal, proxy: FaultyProxy
    ) -> None:
        terminal.wait_for(r"s old")
        proxy.faults.extend(["hang"] * 9)

        def shown_ages() -> list[int]:
            return [int(age) for age in re.findall(r"\w+, (\d+) s old", terminal.text)]

        first = max(shown_ages())
        terminal.wait_until(lambda: max(shown_ages()) >= first + 2, "an age that has grown by 2 s")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(DEADLINE_SECONDS) == 0
        assert "Traceback" not in terminal.read()

    def test_events_stay_above_the_status_line(self, terminal: Terminal, play: Play) -> None:
        terminal.wait_for(r"96/3")
        play.bowl()
        terminal.wait_for(r"\r\x1b\[K   0\.2  run: runs 1\r\n")
        terminal.wait_for(r"97/3")

    def test_a_narrow_status_line_keeps_the_age(self, proxy: FaultyProxy, key: str, play: Play) -> None:
        narrow = Terminal(proxy, key, str(play.ref.match_id), columns=30)
        try:
            line = narrow.wait_for(r"\x1b\[K(\w+, \d+ s old · [^\r\n]*)\r\x1b\[K")[1]
        finally:
            narrow.close()
        assert len(line) == 29

    def test_a_closed_pipe_is_no_error(self, proxy: FaultyProxy, key: str, play: Play) -> None:
        play.bowl(20)
        env = {**os.environ, "VICTORYLINE_URL": proxy.url, "VICTORYLINE_API_KEY": key}
        command = [sys.executable, "-m", "victoryline_client", "follow", str(play.ref.match_id), "--json"]
        process = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["changed"]
        process.stdout.close()
        play.bowl()
        assert process.wait(DEADLINE_SECONDS) == 0
        assert process.stderr.read() == b""
        process.stderr.close()
