from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from stadium.config import add_options, config_from
from victoryline.management.commands.run_stadium import chosen


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--port", "0", "--programme", "pair:2", "--pace", "50", "--seed", "9", "--session-seconds", "60"],
        ["--replay", "recordings", "--speed", "2000", "--sites", "crex,espncricinfo", "--loop", "--at-once"],
        ["--distort", "espn:delay=3,names", "--distort", "espncricinfo:mistakes=0.1", "--port-file", "some where/port"],
    ],
)
def test_passes_all_options_to_the_stadium(given: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    parsed = parser.parse_args(given)
    assert config_from(parser.parse_args(chosen(vars(parsed)))) == config_from(parsed)


def test_knows_every_option_of_the_stadium() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    values = {name: Path("x") for name in vars(parser.parse_args([]))} | {"distort": ["x"]}
    command = " ".join(chosen(values))
    assert all(f"--{name.replace('_', '-')}" in command for name in values)
