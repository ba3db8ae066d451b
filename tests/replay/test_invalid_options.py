"""`manage.py replay` with invalid options or files: it names the error and starts nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.stadium.cricsheet_files import document, innings, write


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write(tmp_path, document(innings("India", "1")), "one")


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_invalid_options_are_refused(recording: Path, options: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)):
        call_command("replay", str(recording), *options)


def test_the_folder_of_into_must_be_empty(recording: Path) -> None:
    for taken in (recording, recording.parent):
        with pytest.raises(CommandError, match="is not an empty folder; nothing was written"):
            call_command("replay", str(recording), "--into", str(taken))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nothing.json", None, r"There is no .*nothing\.json; nothing was started"),
        ("broken.json", "{broken", r"broken\.json is no recorded match"),
        ("thin.json", '{"info": {}}', r"thin\.json is no recorded match"),
        ("list.json", "[]", r"list\.json is no recorded match"),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match=message):
        call_command("replay", str(file))


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"contains no \.json file"):
        call_command("replay", str(tmp_path))
