"""`python -m stadium`: run the simulated source sites."""

from __future__ import annotations

import argparse
from pathlib import Path

from stadium.clock import MAX_PACE, StateFileError
from stadium.config import StadiumConfig
from stadium.programme import slots_of
from stadium.server import serve


def main() -> None:
    parser = _parser()
    chosen = parser.parse_args()
    try:
        slots_of(chosen.programme)
    except ValueError as error:
        parser.error(str(error))
    if not 0 <= chosen.pace <= MAX_PACE:
        parser.error(f"--pace must be between 0 and {MAX_PACE:g}")
    try:
        serve(StadiumConfig(**vars(chosen)))
    except (StateFileError, OSError) as error:
        parser.exit(1, f"stadium: {error}\n")


def _parser() -> argparse.ArgumentParser:
    standard = StadiumConfig()
    parser = argparse.ArgumentParser(prog="python -m stadium", description=__doc__)
    parser.add_argument("--host", default=standard.host, help="address to bind (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=standard.port, help="port to bind, 0 for any free one (%(default)s)"
    )
    parser.add_argument(
        "--programme",
        default=standard.programme,
        help="demo, single (one match), load:N (N long cricket matches), mixed:C:F (cricket, football), members:N "
        "(N cricket matches at the site that wants a token) or board:N (N that are only drawn) (%(default)s)",
    )
    parser.add_argument(
        "--pace", type=float, default=standard.pace, help="simulated seconds a second; 0 freezes play (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=standard.seed, help="the same seed, the same matches (%(default)s)")
    parser.add_argument("--state-file", type=Path, help="keep the clock here, to go on after a restart")
    parser.add_argument("--port-file", type=Path, help="write the bound port here once the sites answer")
    parser.add_argument(
        "--session-seconds",
        type=float,
        default=standard.session_seconds,
        help="how long a visitor's session lasts (%(default)s)",
    )
    return parser


if __name__ == "__main__":
    main()
