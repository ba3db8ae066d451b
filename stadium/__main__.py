"""`python -m stadium`: run the simulated source sites."""

from __future__ import annotations

import argparse

from stadium.config import add_options, config_from
from stadium.cricsheet.document import CricsheetError
from stadium.matches.clock import StateFileError
from stadium.server import serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m stadium", description=__doc__)
    add_options(parser)
    try:
        config = config_from(parser.parse_args())
    except ValueError as error:
        parser.error(str(error))
    try:
        serve(config)
    except (StateFileError, CricsheetError, OSError) as error:
        parser.exit(1, f"stadium: {error}\n")


if __name__ == "__main__":
    main()
