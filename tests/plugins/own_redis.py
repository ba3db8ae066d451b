"""Tests that run side by side share a Redis server, but no keys: each of pytest's processes has a database of its own.

Loaded before Django's settings read the environment. (PostgreSQL databases are told apart by pytest-django.)
"""

import os

if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and (url := os.environ.get("REDIS_URL")):
    os.environ["REDIS_URL"] = f"{url.rpartition('/')[0]}/{int(worker.removeprefix('gw')) + 1}"
