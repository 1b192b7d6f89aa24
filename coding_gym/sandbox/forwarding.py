"""Relays connections from a loopback port of a sandbox to a UNIX socket of the host.

The listening socket belongs to the sandbox's network namespace, and this process accepts its
connections: no process inside is involved, so commands cannot end the forwarding.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Per port, because each connection takes descriptors and threads of this process.
_MAX_CONNECTIONS = 64
_CHUNK_BYTES = 1 << 16
_RETRY_S = 0.05


class Forwarder:
    """Accepts connections in a thread and relays them, until `close` is called.

    Args:
        listener: The listening socket; `close` closes it.
        path: The UNIX socket to which connections are relayed.
    """

    def __init__(self, listener: socket.socket, path: Path) -> None:
        self._lock = threading.Lock()
        self._sockets = {listener}
        self._closed = threading.Event()
        self._free_slots = threading.Semaphore(_MAX_CONNECTIONS)
        self._acceptor = _start_thread(self._accept, listener, path)

    def close(self) -> None:
        """Ends all connections and the thread; idempotent."""
        with self._lock:
            self._closed.set()
            for endpoint in self._sockets:
                _shut_down(endpoint)
        self._acceptor.join()

    def _accept(self, listener: socket.socket, path: Path) -> None:
        with listener:
            while not self._closed.is_set():
                try:
                    client, _ = listener.accept()
                except OSError:  # closed, or no descriptor is free
                    self._closed.wait(_RETRY_S)
                    continue
                if not self._free_slots.acquire(blocking=False):
                    client.close()
                    continue
                try:
                    _start_thread(self._relay, client, path)
                except RuntimeError:  # no thread is free
                    client.close()
                    self._free_slots.release()

    def _relay(self, client: socket.socket, path: Path) -> None:
        """Copies bytes in both directions until both have ended, or the forwarder stops."""
        endpoints = {client}
        with client, suppress(OSError, RuntimeError), socket.socket(socket.AF_UNIX) as server:
            endpoints.add(server)
            with self._lock:
                if self._closed.is_set():
                    return
                self._sockets |= endpoints
            with short_path(path) as name:
                server.connect(name)  # with a timeout, a full queue of the server would be an error
            replies = _start_thread(_copy, server, client)  # RuntimeError: no thread is free
            _copy(client, server)
            replies.join()
        with self._lock:
            self._sockets -= endpoints
        self._free_slots.release()


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yields a short path of a UNIX socket, because the system accepts at most 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _start_thread(function: Callable[..., None], *arguments: object) -> threading.Thread:
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
        _shut_down(source)
        _shut_down(target)


def _shut_down(endpoint: socket.socket) -> None:
    with suppress(OSError):
        endpoint.shutdown(socket.SHUT_RDWR)
