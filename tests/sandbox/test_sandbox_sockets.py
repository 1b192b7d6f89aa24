"""UNIX sockets of the host in sandboxes: mounted, and behind loopback ports."""

import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import BACKEND, num_descriptors, python_output, wait_until

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import (
    Mount,
    SandboxSpec,
    default_interpreter,
    forwarding,
)
from coding_gym.sandbox.docker_backend import DockerBackend

pytestmark = pytest.mark.slow

_SPEC = SandboxSpec(python=default_interpreter())
_PORT = 8123
_GET = f"""
import socket
with socket.create_connection(("127.0.0.1", {_PORT}), 20) as end:
    end.sendall(b"/name\\n")
    answer = end.makefile().read()
    assert answer
    print(answer, end="")
"""
_CALL = """
import socket
def attempt(family, address):
    end = socket.socket(family)
    end.settimeout(5)
    try:
        end.connect(address)
    except OSError as error:
        return type(error).__name__
    return "reached"
"""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture
def serve() -> Iterator[Callable[[str], Path]]:
    """Starts servers that reply to a line with their name and the line; returns their sockets."""
    with ExitStack() as stack:

        def start(name: str) -> Path:
            class Handler(socketserver.StreamRequestHandler):
                def handle(self) -> None:
                    self.wfile.write(name.encode() + b" " + self.rfile.readline())

            path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "socket")
            server = stack.enter_context(_Server(str(path), Handler))
            path.chmod(0o666)
            threading.Thread(target=server.serve_forever).start()
            stack.callback(server.shutdown)
            return path

        yield start


def test_forwarded_port_reaches_a_server_of_the_host(serve: Callable[[str], Path]) -> None:
    forwards = {_PORT: serve("one"), _PORT + 1: serve("two")}
    with BACKEND.open(replace(_SPEC, forwards=forwards)) as sandbox:
        assert python_output(sandbox, _GET) == "one /name\n"
        large = _GET.replace('b"/name', 'b"x" * 900_000 + b"')
        assert python_output(sandbox, large) == "one " + "x" * 900_000 + "\n"
        other = _GET.replace(str(_PORT), str(_PORT + 1))
        assert python_output(sandbox, other) == "two /name\n"
        sandbox.restore(sandbox.snapshot())
        assert python_output(sandbox, _GET) == "one /name\n"


def test_mounted_socket_reaches_a_server_of_the_host(
    backend: DockerBackend, serve: Callable[[str], Path]
) -> None:
    script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/opt/model.sock')\n"
    script += "s.send(b'/name\\n'); print(s.makefile().read(), end='')"
    with backend.open(
        replace(_SPEC, mounts=(Mount(source=serve("one"), target="/opt/model.sock"),))
    ) as sandbox:
        assert python_output(sandbox, script) == "one /name\n"


def test_only_forwarded_and_mounted_sockets_are_reachable(serve: Callable[[str], Path]) -> None:
    path, other = serve("mine"), serve("other's")
    with ExitStack() as stack:
        neighbour = replace(
            _SPEC, forwards={_PORT + 1: other}, mounts=(Mount(source=other, target="/opt/other"),)
        )
        stack.enter_context(BACKEND.open(neighbour))
        spec = replace(
            _SPEC, forwards={_PORT: path}, mounts=(Mount(source=path, target="/opt/mine"),)
        )
        sandbox = stack.enter_context(BACKEND.open(spec))
        calls = [
            ("AF_INET", ("127.0.0.1", _PORT)),
            ("AF_UNIX", "/opt/mine"),
            ("AF_UNIX", "/opt/other"),
            ("AF_UNIX", str(other)),
            ("AF_INET", ("127.0.0.1", _PORT + 1)),
            ("AF_INET", ("192.0.2.1", 80)),
        ]
        tries = "\n".join(f"print(attempt(socket.{kind}, {place!r}))" for kind, place in calls)
        assert python_output(sandbox, _CALL + tries).split() == [
            *("reached", "reached"),
            *("FileNotFoundError", "FileNotFoundError", "ConnectionRefusedError", "OSError"),
        ]


@pytest.mark.parametrize("port", ["8765", 8765.0, 1023, 65536])
def test_a_forwarded_port_must_be_an_unprivileged_one(port: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from 1024 to 65535, got {port!r}"):
        BACKEND.open(replace(_SPEC, forwards={port: Path("/none")}))


def test_commands_cannot_take_or_end_a_forwarded_port(serve: Callable[[str], Path]) -> None:
    take = f"import socket; socket.create_server(('127.0.0.1', {_PORT}))"
    with BACKEND.open(replace(_SPEC, forwards={_PORT: serve("one")})) as sandbox:
        sandbox.write_file("take.py", take.encode())
        assert "Address already in use" in sandbox.run("python take.py").output
        sandbox.run("kill -9 -1")
        assert python_output(sandbox, _GET) == "one /name\n"


def test_many_connections_use_a_bounded_number_of_descriptors(serve: Callable[[str], Path]) -> None:
    script = f"""
import socket
ends = [socket.create_connection(("127.0.0.1", {_PORT}), 20) for _ in range(300)]
num_answered = 0
for end in ends:
    try:
        end.send(b"x\\n")
        num_answered += end.recv(1) == b"o"
    except ConnectionError:
        pass
print(num_answered)
"""
    with BACKEND.open(replace(_SPEC, forwards={_PORT: serve("one")})) as sandbox:
        before = num_descriptors()
        assert 0 < int(python_output(sandbox, script)) < 300
        assert num_descriptors() < before + 400
        wait_until(lambda: num_descriptors() <= before)  # its connections have ended
        assert python_output(sandbox, _GET) == "one /name\n"
    wait_until(lambda: num_descriptors() < before)


def test_closing_does_not_wait_for_the_next_retry(
    serve: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "_RETRY_S", 30.0)
    sandbox = BACKEND.open(replace(_SPEC, forwards={_PORT: serve("one")}))
    closing = threading.Thread(target=sandbox.close)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
