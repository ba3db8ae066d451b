"""Asks an address again and again, each time over a fresh connection, as probes and balancers do.

A process of its own, so that the bench's other work does not delay its clock. Prints one JSON object at the end.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from argparse import ArgumentParser
from collections import Counter
from datetime import UTC, datetime
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 10.0
TIMESTAMP = re.compile(rb'"(?:timestamp|generated_at)":"([^"]+)"')
STATUS = re.compile(rb'"(?:status|grade)":"([^"]+)"')


class Prober:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "127.0.0.1", parts.port, parts.path
        self.milliseconds: list[float] = []
        self.ages: list[float] = []
        self.codes: Counter[str] = Counter()
        self.words: Counter[str] = Counter()

    def ask(self) -> None:
        began = time.perf_counter()
        try:
            code, body = self._answer()
        except OSError as error:
            self.codes[type(error).__name__] += 1
            return
        self.milliseconds.append((time.perf_counter() - began) * 1000)
        self.codes[str(code)] += 1
        if (word := STATUS.search(body)) is not None:
            self.words[word[1].decode()] += 1
        if (moment := TIMESTAMP.search(body)) is not None:
            self.ages.append((datetime.now(UTC) - datetime.fromisoformat(moment[1].decode())).total_seconds())

    def _answer(self) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", self._path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--every", type=float, required=True, help="seconds between two questions")
    parser.add_argument("--times", type=int, required=True)
    options = parser.parse_args()
    prober, began = Prober(options.url), time.monotonic()
    for number in range(options.times):
        time.sleep(max(0.0, began + number * options.every - time.monotonic()))
        prober.ask()
    found = {"milliseconds": prober.milliseconds, "ages": prober.ages, "codes": prober.codes, "words": prober.words}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
