"""The embedded system: its processes, their start order, the messages on the terminal."""

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from django.core.management import call_command

from victoryline import demo
from victoryline.configuration import PROJECT_ROOT, Config
from victoryline.lib.processes import python
from victoryline.supervisor import CLOSING_SECONDS, Child, Supervisor

STADIUM_START_SECONDS = 20.0
DEMO_SEED = 7  # same seed, same matches
WEB_START_SECONDS = 60.0


def run(config: Config) -> None:
    """Starts all processes and supervises them until a signal comes."""
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(config.host, config.host)  # noqa: S104 - compared, not bound
    url = f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"
    keep_private(config.var_dir)
    with _only_one(config.var_dir, url) as last_run_was_killed:
        _check_port(config, wait_seconds=12.0 if last_run_was_killed else 0.0)
        say("preparing the database")
        call_command("migrate", verbosity=0, interactive=False)
        credentials = demo.prepare(url=url, var_dir=config.var_dir)
        grace = config.stop_seconds + CLOSING_SECONDS
        with Supervisor(var_dir=config.var_dir, cwd=PROJECT_ROOT, say=say, grace_seconds=grace) as supervisor:
            _start_children(supervisor, config)
            if not supervisor.stopping:
                _announce(supervisor, credentials, config)
                supervisor.watch()
        say("stopped")


def keep_private(var_dir: Path) -> None:
    """Makes database and logs readable by their owner only: new files by the umask, which the children inherit."""
    os.umask(0o077)
    for file in (*var_dir.glob("*.sqlite3*"), *(var_dir / "log").glob("*")):
        with suppress(FileNotFoundError):  # SQLite removes its journal when the last connection closes
            file.chmod(0o600)


def _check_port(config: Config, *, wait_seconds: float) -> None:
    """Waits for the port: processes of a killed supervisor need some seconds to end. Exits if it stays taken."""
    deadline = time.monotonic() + wait_seconds
    while not is_free(config.host, config.port):
        if time.monotonic() >= deadline:
            sys.exit(
                f"Port {config.port} on {config.host} is taken by another program.\n"
                f"Choose another one: PORT={config.port + 1} make run"
            )
        time.sleep(0.1)


def is_free(host: str, port: int) -> bool:
    """Returns True if this process could listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
            trial.listen(1)
        except OSError:
            return False
    return True


def say(message: str) -> None:
    """Prints a line for the operator; a closed terminal is ignored."""
    with suppress(OSError):
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {message}\n")
        sys.stdout.flush()


def _start_children(supervisor: Supervisor, config: Config) -> None:
    env = {"STADIUM_URL": config.stadium_url, **_metrics_port(config)}
    if config.demo and not config.stadium_url:
        say("starting the stadium")
        env["STADIUM_URL"] = _start_stadium(supervisor, config)
        # Breaks and the calm time after errors run at the pace of the stadium.
        env["BREAK_INTERVAL_SECONDS"] = f"{max(2.5, config.break_interval_seconds / config.stadium_pace):g}"
        env["ERROR_CALM_SECONDS"] = f"{max(10, config.error_calm_seconds / config.stadium_pace):.0f}"
    if not supervisor.stopping:
        done = subprocess.run(
            python("manage.py", "sync_sources"),
            cwd=PROJECT_ROOT,
            env={**os.environ, **env},
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"The sources could not be written to the database:\n{done.stdout}{done.stderr}")
    if not supervisor.stopping:
        say("starting web and engine")
        supervisor.start(Child("web", web_command(config), env))
        engine = python("manage.py", "run_worker", "--with-scheduler")
        supervisor.start(Child("engine", engine, env, stops_first=True))


def web_command(config: Config) -> list[str]:
    return python(
        *("-m", "granian", "--interface", "wsgi", "victoryline.wsgi:application"),
        *("--host", config.host, "--port", str(config.port)),
        *("--workers", "1", "--blocking-threads", "8", "--workers-kill-timeout", "5"),
    )


def _start_stadium(supervisor: Supervisor, config: Config) -> str:
    """Returns the stadium's address. It keeps its port over restarts."""
    file = config.var_dir / "stadium.port"
    file.unlink(missing_ok=True)
    options = {
        "port": "0",
        "programme": config.stadium_programme,
        "pace": f"{config.stadium_pace:g}",
        "seed": str(DEMO_SEED),
        "state-file": str(config.var_dir / "stadium.json"),
        "port-file": str(file),
    }
    command = python("-m", "stadium", *(f"--{name}={value}" for name, value in options.items()))
    supervisor.start(Child("stadium", command))
    deadline = time.monotonic() + STADIUM_START_SECONDS

    def has_port() -> bool:
        return file.exists() and file.read_text(encoding="utf-8").strip().isdigit()

    supervisor.watch(until=lambda: has_port() or time.monotonic() > deadline, every_seconds=0.05)
    if supervisor.stopping:
        return ""
    if not has_port():
        sys.exit(f"The stadium did not start; its log is {config.var_dir / 'log' / 'stadium.log'}")
    port = int(file.read_text(encoding="utf-8"))
    command[command.index("--port=0")] = f"--port={port}"
    return f"http://127.0.0.1:{port}"


def _announce(supervisor: Supervisor, credentials: demo.Demo, config: Config) -> None:
    deadline = time.monotonic() + WEB_START_SECONDS
    supervisor.watch(until=lambda: _answers(credentials.url) or time.monotonic() > deadline, every_seconds=0.2)
    if supervisor.stopping:
        return
    if not _answers(credentials.url):
        say(f"the web server does not answer yet; its log is {config.var_dir / 'log' / 'web.log'}")
    with suppress(OSError):  # the terminal may be closed
        sys.stdout.write(demo.banner(credentials, log_dir=config.var_dir / "log"))
        sys.stdout.flush()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/live", timeout=2) as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200)
    except OSError:  # URLError is one
        return False


def _metrics_port(config: Config) -> dict[str, str]:
    """Chooses another port for the engine's metrics if theirs is taken, by a local Prometheus for example."""
    if not config.enable_prometheus_metrics or is_free(config.metrics_bind, config.prometheus_port):
        return {}
    with closing(socket.socket()) as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    say(f"port {config.prometheus_port} is taken; the engine's metrics are on {config.metrics_bind}:{port}")
    return {"PROMETHEUS_PORT": str(port)}


@contextmanager
def _only_one(var_dir: Path, url: str) -> Iterator[bool]:
    """Holds VAR_DIR/run.lock, which the kernel frees at any exit. Yields True if the last holder was killed."""
    var_dir.mkdir(parents=True, exist_ok=True)
    with (var_dir / "run.lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            other = json.loads(lock.read() or "{}")
            sys.exit(f"VictoryLine runs already: process {other.get('pid', '?')}, {other.get('url', '')}")
        lock.seek(0)
        was_killed = bool(lock.read())
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "url": url}))
        lock.flush()
        yield was_killed
        lock.truncate(0)
