"""The first process inside: gives up its rights, then serves its owner, one request at a time."""

import contextlib
import gc
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

from coding_gym.sandbox.zygote import chunks, files, scratch, wire
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.landlock import commands, descendants, rights, sealing
from coding_gym.sandbox.zygote.packing import pack
from coding_gym.sandbox.zygote.replies import Reply, failed
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.unpacking import unpack

_MAX_BODY_BYTES = (64 << 20) + (1 << 20)
_DONE = wire.header_text({})
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Init counts and ends processes; commands, one domain further in, do not see them.
_INIT_ALONE = [("read", "/proc")]


def main(channel: socket.socket, orders: dict[str, Any]) -> None:
    """Confines this process, says that it is ready, serves until the owner closes the channel."""
    try:
        shells = _confine(orders)
        channel.sendall(wire.pack({}))
        _serve(channel, orders, shells)
    except SetupError as error:
        channel.sendall(wire.pack(error.to_json()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        _end(is_scoped=commands.is_scoped(orders["abi"]))
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into the guardian's code in this process
        channel.sendall(wire.pack(SetupError("serve the sandbox", 0, repr(error)).to_json()))
    finally:
        os._exit(1)


def _end(*, is_scoped: bool) -> None:
    """Ends everything, and then this process."""
    descendants.end(is_scoped=is_scoped)
    os._exit(1)


def _confine(orders: dict[str, Any]) -> commands.Shells:
    """Enters the confinement; returns what starts commands, a domain further in."""
    version, network = orders["abi"], orders["network"]
    grants = [(kind, path) for kind, path in orders["grants"]]
    with step("prepare the Landlock rules"):
        inner = rights.make_ruleset(version, grants, network=network)
        outer = rights.make_ruleset(version, grants + _INIT_ALONE, network=network)
    with step("adopt what commands leave behind"):
        sc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    sealing.become(orders["uid"], orders["gid"])
    with step("end with the guardian"):
        sc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    sealing.restrain(orders["limits"])
    with step("enforce the Landlock rules"):
        rights.enforce(outer)
        os.close(outer)
    sealing.filter_calls(version, network=network)
    gc.freeze()
    is_scoped = commands.is_scoped(version)
    # The guardian's end, or somebody's wish: nothing is to be left running then either.
    signal.signal(signal.SIGTERM, lambda *_: _end(is_scoped=is_scoped))
    return commands.Shells(
        ruleset=inner,
        roots=[path for kind, path in grants if kind == "write"],
        env=orders["env"],
        limits=orders["limits"],
        is_scoped=is_scoped,
    )


def _serve(channel: socket.socket, orders: dict[str, Any], shells: commands.Shells) -> None:
    folders = orders["writable"]
    while True:
        request, body = wire.receive(channel, max_body_bytes=_MAX_BODY_BYTES)
        match request["op"]:
            case "run":
                header, answer = shells.run(request, body, channel)
            case "snapshot":
                _send_files(folders, channel)
                continue
            case "restore":
                descendants.end(is_scoped=shells.is_scoped)
                channel.sendall(wire.pack({}))
                header, answer = wire.header_text(_take_files(folders, channel)), b""
            case _:
                header, answer = _answer(request, body, orders["workdir"])
        channel.sendall(wire.pack_text(header, answer))


def _answer(request: dict[str, Any], body: bytes, workdir: str) -> Reply:
    try:
        os.chdir(workdir)
        if request["op"] == "read":
            return _DONE, files.read(request["path"], request["max_bytes"])
        files.write(request["path"], body)
    except OSError as error:
        return failed(error), b""
    return _DONE, b""


def _send_files(folders: dict[str, str], channel: socket.socket) -> None:
    """Sends everything in some folders; no command runs meanwhile."""
    try:
        with _opened(folders) as descriptors:
            # As a tmpfs lists; other file systems have an order that no making of files decides.
            pack(descriptors, chunks.writer_to(channel), newest_first=True)
    except (BrokenPipeError, ConnectionResetError):
        raise  # the owner is gone
    except OSError as error:
        channel.sendall(wire.pack({"error": f"no snapshot: {error}"}))


def _take_files(folders: dict[str, str], channel: socket.socket) -> dict[str, Any]:
    """Replaces what is in some folders by what the owner sends."""
    os.chdir("/")
    try:
        for path in folders.values():
            scratch.remove(path)  # all but the folder itself, which lies outside
        with _opened(folders) as descriptors:
            unpack(chunks.reader_from(channel), descriptors)
    except (OSError, ValueError, KeyError, wire.ProtocolError) as error:
        return {"error": f"the snapshot could not be restored: {error}"}
    return {}


@contextlib.contextmanager
def _opened(folders: dict[str, str]) -> Iterator[dict[str, int]]:
    with contextlib.ExitStack() as stack:
        opened = {}
        for name, path in folders.items():
            opened[name] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, opened[name])
        yield opened
