"""What was answered last at each address, with its ETag: bounded, shared by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from victoryline_client.answers import Document


@dataclass(frozen=True)
class Remembered:
    etag: str
    data: Document


class Memory:
    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, address: str) -> Remembered | None:
        with self._lock:
            held = self._held.get(address)
            if held is not None:
                self._held.move_to_end(address)
            return held

    def put(self, address: str, etag: str, data: Document) -> None:
        with self._lock:
            self._held[address] = Remembered(etag, data)
            self._held.move_to_end(address)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def forget(self, address: str) -> None:
        with self._lock:
            self._held.pop(address, None)
