"""The checks of `manage.py doctor`. A check that raises is reported as a finding, so that the others still run."""

import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from scraping.browser.launcher import has_sandbox
from scraping.browser.processes import free_memory_bytes
from victoryline.configuration import Config
from victoryline.embedded import is_free
from victoryline.lib import chromium
from victoryline.lib.files import MIN_FREE_DISK_MB
from victoryline.lib.redaction import clean

Status = Literal["ok", "warn", "FAIL"]
MEMORY_NEEDED_MB, DISK_COMFORTABLE_MB = 500, 2000
BROWSER_SECONDS = 30.0
BROWSER_FIX = (
    "Does `chromium --version` work? A refused sandbox wants user namespaces (kernel.unprivileged_userns_clone=1)."
)


@dataclass(frozen=True)
class Finding:
    name: str
    status: Status
    detail: str
    fix: str = ""


def examine(config: Config) -> Iterator[Finding]:
    """Yields all findings, as they come."""
    for check in CHECKS:
        try:
            yield from check(config)
        except Exception as error:  # noqa: BLE001 - the operator should see the other findings as well
            detail = clean(f"{type(error).__name__}: {error}")
            yield Finding(check.__name__.removeprefix("_"), "FAIL", detail, "This is unexpected; please report it.")


def _python(_: Config) -> Iterator[Finding]:
    yield Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))  # an older one could not load this module


def _config(config: Config) -> Iterator[Finding]:
    yield Finding("config", "ok", f"valid (environment and {config.config_file or 'defaults'})")


def _chromium(config: Config) -> Iterator[Finding]:
    program = chromium.find(chosen=config.chromium_path, var_dir=config.var_dir)
    if program is None:
        wanted = f"CHROMIUM_PATH {config.chromium_path} is not a program" if config.chromium_path else "none found"
        yield Finding("chromium", "FAIL", wanted, "Install one (apt-get install chromium) or set CHROMIUM_PATH.")
        return
    began = time.monotonic()
    try:
        version = _start_browser(program)
    except Exception as error:  # noqa: BLE001 - Playwright raises many kinds; each means the browser did not start
        reason = clean(str(error).strip().splitlines()[0])
        yield Finding("chromium", "FAIL", f"{program} does not start: {reason}", BROWSER_FIX)
        return
    yield Finding("chromium", "ok", f"{version} started in {time.monotonic() - began:.1f} s ({program})")


def _sandbox(config: Config) -> Iterator[Finding]:
    if config.scraper_use_cdp and config.scraper_cdp_endpoint:
        detail = "unknown: the browser at SCRAPER_CDP_ENDPOINT is not started by VictoryLine"
        yield Finding("sandbox", "warn", detail, "Start that browser without --no-sandbox, as a user other than root.")
    elif has_sandbox():
        yield Finding("sandbox", "ok", "Chromium runs in its sandbox")
    else:
        detail = "Chromium runs without its sandbox, because root starts it: a hostile page that breaks out is root too"
        yield Finding("sandbox", "warn", detail, "Start VictoryLine as another user, as the container image does.")


def _start_browser(program: Path) -> str:
    """Starts the browser and opens a page: an installed one may still lack libraries, memory or a sandbox."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(program), chromium_sandbox=has_sandbox(), timeout=BROWSER_SECONDS * 1000
        )
        try:
            browser.new_page().goto("about:blank", timeout=BROWSER_SECONDS * 1000)
            return f"Chromium {browser.version}"
        finally:
            browser.close()


def _database(config: Config) -> Iterator[Finding]:
    from django.db import DatabaseError, connection, transaction
    from django.db.migrations.executor import MigrationExecutor

    kind = "PostgreSQL" if config.database_url else "SQLite"
    try:
        began = time.monotonic()
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("CREATE TABLE doctor_check (number INTEGER)")
                cursor.execute("INSERT INTO doctor_check VALUES (1)")
            transaction.set_rollback(True)
        yield Finding("database", "ok", f"{kind} reads and writes, {(time.monotonic() - began) * 1000:.0f} ms")
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except (DatabaseError, OSError) as error:
        server = "Is the server up, and DATABASE_URL right?"
        fix = server if config.database_url else f"May we write in {config.var_dir}?"
        yield Finding("database", "FAIL", clean(f"{kind}: {str(error).strip()}"), fix)
        return
    if missing:
        yield Finding("migrations", "FAIL", f"{missing} not applied", "Run: python manage.py migrate")
    else:
        yield Finding("migrations", "ok", "all applied")


def _broker(config: Config) -> Iterator[Finding]:
    if not config.redis_url:
        yield Finding("broker", "ok", "in the engine's own process")
        return
    import redis

    try:
        with redis.Redis.from_url(config.redis_url, socket_connect_timeout=3, socket_timeout=3) as client:
            began = time.monotonic()
            client.ping()
        yield Finding("broker", "ok", f"Redis answers in {(time.monotonic() - began) * 1000:.0f} ms")
    except (redis.RedisError, ValueError) as error:
        yield Finding("broker", "FAIL", clean(f"Redis: {error}"), "Is the server up, and REDIS_URL right?")


def _memory(_: Config) -> Iterator[Finding]:
    left = free_memory_bytes() // 2**20
    if left >= MEMORY_NEEDED_MB:
        yield Finding("memory", "ok", f"{left} MB available")
    else:
        fix = f"A browser needs {MEMORY_NEEDED_MB} MB: end other programs or raise the container's limit."
        yield Finding("memory", "FAIL", f"{left} MB available", fix)


def _ports(config: Config) -> Iterator[Finding]:
    for name, host, port in (
        ("PORT", config.host, config.port),
        ("PROMETHEUS_PORT", config.metrics_bind, config.prometheus_port),
    ):
        if is_free(host, port):
            yield Finding("port", "ok", f"{port} ({name}) is free")
        elif _is_ours(port):
            yield Finding("port", "ok", f"{port} ({name}) is held by VictoryLine itself")
        else:
            fix = f"Choose another: {name}={port + 1}"
            yield Finding("port", "warn", f"{port} ({name}) is taken by another program", fix)


def _is_ours(port: int) -> bool:
    try:
        listeners = [each for each in psutil.net_connections("tcp") if each.laddr and each.laddr.port == port]
        commands = [" ".join(psutil.Process(each.pid).cmdline()) for each in listeners if each.pid]
    except (psutil.Error, OSError):
        return False
    return any("victoryline.wsgi" in command or "manage.py" in command for command in commands)


def _disk(config: Config) -> Iterator[Finding]:
    config.var_dir.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(config.var_dir).free // 2**20
    fix = f"Make room, or set VAR_DIR elsewhere; {DISK_COMFORTABLE_MB} MB are comfortable."
    status: Status = "FAIL" if free < MIN_FREE_DISK_MB else "warn" if free < DISK_COMFORTABLE_MB else "ok"
    yield Finding("disk", status, f"{free} MB free in {config.var_dir}", "" if status == "ok" else fix)


def _alerts(config: Config) -> Iterator[Finding]:
    """Checks the alert channels without sending; `alerts --test` sends."""
    from monitoring.alerts.channels import configured
    from monitoring.checks import alert_setting_warnings

    for doubt in alert_setting_warnings(config):
        yield Finding("alerts", "warn", doubt.msg, doubt.hint or "")
    ways = ", ".join(channel.value for channel in configured(config))
    yield Finding("alerts", "ok", f"sent by {ways} (try: alerts --test)" if ways else "only shown in the admin")


CHECKS = (_python, _config, _chromium, _sandbox, _database, _broker, _memory, _ports, _disk, _alerts)
