"""`manage.py replay` asked for what cannot be: it says what is wrong, and starts nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.rehearsal.files import TEAMS, delivery, innings, match, write


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write(tmp_path, "one", match(innings(TEAMS[0], [delivery(1)])))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--speed", "0"], "--speed is 0; it must be from 1 to 4000"),
        (["--speed", "4001"], "--speed is 4001; it must be from 1 to 4000"),
        (["--mistakes", "3"], "--mistakes is 3; it must be from 0 to 1"),
        (["--outage", "-5"], "--outage is -5; it must be from 0 to 3600"),
        (["--outage", "nan"], "--outage is nan; it must be from 0 to 3600"),
        (["--sites", "crex,nosuch"], "--sites: nosuch is none of crex, "),
        (["--sites", "sofascore"], "--sites: sofascore is none of crex, "),  # football there
        (["--sites", ","], "--sites is empty; name one or more of crex, "),
    ],
)
def test_options_that_make_no_sense(recording: Path, options: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        call_command("replay", str(recording), *options)


def test_a_folder_to_keep_things_in_must_be_new(recording: Path) -> None:
    for taken in (recording, recording.parent):
        with pytest.raises(CommandError, match="is not an empty folder; nothing was written"):
            call_command("replay", str(recording), "--into", str(taken))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nothing.json", None, r"There is no .*nothing\.json; nothing was started"),
        ("broken.json", "{broken", r"broken\.json is no recorded match"),
        ("thin.json", '{"info": {}}', r"thin\.json is no recorded match"),
        ("list.json", "[]", r"list\.json is no recorded match"),
    ],
)
def test_files_that_hold_no_match(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match=said):
        call_command("replay", str(file))


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"holds no \.json file"):
        call_command("replay", str(tmp_path))
