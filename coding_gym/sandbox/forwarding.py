"""Relays connections from a loopback port of a sandbox to a UNIX socket of the host.

The listening socket belongs to the sandbox's network namespace, and this process accepts its
connections: no process inside is involved, so commands cannot end the forwarding.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Per port: connections take descriptors and threads of this process.
_MAX_CONNECTIONS = 64
_CHUNK_BYTES = 1 << 16
_RETRY_S = 0.05


class Forwarder:
    """Accepts connections, in a thread, until it is closed.

    Args:
        listener: Accepts the connections; `close` closes it.
        path: The UNIX socket.
    """

    def __init__(self, listener: socket.socket, path: Path) -> None:
        self._lock = threading.Lock()
        self._sockets = {listener}
        self._is_closed = False
        self._free = threading.Semaphore(_MAX_CONNECTIONS)
        self._acceptor = _started(self._accept, listener, path)

    def close(self) -> None:
        """Ends all connections and stops; to be called once."""
        with self._lock:
            self._is_closed = True
            for end in self._sockets:
                _shut(end)
        self._acceptor.join()

    def _accept(self, listener: socket.socket, path: Path) -> None:
        with listener:
            while not self._is_closed:
                try:
                    client, _ = listener.accept()
                except OSError:  # closed, or no descriptor is free
                    time.sleep(_RETRY_S)
                    continue
                if not self._free.acquire(blocking=False):
                    client.close()
                    continue
                try:
                    _started(self._relay, client, path)
                except RuntimeError:  # no thread is free
                    client.close()
                    self._free.release()

    def _relay(self, client: socket.socket, path: Path) -> None:
        """Copies bytes in both directions until both have ended, or the forwarder stops."""
        ends = {client}
        with client, suppress(OSError, RuntimeError), socket.socket(socket.AF_UNIX) as server:
            ends.add(server)
            with self._lock:
                if self._is_closed:
                    return
                self._sockets |= ends
            with short_path(path) as name:
                server.connect(name)  # without `settimeout`, by which a full queue is an error
            answers = _started(_copy, server, client)  # RuntimeError: no thread is free
            _copy(client, server)
            answers.join()
        with self._lock:
            self._sockets -= ends
        self._free.release()


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yields another path of a UNIX socket: the system accepts at most 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _started(function: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(
        target=function, args=arguments, name="sandbox-forwarder", daemon=True
    )
    thread.start()
    return thread


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one side ended the connection
        _shut(source)
        _shut(target)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
