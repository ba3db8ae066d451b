"""config/teams.yaml: checked, written into the table of aliases, without overwriting values set by operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from scraping import names
from scraping.configuration import source_file
from scraping.configuration.source_file import SourceFileError
from scraping.models import TeamAlias

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "teams.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_projects_own_file_makes_two_names_one_team() -> None:
    rows = source_file.read_teams(Path("config/teams.yaml"))
    assert source_file.sync_teams(rows, is_reset=False) == len(rows) == TeamAlias.objects.count()
    for sport, one, other in (
        ("cricket", "RCB", "Royal Challengers Bangalore"),
        ("cricket", "IND-W", "India Women"),
        ("football", "Atletico-MG", "Atlético Mineiro"),
        ("football", "Spurs", "Tottenham Hotspur FC"),
        ("football", "KOR", "Korea Republic"),
        ("cricket", "UAE", "United Arab Emirates"),
    ):
        aliases = TeamAlias.objects.names(sport)
        assert names.similarity(names.team(one, "", aliases), names.team(other, "", aliases)) == names.EXACT


def test_no_alias_means_two_teams() -> None:
    """An alias that is a team's own name as well would make two teams one."""
    rows = source_file.read_teams(Path("config/teams.yaml"))
    teams = {(row.sport, names.squeezed(row.name)): row.name for row in rows}
    assert [row for row in rows if teams.get((row.sport, row.squeezed), row.name) != row.name] == []


def test_keeps_aliases_set_by_an_operator(tmp_path: Path) -> None:
    rows = source_file.read_teams(written(tmp_path, "cricket: {India: [IND]}"))
    source_file.sync_teams(rows, is_reset=False)
    TeamAlias.objects.update(name="Bharat")
    source_file.sync_teams(source_file.read_teams(tmp_path / "teams.yaml"), is_reset=False)
    assert TeamAlias.objects.get().name == "Bharat"
    source_file.sync_teams(source_file.read_teams(tmp_path / "teams.yaml"), is_reset=True)
    assert TeamAlias.objects.get().name == "India"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("chess: {India: [IND]}", "chess"),
        ("cricket: {India: IND}", "India"),
        ("cricket: {India: [IND], Indonesia: [ind]}", "ind is India and Indonesia"),
        ("cricket: [", "teams.yaml"),
    ],
)
def test_names_the_problem_of_an_invalid_file(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(SourceFileError, match=named):
        source_file.read_teams(written(tmp_path, text))


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceFileError, match=r"teams\.yaml"):
        source_file.read_teams(tmp_path / "teams.yaml")
