"""Forwards connections to loopback ports of one sandbox to UNIX sockets of the host.

The listening sockets belong to the sandbox's network namespace, and this process accepts their
connections: no process inside is involved, so commands cannot end the forwarding.
"""

import asyncio
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

# Per sandbox: connections take descriptors of this process.
_MAX_CONNECTIONS = 64
_CHUNK_BYTES = 1 << 16
_RETRY_S = 0.05


class Forwarder:
    """Accepts connections in a thread until it is closed.

    Args:
        routes: The UNIX socket of each listening socket; owned by the forwarder.
    """

    def __init__(self, routes: Mapping[socket.socket, Path]) -> None:
        self._routes = routes
        # Strong references: asyncio drops its own after a lost connection.
        self._relays: set[asyncio.Task[None] | None] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox-forwarder", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends all connections and stops; to be called once."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        servers = [
            await asyncio.start_server(partial(self._relay, path), sock=listener)
            for listener, path in self._routes.items()
        ]
        await self._stop.wait()
        for server in servers:
            server.close()

    async def _relay(
        self, path: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Copies bytes in both directions until both have ended, or the forwarder stops."""
        task = asyncio.current_task()
        self._relays.add(task)
        try:
            with suppress(asyncio.CancelledError):  # asyncio of Python 3.11 logs it as an error
                await self._copied(path, reader, writer)
        finally:
            self._relays.discard(task)

    async def _copied(
        self, path: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(self._relays) > _MAX_CONNECTIONS:
            writer.close()
            return
        writers = [writer]
        try:
            answers, requests = await _connected(path)
            writers.append(requests)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_copy(reader, requests))
                tasks.create_task(_copy(answers, writer))
        except* OSError:
            pass  # one side ended the connection, or nothing listens; the other side is closed
        finally:
            for one in writers:
                one.close()


async def _connected(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Returns a connection; retries while the server's queue is full.

    asyncio reports success there without a connection.
    """
    end = socket.socket(socket.AF_UNIX)
    try:
        end.setblocking(False)
        while True:
            try:
                end.connect(str(path))
                break
            except BlockingIOError:
                await asyncio.sleep(_RETRY_S)
        return await asyncio.open_unix_connection(sock=end)
    except BaseException:  # cancelled, too
        end.close()
        raise


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
