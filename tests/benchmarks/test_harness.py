"""The benchmark harness: arguments, output, saved results. No bench is run here."""

import argparse
import contextlib
import json
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import pytest

from benchmarks import __main__ as harness
from benchmarks import report, results
from benchmarks.benches.journal import make_environment
from benchmarks.cpu import Cpu, CpuTimes, milliseconds_each
from benchmarks.errors import BenchError
from benchmarks.ground_truth import ObservedScore, event_latencies, printed_score, scores_of, wrong_scores
from benchmarks.peers import crawlers, crex_page
from benchmarks.peers.crawlers import PEER_CRAWLERS, PLAIN
from benchmarks.programs.bench_process import BenchProcess
from benchmarks.registry import BENCHES, load
from tests import migrated
from victoryline.lib.processes import python

MEASURED = {"ours": 150.0, "peers": {"scrapy-playwright": 5.0}, "ratio": 30.0, "problems": []}


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Returns a function that runs the bench `polls` with a given result in a temporary folder."""
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "PROJECT_ROOT", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    (tmp_path / "benchmarks.md").write_text("# Page\n<!-- figures of polls -->\nold\n<!-- end -->\nThe end.\n")
    monkeypatch.setattr(harness.signal, "signal", lambda *_: None)

    def measures(outcome):
        def run(options):
            if isinstance(outcome, Exception):
                raise outcome
            return dict(outcome)

        monkeypatch.setattr(load("polls"), "run", run)

    return measures


class TestArguments:
    def test_refuse_an_unknown_bench_with_the_list_of_benches(self, capsys):
        with pytest.raises(SystemExit) as ended:
            harness.main(["nope"])
        assert ended.value.code == 2
        output = capsys.readouterr().err
        assert "'nope'" in output
        assert ", ".join(sorted(BENCHES)) in output

    def test_without_a_name_list_all_benches(self, capsys):
        assert harness.main([]) == 0
        output = capsys.readouterr().out
        assert all(f"  {name:10}{load(name).SUMMARY}" in output for name in BENCHES)

    def test_refuse_options_without_a_name(self, capsys):
        with pytest.raises(SystemExit) as ended:
            harness.main(["--seconds", "3"])
        assert ended.value.code == 2
        assert capsys.readouterr().err

    def test_refuse_an_unknown_database(self, capsys):
        with pytest.raises(SystemExit):
            harness.main(["polls", "--database", "oracle"])
        assert "postgresql" in capsys.readouterr().err

    @pytest.mark.parametrize("name", sorted(BENCHES))
    def test_every_bench_has_a_summary_and_a_length(self, name):
        parser = argparse.ArgumentParser()
        load(name).add_arguments(parser)
        assert load(name).SUMMARY
        lengths = {"recovery": "times", "soak": "minutes", "load": "minutes", "accuracy": "speed", "night": "seeds"}
        length = (lengths | {"pairing": "pairs", "console": "rows"}).get(name, "seconds")
        others = [] if name in ("accuracy", "pairing", "console") else ["--matches", "5"]  # recordings, fixtures, rows
        assert getattr(parser.parse_args([f"--{length}", "3", *others]), length) == 3


class TestResult:
    def test_is_printed_as_the_last_line_and_saved(self, bench, capsys, tmp_path):
        bench(MEASURED)
        assert harness.main(["polls"]) == 0
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert printed == json.loads((tmp_path / "polls.json").read_text())
        assert printed["bench"] == "polls"
        assert (printed["ours"], printed["peers"], printed["ratio"]) == (150.0, {"scrapy-playwright": 5.0}, 30.0)
        assert printed["machine"]["cores"] >= 1
        assert printed["problems"] == []

    def test_is_written_into_the_documentation(self, bench, tmp_path):
        bench(MEASURED)
        harness.main(["polls"])
        page = (tmp_path / "benchmarks.md").read_text()
        assert "| VictoryLine, journaled polls | 150 a second |  |\n" in page
        assert "| against scrapy-playwright | 30 x | 30 x |\n" in page
        assert "crawlee" not in page  # no row without a figure
        assert page.startswith("# Page\n")
        assert page.endswith("The end.\n")
        assert "old" not in page

    def test_documentation_has_the_saved_figures_of_every_bench(self):
        text = report.PAGE.read_text()
        assert {name for _, name, _ in report.MARKED.findall(text)} == report.FIGURES.keys() >= BENCHES.keys()
        assert text == report.filled(text), "run: python -m benchmarks.report"

    def test_with_problems_is_an_error_and_is_not_saved(self, bench, capsys, tmp_path):
        bench(MEASURED)
        harness.main(["polls"])
        bench({**MEASURED, "ours": 0.0, "problems": ["VictoryLine has done no poll"]})
        assert harness.main(["polls"]) == 1
        output = capsys.readouterr()
        assert json.loads(output.out.splitlines()[-1])["problems"] == ["VictoryLine has done no poll"]
        assert "VictoryLine has done no poll" in output.err
        assert json.loads((tmp_path / "polls.json").read_text())["ours"] == 150.0

    def test_is_not_printed_when_the_bench_could_not_run(self, bench, capsys):
        bench(BenchError("no Chromium was found"))
        assert harness.main(["polls"]) == 1
        output = capsys.readouterr()
        assert "no Chromium was found" in output.err
        assert output.out == ""

    @pytest.mark.usefixtures("bench")
    def test_of_another_database_has_its_own_file(self, tmp_path):
        results.save(results.complete("polls", MEASURED, took_seconds=1, load_before=0.0), variant="sqlite")
        assert [path.name for path in tmp_path.glob("*.json")] == ["polls-sqlite.json"]

    @pytest.mark.parametrize(
        ("values", "percent", "expected"),
        [([], 50, 0.0), ([7.0], 99, 7.0), ([3.0, 1.0, 2.0], 50, 2.0), (list(range(1, 101)), 95, 95)],
    )
    def test_percentiles_are_measured_values(self, values, percent, expected):
        assert results.percentile(values, percent) == expected


class TestCpu:
    def test_counts_time_between_two_samples_with_new_processes(self):
        before = CpuTimes(100.0, {"worker": {1: 5.0}})
        after = CpuTimes(110.0, {"worker": {1: 7.0}, "browser": {2: 0.5}})
        cpu = before.until(after)
        assert cpu.percent() == {"browser": 5.0, "worker": 20.0}
        assert milliseconds_each([cpu, cpu], 100) == {"browser": 10.0, "worker": 40.0, "all": 50.0}

    def test_is_zero_without_work(self):
        assert milliseconds_each([Cpu(10.0, {"worker": 3.0})], 0) == {"all": 0}


class Stadium:
    """Reports the score 10/1 until second 100, and 14/1 afterwards."""

    def truth(self, site, key, *, at):
        side = {"runs": 10 if float(at) < 100 else 14, "wickets": 1, "overs": "2.3"}
        return {"score": {"team_a": side, "team_b": None}}


class TestGroundTruth:
    @pytest.mark.parametrize(
        ("runs", "asked_at", "read_at", "is_right"),
        [
            (10, 97.0, 99.0, True),
            (10, 99.0, 101.0, True),  # it changed during the request
            (14, 99.0, 101.0, True),
            (10, 101.0, 103.0, False),
            (14, 95.0, 97.0, False),
        ],
    )
    def test_accepts_a_score_that_was_true_between_request_and_response(self, runs, asked_at, read_at, is_right):
        seen = ObservedScore("138Z", asked_at, read_at, ((runs, 1, "2.3"), None))
        checked, wrong = wrong_scores([seen], Stadium(), sample=5)
        assert checked == 1
        assert bool(wrong) is not is_right

    def test_parses_printed_and_stored_scores(self):
        assert printed_score("92/10(14.4") == (92, 10, "14.4")
        assert printed_score("") is None
        stored = {"team_a": {"runs": 92, "wickets": 10, "overs": "14.4", "goals": None}, "team_b": {"overs": None}}
        assert scores_of(stored) == ((92, 10, "14.4"), None)


@pytest.mark.requirement("NFR-001")
def test_the_latency_of_an_event_counts_from_its_time_at_the_source():
    began = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
    times = {"1": ("ball", 10), "2": ("wicket", 11), "3": ("over", 12), "4": ("ball", 20), "5": ("ball", -1)}
    truth = [
        {"id": name, "kind": kind, "happened_at": (began + timedelta(seconds=at)).isoformat()}
        for name, (kind, at) in times.items()
    ]
    written = {name: began + timedelta(seconds=13) for name in ("1", "2", "3", "5")}
    found = event_latencies(truth, written, since=began, until=began + timedelta(seconds=30))
    assert found == ({"ball": [3.0], "dismissal": [2.0]}, 1)


class TestBenchProcess:
    """The programs of the journal bench, without their speed."""

    def test_journal_program_opens_claims_and_finishes(self, tmp_path):
        migrated.place(tmp_path / "var" / "victoryline.sqlite3")
        env = make_environment(tmp_path / "var", "")
        command = python("-m", "benchmarks.programs.journal", "--tasks", "60", "--threads", "2")
        with BenchProcess("ours", command, env=env, folder=tmp_path) as process:
            turn = process.take_turn(seconds=0.01, tasks=60)
            again = process.take_turn(seconds=0.01, tasks=45)
        assert (turn.tasks, again.tasks, process.stored) == (60, 45, 105)
        assert 0 < turn.open_seconds < turn.seconds
        with contextlib.closing(sqlite3.connect(tmp_path / "var" / "victoryline.sqlite3")) as database:
            rows = database.execute("SELECT state, attempt, fence, count(*) FROM scrape_tasks GROUP BY 1, 2, 3")
            assert rows.fetchall() == [("SUCCESS", 1, 1, 105)]

    def test_shows_the_log_of_a_failed_program(self, tmp_path):
        with (
            pytest.raises(BenchError, match="out of order"),
            BenchProcess("broken", [sys.executable, "-c", "raise SystemExit('out of order')"], env={}, folder=tmp_path),
        ):
            pass

    def test_refuses_a_turn_with_missing_tasks(self, tmp_path):
        program = "print('{}', flush=True); input(); print('{\"tasks\": 9, \"stored\": 8}', flush=True); input()"
        with (
            pytest.raises(BenchError, match="8 of 9"),
            BenchProcess("incomplete", [sys.executable, "-c", program], env={}, folder=tmp_path) as process,
        ):
            process.take_turn(seconds=1, tasks=9)


class TestPeers:
    @pytest.mark.parametrize("peer", PEER_CRAWLERS, ids=lambda peer: peer.name)
    def test_have_our_version_of_playwright(self, peer):
        assert peer.pins()["playwright"] == version("playwright")
        assert peer.program.exists()

    def test_ratio_compares_with_plain_scrapy_playwright(self):
        assert (PLAIN.name, PLAIN.arguments) == ("scrapy-playwright", ())

    def test_count_only_visits_within_the_window(self):
        lines = [
            {"at": 9.0, "key": "A", "asked_at": 8.9, "scores": ["1/0(0.1", ""]},
            {"at": 10.0, "window": [10.0, 20.0]},
            {"at": 12.0, "key": "B", "asked_at": 11.75, "scores": ["92/10(14.4", "3/0(0.2"]},
            {"at": 13.0, "key": "C", "error": "Timeout"},
            {"at": 21.0, "key": "D", "asked_at": 20.9, "scores": ["1/0(0.1", ""]},
        ]
        visits = crawlers.read("\n".join(map(json.dumps, lines)), Cpu(0.0, {}))
        assert [(one.key, one.scores) for one in visits.seen] == [("B", ((92, 10, "14.4"), (3, 0, "0.2")))]
        assert visits.errors == ["C: Timeout"]
        assert (visits.seconds, visits.milliseconds) == (10.0, [250.0])

    def test_without_a_window_have_no_result(self):
        assert crawlers.read("", Cpu(0.0, {})).seen == []

    def test_window_opens_after_two_visits_per_page(self, tmp_path):
        blob = json.dumps({"x/getSV3": {"a": "A^B", "j": "92/10(14.4", "k": "", "B": "4"}, "x/getBallFeeds": [1, 2]})
        window = crex_page.Window(tmp_path / "out", seconds=60, pages=2)
        for number in range(5):
            window.read(f"key{number}", 1.0, blob.replace('"', "&q;"))
            assert not window.is_over()
        window.read("broken", 1.0, "no blob")
        lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
        kinds = [kind for line in lines for kind in ("window", "error", "scores") if kind in line]
        assert kinds == [*["scores"] * 4, "window", "scores", "error"]
        assert lines[0]["scores"] == ["92/10(14.4", ""]
