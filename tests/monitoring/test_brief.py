from __future__ import annotations

import threading
import time

from monitoring.brief import Brief


def test_builds_once_for_many_who_ask_at_the_same_time() -> None:
    built: list[int] = []

    def build() -> int:
        built.append(1)
        time.sleep(0.05)
        return len(built)

    brief = Brief(build, seconds=60)
    threads = [threading.Thread(target=brief.get) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]


def test_builds_again_when_it_is_old() -> None:
    values = iter((1, 2))
    brief = Brief(lambda: next(values), seconds=0)
    assert (brief.get(), brief.get()) == (1, 2)


def test_lets_nobody_wait_while_a_recent_value_is_there() -> None:
    may_finish, is_building = threading.Event(), threading.Event()
    values = iter(("old", "new"))

    def build() -> str:
        value = next(values)
        if value == "new":
            is_building.set()
            may_finish.wait(10)
        return value

    brief = Brief(build, seconds=0, at_most_seconds=60)
    assert brief.get() == "old"
    builder = threading.Thread(target=brief.get)
    builder.start()
    is_building.wait(10)
    assert brief.get() == "old"
    may_finish.set()
    builder.join()
