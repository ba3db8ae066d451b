"""Live matches that go on: makes them, then commits so many readings a second, each from the claim to the commit.

Through the journal and ingest, as a worker does, which also puts them into the shared cache; only nobody reads a page.
Says which matches there are, then answers every line on stdin with how many readings it has committed so far.
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
    play = Play(options.matches)
    print(json.dumps({"ids": play.ids}), flush=True)
    ending = threading.Event()
    thread = threading.Thread(target=go_on, args=(play, options.rate, ending), daemon=True)
    thread.start()
    for _ in sys.stdin:
        print(json.dumps({"readings": play.readings, "is_alive": thread.is_alive()}), flush=True)
    ending.set()
    thread.join(timeout=10)
    publisher.stop()


def go_on(play: Play, rate: float, ending: threading.Event) -> None:
    began = time.monotonic()
    while not ending.wait(max(0.0, began + play.readings / rate - time.monotonic())):
        play.read_next()


class Play:
    def __init__(self, number: int) -> None:
        from django.utils import timezone

        from tests.factories import make_ref, make_source, make_unread_match

        now, source = timezone.now(), make_source("crex")
        matches = [make_unread_match(now=now, title=f"Bench {place}") for place in range(number)]
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
        """A reading that brings news: one more run than before."""
        from django.utils import timezone

        from tests.scraping.builders import ball, chasing, payload_of, read

        self._runs[ref.match_id] += 1
        number, now = self._runs[ref.match_id], timezone.now()
        overs = f"{(number - 1) // 6 % 20}.{(number - 1) % 6 + 1}"
        state = chasing(number, overs=overs, title=f"Bench {ref.match_id}", venue="Wankhede Stadium, Mumbai")
        read(ref, payload_of(ref, state, at=now, events=[ball(number)]))


if __name__ == "__main__":
    main()
