"""Gives each process of pytest its own Redis database: parallel tests share a server, but no keys.

Loaded before Django's settings read the environment. (pytest-django does this for PostgreSQL.)
"""

import os

if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and (url := os.environ.get("REDIS_URL")):
    os.environ["REDIS_URL"] = f"{url.rpartition('/')[0]}/{int(worker.removeprefix('gw')) + 1}"
