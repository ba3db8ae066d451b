"""Requests an address at an interval, each time over a new connection, like health checks of balancers.

Runs as its own process, so that other work of the bench does not delay it. Prints one JSON object at the end.
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
TIMESTAMP = re.compile(rb'"timestamp":"([^"]+)"')
STATUS = re.compile(rb'"(?:status|grade)":"([^"]+)"')


class HealthProbe:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "127.0.0.1", parts.port, parts.path
        self.milliseconds: list[float] = []
        self.ages: list[float] = []
        self.codes: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    def send(self) -> None:
        began = time.perf_counter()
        try:
            code, body = self._response()
        except OSError as error:
            self.codes[type(error).__name__] += 1
            return
        self.milliseconds.append((time.perf_counter() - began) * 1000)
        self.codes[str(code)] += 1
        if (status := STATUS.search(body)) is not None:
            self.statuses[status[1].decode()] += 1
        if (timestamp := TIMESTAMP.search(body)) is not None:
            self.ages.append((datetime.now(UTC) - datetime.fromisoformat(timestamp[1].decode())).total_seconds())

    def _response(self) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", self._path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--every", type=float, required=True, help="seconds between two requests")
    parser.add_argument("--times", type=int, required=True)
    options = parser.parse_args()
    probe, began = HealthProbe(options.url), time.monotonic()
    for number in range(options.times):
        time.sleep(max(0.0, began + number * options.every - time.monotonic()))
        probe.send()
    result = {"milliseconds": probe.milliseconds, "ages": probe.ages, "codes": probe.codes, "statuses": probe.statuses}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
