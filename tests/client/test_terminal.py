"""`manage.py follow` and `python -m victoryline_client follow`: a match in the terminal, in a pipe, for a program."""

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from scraping.api import examples
from scraping.models import Match, MatchRef
from scraping.payloads import Status
from tests.client.chaos import ChaosProxy
from tests.client.conftest import MakeClient
from tests.client.test_following import Play, steps
from tests.factories import make_match, make_ref, make_unread_match
from victoryline.env import PROJECT_ROOT
from victoryline_client import Change, Freshness, Unreachable
from victoryline_client.__main__ import main
from victoryline_client.screens import LiveScreen
from victoryline_client.terminal import CannotFollow, Wishes, run

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)


@pytest.fixture
def play(ref: MatchRef) -> Play:
    return Play(ref)


@pytest.fixture(autouse=True)
def no_server_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VICTORYLINE_URL", "VICTORYLINE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def shown(make_client: MakeClient, wishes: Wishes, *happenings: Any) -> str:
    out = io.StringIO()
    run(make_client(sleep=steps(*happenings)), wishes, out)
    return out.getvalue()


class TestPlain:
    def test_score_events_corrections_and_the_end(self, make_client: MakeClient, play: Play) -> None:
        play.bowl(2)
        text = shown(
            make_client,
            Wishes(match=str(play.ref.match_id), final_wait=0),
            play.bowl,
            lambda: play.correct(2, 4),
            lambda: play.take_back(3),
            play.end,
        )
        lines = text.splitlines()
        assert lines[0] == "India vs Australia · India tour of Australia"
        assert lines[1:4] == ["   0.1  run: 1 run", "   0.2  run: 1 run", "   0.3  run: 1 run"]
        assert re.fullmatch(
            r"India 187/5 \(20.0\) v Australia 98/3 \(12.3\) · live · fresh, \d s old, next .*", lines[4]
        )
        assert lines[5] == "   0.4  run: 1 run"
        assert any(line.startswith("corrected: 0.2  run: 4 runs") for line in lines)
        assert any(line.startswith("taken back: 0.3  run") for line in lines)
        assert lines[-1].endswith("· completed: Australia won · final")
        assert text.count("0.1  run") == 1

    def test_what_is_not_good_is_said_in_words_and_once(
        self, make_client: MakeClient, proxy: ChaosProxy, play: Play
    ) -> None:
        def become_old() -> None:
            Match.objects.update(last_scraper_update=timezone.now() - timezone.timedelta(hours=1))

        def nothing() -> None:
            pass

        text = shown(
            make_client,
            Wishes(match=str(play.ref.match_id), final_wait=0),
            become_old,
            nothing,
            play.bowl,
            lambda: proxy.faults.extend(["503"] * 2),
            nothing,
            nothing,
            play.end,
        )
        assert text.count("Stale: The source has not been read for too long; the server is at it.") == 1
        assert text.count("The data is fresh again.") == 1
        assert text.count("No answer now: By the proxy. What you see is what was known last; asking again.") == 1
        assert text.count("The server answers again.") == 1

    def test_past_events_are_as_many_as_asked_for(self, make_client: MakeClient, play: Play) -> None:
        play.bowl(9)
        play.end()
        for past in (0, 3):
            text = shown(make_client, Wishes(match=str(play.ref.match_id), past=past, final_wait=0))
            assert text.count("run: 1 run") == past


class TestJson:
    def test_is_one_object_a_line_and_holds_the_whole_story(self, make_client: MakeClient, play: Play) -> None:
        text = shown(
            make_client,
            Wishes(match=str(play.ref.match_id), is_json=True, final_wait=0),
            play.bowl,
            lambda: play.correct(1, 6),
            play.end,
        )
        told = [json.loads(line) for line in text.splitlines()]
        document: dict[str, Any] = {}
        for each in told:
            document |= each["changed"]
        assert document["score"]["team_b"]["runs"] == play.runs
        assert document["status"] == "completed"
        assert [row["action"] for each in told for row in each["events"]] == ["add", "add", "update"]
        assert (told[0]["freshness"]["state"], told[-1]["freshness"]["state"]) == ("fresh", "final")
        assert all(each["trouble"] is None for each in told)


class TestWhichMatch:
    def test_none_lists_the_live_ones(self, make_client: MakeClient, play: Play) -> None:
        make_unread_match(title="Kenya vs Nepal")
        text = shown(make_client, Wishes())
        assert f"crex_{play.ref.source_event_id}" in text
        assert "India 187/5" in text
        assert "Kenya" not in text

    def test_none_is_live(self, make_client: MakeClient) -> None:
        make_ref(make_match(now=timezone.now(), status=Status.UPCOMING), source_event_id="SOON")
        text = shown(make_client, Wishes())
        assert "No match is live now." in text
        assert "crex_SOON" in text

    def test_an_unknown_one_is_told_with_what_it_may_have_meant(self, make_client: MakeClient) -> None:
        now = timezone.now()
        make_ref(make_match(now=now), source_event_id="13KM")
        make_ref(make_match(sport="football", now=now), source="sofascore", source_event_id="G9")
        with pytest.raises(CannotFollow) as refused:
            shown(make_client, Wishes(match="crex_13KN"))
        near, live = str(refused.value).split("Live now:")
        assert "No match is known as crex_13KN" in near
        assert "crex_13KM" in near
        assert "sofascore_G9" in live
        assert "crex_13KM" not in live
        with pytest.raises(CannotFollow, match=r"(?s)Near it:.*Arsenal 2 v Chelsea 1"):
            shown(make_client, Wishes(match="arsenal"))


