"""`python -m victoryline_client follow MATCH`: a match in the terminal. Needs nothing but this package."""

from __future__ import annotations

import argparse
import sys

from victoryline_client.client import Client
from victoryline_client.terminal import KEY, URL, CannotFollow, Wishes, add_arguments, run, server_of
from victoryline_client.version import __version__


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="victoryline_client", description="Follow matches of a VictoryLine server.")
    parser.add_argument("--version", action="version", version=__version__)
    follow = parser.add_subparsers(dest="command", required=True).add_parser(
        "follow", help="Show a match and its events until it is over; without a match: list the live ones."
    )
    add_arguments(follow)
    options = vars(parser.parse_args(arguments))
    url, key = server_of(options)
    if not url or not key:
        missing = [name for name, value in (("the address", url), ("the key", key)) if not value]
        what = f"{' and '.join(missing).capitalize()} {'is' if len(missing) == 1 else 'are'} missing"
        return _fail(f"{what}: set {URL} and {KEY}, or give --url and --key.")
    try:
        with Client(url, key) as client:
            run(client, Wishes.of(options), sys.stdout)
    except (CannotFollow, ValueError) as error:
        return _fail(str(error))
    return 0


def _fail(words: str) -> int:
    sys.stderr.write(f"{words}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
