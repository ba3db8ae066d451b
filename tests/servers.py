"""Private PostgreSQL and Redis servers: own folder, own port, ended with the process that started them. Both can be
stopped, restarted on the same port, killed and frozen (SIGSTOP) by the fault tests.
"""

import os
import pwd
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import psutil
import psycopg2
import redis

from scripts.system_packages import find_program
from tests.patience import stretched
from victoryline.lib.processes import die_with_parent, remove_tree, signal_group

START_SECONDS = 15.0
UNPRIVILEGED_USERS = ("postgres", "nobody")


class ServerFailedError(Exception):
    """A test server could not be started; the message ends with its log."""


class Server:
    """Base of both servers. `url` stays the same over stop and start."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vl-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def answers(self) -> bool:
        raise NotImplementedError

    def before_exec(self) -> None:
        """Runs in the new process, before the server's program."""

    def start(self) -> Self:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(self._prepare, os.getpid()),  # noqa: PLW1509 - system calls only
            )
        self._wait(self.answers, START_SECONDS)
        return self

    def _prepare(self, parent: int) -> None:
        self.before_exec()
        die_with_parent(parent)  # after a change of user, which clears the request

    def stop(self) -> None:
        """Stops it regularly; data stays."""
        self._end(self.stop_signal)

    stop_signal: int = signal.SIGTERM

    def kill(self) -> None:
        """Kills it, as a power failure would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freezes it: connections stay open without an answer."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def close(self) -> None:
        """Stops it and removes everything; regularly first, because a killed PostgreSQL leaves shared memory behind."""
        self.stop()
        remove_tree(self.folder)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        self.resume()
        children: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):  # it has ended by itself
            children = self._tree()[1:]
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        try:
            self.process.wait(timeout=stretched(20))
        finally:
            signal_group(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
            # The backends of a killed PostgreSQL end a moment later; until then no other server may use its data.
            psutil.wait_procs(children, timeout=stretched(20))

    def _signal_all(self, number: int) -> None:
        """PostgreSQL's backends lead groups of their own, so the whole tree is walked."""
        with suppress(psutil.NoSuchProcess):
            for process in self._tree():
                process.send_signal(number)

    def _tree(self) -> list[psutil.Process]:
        """Returns the server's process and its descendants."""
        assert self.process is not None
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        began = time.monotonic()
        while not condition():
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() - began > stretched(seconds):
                raise ServerFailedError(
                    f"{type(self).__name__} did not start:\n{(self.folder / 'log').read_text()[-2000:]}"
                )
            time.sleep(0.02)


class PostgresServer(Server):
    """PostgreSQL refuses to run as root, so root becomes another user first."""

    stop_signal = signal.SIGINT  # "fast": it does not wait for clients to leave

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__()
        self.durable = durable
        self.account = _unprivileged()
        if self.account:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        self.url = f"postgres://victoryline:test@127.0.0.1:{self.port}/postgres"

    def start(self) -> Self:
        if not (self.folder / "data").exists():
            self._initdb()
        return super().start()

    def command(self) -> list[str]:
        speed = (
            [] if self.durable else ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
        )
        return [
            str(_required("postgres")),
            *("-D", "data", "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder)),
            *("-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "logging_collector=off"),
            *speed,
        ]

    def answers(self) -> bool:
        try:
            psycopg2.connect(self.url, connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True

    def before_exec(self) -> None:
        if self.account:
            os.setgroups([])
            os.setgid(self.account.pw_gid)
            os.setuid(self.account.pw_uid)

    def _initdb(self) -> None:
        password = self.folder / "password"
        password.write_text("test")
        password.chmod(0o644)
        done = subprocess.run(
            [
                *(str(_required("initdb")), "-D", "data", "-U", "victoryline", "--auth=scram-sha-256"),
                *(f"--pwfile={password}", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"),
            ],
            cwd=self.folder,
            preexec_fn=self.before_exec,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServerFailedError(f"initdb failed:\n{done.stdout}{done.stderr}")


class RedisServer(Server):
    def __init__(self) -> None:
        super().__init__()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        return [
            str(_required("redis-server")),
            *(
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--dir",
                str(self.folder),
                "--save",
                "",
                "--appendonly",
                "no",
            ),
        ]

    def answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_connect_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def flushall(self) -> None:
        """Deletes all keys, as in an empty replacement."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()


def free_port() -> int:
    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port: int = finder.getsockname()[1]
        return port


def are_installed() -> bool:
    return all(find_program(name) for name in ("initdb", "postgres", "redis-server"))


def _required(name: str) -> Path:
    if found := find_program(name):
        return found
    raise ServerFailedError(
        f"{name} is not installed; make test installs it, or: apt-get install postgresql redis-server"
    )


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServerFailedError(f"PostgreSQL can't run as root, and there is no user {' or '.join(UNPRIVILEGED_USERS)}")