class TestCommand:
    def follow(self, *arguments: str) -> str:
        out = io.StringIO()
        call_command("follow", *arguments, "--final-wait", "0", stdout=out)
        return out.getvalue()

    def test_with_address_and_key(self, proxy: ChaosProxy, key: str, play: Play) -> None:
        play.end()
        text = self.follow(str(play.ref.match_id), "--url", proxy.url, "--key", key)
        assert "completed: Australia won" in text

    def test_finds_the_system_of_this_machine_by_itself(
        self, proxy: ChaosProxy, key: str, play: Play, settings: Any, tmp_path: Path
    ) -> None:
        settings.VAR_DIR = tmp_path
        (tmp_path / "demo.json").write_text(json.dumps({"url": proxy.url, "api_key": key}))
        assert "India 187/5" in self.follow()

    def test_the_key_of_this_machine_goes_to_no_other(
        self, proxy: ChaosProxy, key: str, settings: Any, tmp_path: Path
    ) -> None:
        settings.VAR_DIR = tmp_path
        (tmp_path / "demo.json").write_text(json.dumps({"url": "http://127.0.0.1:1", "api_key": key}))
        with pytest.raises(CommandError, match="no API key"):
            self.follow("--url", proxy.url)
        assert proxy.seen == []

    def test_errors_say_what_to_do(self, proxy: ChaosProxy, key: str, settings: Any, tmp_path: Path) -> None:
        settings.VAR_DIR = tmp_path
        with pytest.raises(CommandError, match="issue_api_key"):
            self.follow()
        with pytest.raises(CommandError, match="does not accept the API key"):
            self.follow("1", "--url", proxy.url, "--key", "vl_wrong")
        with pytest.raises(CommandError, match="is no address of a server"):
            self.follow("1", "--url", "scores", "--key", key)

    @pytest.mark.parametrize(("key", "words"), [("", "The address and the key are"), ("vl_x", "The address is")])
    def test_elsewhere_says_what_is_missing(self, monkeypatch: Any, capsys: Any, key: str, words: str) -> None:
        monkeypatch.setenv("VICTORYLINE_API_KEY", key)
        assert main(["follow"]) == 1
        assert capsys.readouterr().err.startswith(f"{words} missing: set VICTORYLINE_URL and VICTORYLINE_API_KEY")


class Terminal:
    """The program in a terminal of its own."""

    def __init__(self, proxy: ChaosProxy, key: str, *arguments: str) -> None:
        self.ours, theirs = pty.openpty()
        env = {**os.environ, "VICTORYLINE_URL": proxy.url, "VICTORYLINE_API_KEY": key, "COLUMNS": "200"}
        command = [sys.executable, "-m", "victoryline_client", "follow", *arguments]
        self.process = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.set_blocking(self.ours, False)
        self.text = ""

    def wait_for(self, pattern: str, seconds: float = 20) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self._read())):
            assert time.monotonic() < deadline, f"not shown within {seconds} s: {pattern}\n{self.text}"
            time.sleep(0.02)
        return found

    def _read(self) -> str:
        try:
            self.text += os.read(self.ours, 65536).decode(errors="replace")
        except BlockingIOError:
            pass
        except OSError:  # it has ended
            pass
        return self.text

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.fixture
def terminal(proxy: ChaosProxy, key: str, play: Play) -> Iterator[Terminal]:
    opened = Terminal(proxy, key, str(play.ref.match_id))
    yield opened
    opened.close()


@pytest.mark.parametrize("trouble", [None, Unreachable("gone")])
def test_a_narrow_terminal_shows_the_age_too(monkeypatch: pytest.MonkeyPatch, trouble: Unreachable | None) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    out = io.StringIO()
    fresh = Freshness(state="fresh", age_seconds=3, asked_at=0.0, clock=lambda: 0.0)
    LiveScreen(out, is_coloured=False).show(
        Change(document=examples.MATCH, freshness=fresh, changed={}, trouble=trouble)
    )
    line = out.getvalue().rpartition("\x1b[K")[2]
    assert line.endswith("· fresh, 3 s old")
    assert line.startswith("no answer · IND 187/5" if trouble else "IND 187/5 (20.0)")
    assert len(line) <= 43


@pytest.mark.slow
class TestTerminal:
    def test_the_age_counts_up_while_nothing_happens_and_ctrl_c_ends_it_quietly(
        self, terminal: Terminal, proxy: ChaosProxy, play: Play
    ) -> None:
        terminal.wait_for(r"India vs Australia")
        proxy.faults.extend(["hang"] * 9)  # even while the server is silent
        older = int(terminal.wait_for(r"fresh, (\d+) s old")[1]) + 2
        terminal.wait_for(rf"fresh, {older} s old")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(10) == 0
        assert "Traceback" not in terminal._read()

    def test_events_stay_above_the_line_that_lives(self, terminal: Terminal, play: Play) -> None:
        terminal.wait_for(r"96/3")
        play.bowl()
        terminal.wait_for(r"\r\x1b\[K   0\.2  run: 1 run\r\n")
        terminal.wait_for(r"97/3")


@pytest.mark.slow
def test_a_reader_who_has_had_enough_is_no_error(proxy: ChaosProxy, key: str, play: Play) -> None:
    play.bowl(20)
    env = {**os.environ, "VICTORYLINE_URL": proxy.url, "VICTORYLINE_API_KEY": key}
    command = [sys.executable, "-m", "victoryline_client", "follow", str(play.ref.match_id), "--json"]
    process = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["is_whole"]
    process.stdout.close()
    play.bowl()
    assert process.wait(20) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
