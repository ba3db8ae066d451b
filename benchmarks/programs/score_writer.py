"""Creates live matches and commits a number of readings per second, each through journal and ingest, as a worker does.

Committed matches are also published to the shared cache; only the reading of a page is left out. Prints the match ids,
then the number of committed readings for every line on stdin.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from argparse import ArgumentParser
from typing import Any

WORKER = "bench-scores"


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True, help="readings a second")
    options = parser.parse_args()
    import django

    django.setup()
    from scraping.documents.publisher import publisher

    publisher.start()
    writer = ScoreWriter(options.matches)
    print(json.dumps({"ids": writer.ids}), flush=True)
    stopping = threading.Event()
    thread = threading.Thread(target=write_scores, args=(writer, options.rate, stopping), daemon=True)
    thread.start()
    for _ in sys.stdin:
        print(json.dumps({"readings": writer.readings, "is_alive": thread.is_alive()}), flush=True)
    stopping.set()
    thread.join(timeout=10)
    publisher.stop()


def write_scores(writer: ScoreWriter, rate: float, stopping: threading.Event) -> None:
    began = time.monotonic()
    while not stopping.wait(max(0.0, began + writer.readings / rate - time.monotonic())):
        writer.read_next()


class ScoreWriter:
    def __init__(self, number: int) -> None:
        from django.utils import timezone

        from tests.factories import make_ref, make_source, make_unread_match

        now, source = timezone.now(), make_source("crex")
        matches = [make_unread_match(now=now, title=f"Bench {index}") for index in range(number)]
        self._refs = [make_ref(match, source=source, now=now, captured_at=None) for match in matches]
        self.ids = [match.pk for match in matches]
        self._runs = dict.fromkeys(self.ids, 0)
        self.readings = 0
        for ref in self._refs:
            self._read(ref)

    def read_next(self) -> None:
        self._read(self._refs[self.readings % len(self._refs)])
        self.readings += 1

    def _read(self, ref: Any) -> None:
        """Commits a changed reading: one more run than before."""
        from django.utils import timezone

        from tests.scraping.builders import ball, chasing, payload_of, read

        self._runs[ref.match_id] += 1
        number, now = self._runs[ref.match_id], timezone.now()
        overs = f"{(number - 1) // 6 % 20}.{(number - 1) % 6 + 1}"
        state = chasing(number, overs=overs, title=f"Bench {ref.match_id}", venue="Wankhede Stadium, Mumbai")
        read(ref, payload_of(ref, state, at=now, events=[ball(number)]))


if __name__ == "__main__":
    main()
