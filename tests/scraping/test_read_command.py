"""The command `read`: saved responses, evidence, recordings and pages, through the adapter of a source."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError

from scraping.models import Source
from scraping.reading import recordings
from scraping.reading.access import Robots, RobotsFile
from tests.factories import make_source
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn
from tests.scraping.sources import espncricinfo_pages as cricinfo
from tests.stadium_process import StadiumProcess

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("NFR-008")]
RECORDED = Path(recordings.__file__).parents[2] / "tests" / "recordings"


@pytest.fixture(autouse=True)
def own_temp_dir_of_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command makes a temporary folder of its own the default one of its process."""
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())


def read(*words: Any, source: str = "crex", **options: Any) -> str:
    out = io.StringIO()
    call_command("read", *map(str, words), source=source, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def failure(*words: Any, source: str = "crex", **options: Any) -> tuple[int, str]:
    with pytest.raises(CommandError) as caught:
        read(*words, source=source, **options)
    return caught.value.returncode, str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> SimpleNamespace:
    """Files whose names say nothing."""
    broken = build.event(status={"code": 7})
    evidence = "https://crex.com/api/v3/getSV3?key=***\n403 application/json\n\n"
    contents: dict[str, str] = {
        "crex_page": "<!-- https://crex.com/x\n200 text/html -->\n\n" + build.page_html(build.state()),
        "crex_live": json.dumps(build.live()),
        "crex_feed": json.dumps(build.feed()),
        "crex_state": json.dumps(build.state()),
        "crex_refused": evidence + json.dumps({"error": {"code": 403, "reason": "challenge"}}),
        "sofa_event": json.dumps({"event": build.event()}),
        "sofa_incidents": json.dumps(build.incidents()),
        "sofa_broken": json.dumps({"event": broken}),
        "sofa_list": json.dumps({"events": [build.event(), build.event(id=7002)]}),
        "espn_lineups": json.dumps(espn.summary()),
        "cricinfo": cricinfo.html({"match": cricinfo.match(), "content": cricinfo.content()}),
    }
    found = SimpleNamespace(folder=tmp_path)
    for number, (name, text) in enumerate(contents.items()):
        file = tmp_path / f"{number}.saved"
        file.write_text(text)
        setattr(found, name, file)
    return found


class TestFiles:
    def test_finds_out_what_the_files_are(self, files: SimpleNamespace) -> None:
        text = read(files.crex_feed, files.crex_page, files.crex_live)
        assert "2.saved (feed)" in text
        assert "0.saved (page)" in text
        assert "9XA  Orchard City v Pelican Town, match 4: live, play" in text
        assert "Pelican Town (PEL): 88/2 (10.3)" in text
        assert "5 events, the newest: four 10.3 Ada Reed to Bo Finch" in text

    @pytest.mark.parametrize(
        ("source", "name", "kind"),
        [
            ("crex", "crex_page", "Match"),
            ("crex", "crex_state", "Match"),  # the data of the page's script alone
            ("crex", "crex_feed", "Events"),
            ("sofascore", "sofa_event", "Match"),
            ("sofascore", "sofa_incidents", "Events"),
            ("sofascore", "sofa_list", "List"),
            ("espn", "espn_lineups", "Match"),
            ("espncricinfo", "cricinfo", "Match"),
        ],
    )
    def test_of_one_kind_are_enough(self, files: SimpleNamespace, source: str, name: str, kind: str) -> None:
        assert read(getattr(files, name), source=source).startswith(f"{kind}, from ")

    def test_of_a_match_show_its_line_ups_too(self, files: SimpleNamespace) -> None:
        text = read(files.espn_lineups, source="espn")
        assert "team_a: 11 starters of 12 players, confirmed" in text

    def test_can_be_named_and_their_kind_given(self, files: SimpleNamespace) -> None:
        assert "(round)" in read(f"round={files.sofa_list}", source="sofascore", kind="round")

    def test_show_missing_and_unknown(self, files: SimpleNamespace) -> None:
        text = read(f"event={files.sofa_event}", source="sofascore")
        assert "Missing: events" in text

    def test_cannot_move_the_cursor_of_the_terminal(self, files: SimpleNamespace) -> None:
        files.sofa_event.write_text(json.dumps({"event": build.event(venue={"name": "Park\x1b[2J"})}))
        assert "Park?[2J" in read(files.sofa_event, source="sofascore")

    def test_come_from_standard_input(self, files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(files.sofa_event.read_bytes())))
        assert "7001  Alder Athletic v Birch Rovers" in read("-", source="sofascore")

    def test_as_json_have_every_result(self, files: SimpleNamespace) -> None:
        found = json.loads(read(files.sofa_event, files.sofa_incidents, source="sofascore", json=True))
        assert found["error"] is None
        match = found["results"]["match"]
        assert match["documents"] == {"event": str(files.sofa_event), "incidents": str(files.sofa_incidents)}
        assert match["result"]["state"]["score"]["team_a"]["goals"] == 2
        assert (match["missing"], match["unknown"]) == ([], [])

    def test_change_no_row_and_need_no_database(self, files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        read(files.crex_page)
        assert not any(model.objects.exists() for model in apps.get_app_config("scraping").get_models())

        def away(**_: Any) -> None:
            raise DatabaseError("away")

        monkeypatch.setattr(Source.objects, "filter", away)
        assert read(files.crex_page).startswith("Match")


class TestUnreadable:
    def test_names_the_path_of_a_break(self, files: SimpleNamespace) -> None:
        code, message = failure(files.sofa_broken, source="sofascore")
        assert code == 1
        assert "could not be read as match: sofascore.event.v1: event.status.type (" in message
        assert "Path: event.status.type" in message
        assert "scraping/sources/sofascore" in message

    def test_evidence_of_a_refusal_is_one(self, files: SimpleNamespace) -> None:
        code, message = failure(f"live={files.crex_refused}")
        assert code == 1
        assert "live answered 403" in message

    def test_wants_the_other_documents(self, files: SimpleNamespace) -> None:
        code, message = failure(f"live={files.crex_live}")
        assert code == 1
        assert "no name is known for team OR" in message
        assert "Give the other documents of the reading too" in message

    def test_a_file_of_no_use_is_named(self, files: SimpleNamespace) -> None:
        code, message = failure(files.sofa_event, files.sofa_broken, files.sofa_incidents, source="sofascore")
        assert code == 1
        assert "7.saved" in message

    def test_as_json_has_the_error(self, files: SimpleNamespace) -> None:
        out = io.StringIO()
        with pytest.raises(CommandError):
            call_command("read", str(files.sofa_broken), source="sofascore", json=True, stdout=out)
        error = json.loads(out.getvalue())["error"]
        assert (error["kind"], error["type"], error["path"]) == ("match", "SchemaBreak", "event.status.type")

    def test_wrong_usage_has_an_exit_code_of_its_own(self, files: SimpleNamespace) -> None:
        code, message = failure(files.crex_page, source="crix")
        assert code == 2
        assert message.startswith("No source 'crix' is read. There are: board, crex, crexpro, espn, ")
        assert failure(files.folder / "none")[0] == 2
        code, message = failure("https://crex.com/about")
        assert code == 2
        assert "cricket-live-score" in message


@pytest.mark.requirement("NFR-008")
class TestSave:
    def test_writes_a_recording_that_names_nobody(self, files: SimpleNamespace) -> None:
        folder = files.folder / "recorded"
        original = read(files.crex_page, files.crex_feed, files.crex_live, save=folder)
        texts = "".join(file.read_text() for file in folder.iterdir()).lower()
        for word in (
            "orchard",
            "pelican",
            "lantern",
            "ada",
            "reed",
            "finch",
            "moss",
            "9xa",
            "crex.com",
            "5150",
            "driven",
        ):
            assert word not in texts
        recorded = read(folder)
        assert [line.partition(":")[2] for line in (original.splitlines()[1], recorded.splitlines()[1])] == [
            " live, play",
            " live, play",
        ]
        assert "151/10 (19.2)" in recorded
        assert "5 events, the newest: four 10.3" in recorded

    def test_is_the_same_for_the_same_seed(self, files: SimpleNamespace) -> None:
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            read(files.sofa_event, files.sofa_incidents, source="sofascore", save=files.folder / name, seed=seed)
        first, second, third = ((files.folder / name / "event.json").read_bytes() for name in "abc")
        assert first == second != third

    def test_keeps_names_and_ids_that_belong_together(self, files: SimpleNamespace) -> None:
        folder = files.folder / "recorded"
        read(files.cricinfo, source="espncricinfo", save=folder)
        shown = json.loads(read(folder, source="espncricinfo", json=True))["results"]
        state = shown["match"]["result"]["state"]
        assert state["toss"]["winner"] == state["teams"]["team_b"]["name"]
        names = {player["name"] for side in shown["lineups"]["result"]["lineups"] for player in side["players"]}
        assert shown["match"]["result"]["events"][0]["description"].split(" to ")[0] in names

    def test_is_not_kept_where_it_is_read_in_another_way(
        self, files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recordings, "VOCABULARY", recordings.VOCABULARY - {"inprogress"})
        code, message = failure(files.sofa_event, source="sofascore", save=files.folder / "recorded")
        assert code == 1
        assert "Not saved" in message
        assert "vocabulary.txt" in message
        assert list((files.folder / "recorded").iterdir()) == []

    def test_wants_a_new_folder(self, files: SimpleNamespace) -> None:
        assert failure(files.crex_page, save=files.folder)[0] == 2


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    with StadiumProcess(programme="many:1", pace=0) as running:
        running.skip(1_500)
        yield running


@pytest.mark.slow
class TestAddress:
    @pytest.mark.parametrize("key", ["crex", "espn"])
    def test_is_read_through_the_browser(self, arena: StadiumProcess, key: str, tmp_path: Path) -> None:
        make_source(key, base_url=f"{arena.url}/{key}", allows_private_addresses=True)
        before = [model.objects.count() for model in apps.get_app_config("scraping").get_models()]
        row = next(one for one in arena.matches() if one["site"] == key)
        text = read(row["url"], source=key, save=tmp_path / "recorded")
        truth = arena.truth(key, row["key"])
        assert f"{row['key']}  {truth['teams']['team_a']['name']} v" in text
        assert (tmp_path / "recorded" / "recording.json").exists()
        assert [model.objects.count() for model in apps.get_app_config("scraping").get_models()] == before

    def test_of_a_list_is_read_too(self, arena: StadiumProcess) -> None:
        make_source("crex", base_url=f"{arena.url}/crex", allows_private_addresses=True)
        assert read(f"{arena.url}/crex/cricket-live-score").startswith("List, from ")

    def test_that_robots_txt_forbids_is_not_requested(
        self, arena: StadiumProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_source("crex", base_url=f"{arena.url}/crex", allows_private_addresses=True)

        async def forbid(file: RobotsFile, *_: Any) -> None:
            file.allows, file.fetched_at = lambda _: False, 0.0
            file.next_fetch_at = float("inf")

        monkeypatch.setattr(Robots, "_fetch", lambda self, file, *rest: forbid(file, *rest))
        code, message = failure(f"{arena.url}/crex/cricket-live-score/a-vs-b-match-updates-1AB")
        assert code == 1
        assert "robots.txt of crex forbids /crex/cricket-live-score/a-vs-b-match-updates-1AB" in message
        assert "nothing was sent" in message

    def test_without_a_match_is_gone(self, arena: StadiumProcess) -> None:
        make_source("crex", base_url=f"{arena.url}/crex", allows_private_addresses=True)
        code, message = failure(f"{arena.url}/crex/cricket-live-score/a-vs-b-match-updates-1AB")
        assert code == 1
        assert "page answered 404" in message
