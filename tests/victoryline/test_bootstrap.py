"""Bootstrap's parts: finding Chromium and servers, running steps quietly, refusing clearly."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import bootstrap, steps, system_packages
from scripts.steps import StepFailedError
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib import chromium


def program(path: Path, text: str = "#!/bin/sh\necho Chromium 1.2.3\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine on which nothing is installed."""
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


class TestFindingChromium:
    def find(self, tmp_path: Path, machine: dict[str, str], chosen: Path | None = None) -> Path | None:
        return chromium.find(chosen=chosen, var_dir=tmp_path / "var", environ=machine)

    def test_finds_nothing_on_an_empty_machine(self, tmp_path, machine):
        assert self.find(tmp_path, machine) is None

    def test_prefers_the_configured_one(self, tmp_path, machine):
        program(tmp_path / "bin" / "chromium")
        chosen = program(tmp_path / "mine")
        assert self.find(tmp_path, machine, chosen) == chosen

    def test_does_not_replace_a_choice_that_is_missing(self, tmp_path, machine):
        program(tmp_path / "bin" / "chromium")
        assert self.find(tmp_path, machine, tmp_path / "nothing") is None

    def test_prefers_playwrights_newest_to_the_systems(self, tmp_path, machine):
        program(tmp_path / "bin" / "chromium")
        for revision in (999, 1200):
            newest = program(tmp_path / f"home/.cache/ms-playwright/chromium-{revision}/chrome-linux/chrome")
        assert self.find(tmp_path, machine) == newest

    @pytest.mark.parametrize("name", chromium.SYSTEM_NAMES)
    def test_finds_the_systems(self, tmp_path, machine, name):
        assert self.find(tmp_path, machine) is None
        assert program(tmp_path / "bin" / name) == self.find(tmp_path, machine)

    def test_remembers_only_what_still_exists(self, tmp_path, machine):
        there = program(tmp_path / "bin" / "chromium")
        (tmp_path / "var").mkdir()
        chromium.remembered_at(tmp_path / "var").write_text("/nothing/here\n")
        assert self.find(tmp_path, machine) == there

    def test_a_program_without_its_libraries_has_no_version(self, tmp_path):
        assert chromium.version(program(tmp_path / "good")) == "Chromium 1.2.3"
        assert chromium.version(program(tmp_path / "bad", "#!/bin/sh\nexit 127\n")) is None
        assert chromium.version(tmp_path / "nothing") is None


class TestSteps:
    def test_a_success_prints_nothing(self, capsys):
        assert steps.run([sys.executable, "-c", "print('chatter')"])
        assert "chatter" not in "".join(capsys.readouterr())

    def test_a_failure_shows_the_end_of_the_output(self, capsys):
        assert not steps.run([sys.executable, "-c", "print('it is broken'); raise SystemExit(3)"])
        assert "it is broken" in capsys.readouterr().err

    def test_gives_up_on_silence(self):
        assert not steps.run([sys.executable, "-c", "import time; time.sleep(60)"], silent_seconds=0.3, show_tail=False)


class TestInstalling:
    def test_is_refused_when_forbidden_with_the_line_to_type(self):
        with pytest.raises(StepFailedError, match=r"VICTORYLINE_NO_INSTALL.*sudo apt-get install -y chromium"):
            system_packages.install("chromium", environ={"VICTORYLINE_NO_INSTALL": "1"})

    def test_says_so_without_a_package_manager(self, monkeypatch):
        monkeypatch.setattr(shutil, "which", lambda _: None)
        with pytest.raises(StepFailedError, match="no apt-get here"):
            system_packages.install("chromium", environ={})

    def test_says_so_without_root(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr(shutil, "which", lambda name: name if name == "apt-get" else None)
        with pytest.raises(StepFailedError, match="needs root"):
            system_packages.install("chromium", environ={})

    def test_finds_programs_in_debians_folders(self):
        assert system_packages.find_program("initdb") is not None
        assert system_packages.find_program("no-such-program") is None


class TestCommandLine:
    def test_repeats_nothing_that_is_done(self):
        """The environment is prepared already, so it ends at once without output."""
        done = subprocess.run(
            [sys.executable, bootstrap.__file__, "--for", "dev"],
            cwd=PROJECT_ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == ""

    def test_make_lists_its_targets(self):
        listed = subprocess.run(["make"], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True).stdout
        for target in ("run", "test", "lint", "bench", "requirements", "help", "migrations-check", "clean"):
            assert f"make {target} " in listed
