"""Recordings on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stadium.cricket.script import CricketScript
from stadium.cricsheet.cast import Cast
from stadium.cricsheet.document import CricsheetError, read
from stadium.cricsheet.names import Roster
from stadium.cricsheet.retelling import script_of


@dataclass(frozen=True, slots=True)
class Recording:
    name: str  # of the file, without its ending
    script: CricketScript


@dataclass(frozen=True, slots=True)
class Folder:
    recordings: tuple[Recording, ...]
    complaints: tuple[str, ...]  # files that can't be played, and why


def load(path: Path, roster: Roster | None = None) -> CricketScript:
    """The match in one file."""
    document = read(path)
    try:
        return script_of(path.stem, document, Cast(document, roster or Roster()))
    except CricsheetError as error:
        raise CricsheetError(f"{path}: {error}") from error


def load_all(path: Path) -> Folder:
    """Every match of a folder, or the one of a file. Bad files are left out and named; none good is an error."""
    if not path.exists():
        raise CricsheetError(f"{path}: there is no such file or folder")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    roster, recordings, complaints = Roster(), [], []
    for file in files:
        try:
            recordings.append(Recording(file.stem, load(file, roster)))
        except CricsheetError as error:
            complaints.append(str(error))
    if not recordings:
        raise CricsheetError(complaints[0] if complaints else f"{path}: holds no *.json file")
    return Folder(tuple(recordings), tuple(complaints))
