"""A TCP proxy in front of PostgreSQL that cuts a connection after COMMIT was executed, before its reply arrives.


The client cannot find out whether its transaction was written. Runs in a thread with its own event loop.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Self

COMMIT = b"COMMIT\x00"
CHUNK = 65536


class ChaosProxy:
    """Forwards `port` to `target_port`. `cut_every(n)`: the reply to every n-th COMMIT is lost; 0: none is."""

    def __init__(self, target_port: int) -> None:
        self.target_port, self.port = target_port, 0
        self.commits = self.cuts = 0
        self._every = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def cut_every(self, number: int) -> None:
        self._every = number

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        server_writer: asyncio.StreamWriter | None = None
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
            await self._connect((reader, writer), (server_reader, server_writer))
        except (OSError, asyncio.CancelledError):
            pass  # one side has disconnected, or the test is over: the other side is closed below
        finally:
            for each in (writer, server_writer):
                if each is not None:
                    each.transport.abort()

    async def _connect(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Copies bytes in both directions until one side closes, or until a reply must be lost."""
        back = asyncio.ensure_future(_copy(server[0], client[1]))
        try:
            while data := await client[0].read(CHUNK):
                is_lost = self._must_be_lost(data)
                if is_lost:
                    back.cancel()  # from here on nothing reaches the client
                    await asyncio.gather(back, return_exceptions=True)
                server[1].write(data)
                await server[1].drain()
                if is_lost:
                    await server[0].read(CHUNK)  # the server has committed and replied
                    self.cuts += 1
                    return
        finally:
            back.cancel()

    def _must_be_lost(self, data: bytes) -> bool:
        if COMMIT not in data:
            return False
        self.commits += 1
        return bool(self._every) and self.commits % self._every == 0


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.close()
