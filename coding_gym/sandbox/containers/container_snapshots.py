"""What the commands of a container have changed, taken out of it and put into another.

Commands can write to the workspace, their home, /tmp and /dev/shm. A file of the first two was
changed if the kernel's own date on it (``ctime``) is later than the container's start: no command
can set that. In the others everything is new. Sockets are left out, and files that their owner may
not read.
"""

import json
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from coding_gym.errors import SandboxError, last_line
from coding_gym.sandbox.spec import HOME, WORKDIR

_NO_TOOLS = 3
_LIST = f"""LC_ALL=C; cd / || exit
{{ type -P find xargs && tar --version; }} >/dev/null || exit {_NO_TOOLS}
find .{WORKDIR} .{HOME} -xdev -printf '%y %n %C@ %p\\0'
find ./tmp ./dev/shm -xdev -mindepth 1 -printf '%y %n %C@ %p\\0'
"""
_TAKE = (
    "cd / && tar -c --format=posix --null --no-recursion --ignore-failed-read -T - -f - 2>/dev/null"
)
_REMOVE = "cd / && xargs -0 rm -rf --"
_PUT = "cd / && tar -x -p -f -"
_SOCKET, _FOLDER = "s", "d"

Script = Callable[[bytes, bytes], tuple[int, bytes]]


class _Entry(NamedTuple):
    kind: str
    num_links: int
    changed_at: float
    path: str


def take(run: Script, base: frozenset[str], started_at: float) -> bytes:
    """Returns what has changed.

    Args:
        run: Runs a script with some standard input and returns its exit code and output.
        base: What the workspace held at the start, relative to it.
        started_at: When the container started, in seconds since 1970.

    Raises:
        SandboxError: It cannot be taken.
    """
    code, output = run(_LIST.encode(), b"")
    if code:
        reason = (
            "the image needs GNU find, tar and xargs"
            if code == _NO_TOOLS
            else last_line(output.decode("utf-8", "replace"))
        )
        raise SandboxError(f"cannot take a snapshot: {reason}")
    entries = [_entry(line) for line in output.split(b"\0") if line]
    changed = {
        one.path for one in entries if one.changed_at > started_at or not _is_layered(one.path)
    }
    changed -= {one.path for one in entries if one.kind == _SOCKET}
    code, archive = run(_TAKE.encode(), b"".join(os.fsencode(path) + b"\0" for path in changed))
    if code > 1:  # 1 is for files that could not be read
        raise SandboxError(f"cannot take a snapshot: tar ended with {code}")
    base = frozenset(f".{WORKDIR}/{name}" for name in base)
    gone = _topmost(
        base.difference(one.path for one in entries) | _replaced(entries, changed, base)
    )
    # Escapes what is not Unicode.
    head = json.dumps(gone).encode("ascii")
    return len(head).to_bytes(8, "big") + head + archive


def put(run: Script, data: bytes) -> None:
    """Puts what had changed into a container in which nothing has.

    Raises:
        SandboxError: It cannot be put there.
    """
    size = int.from_bytes(data[:8], "big")
    gone, archive = json.loads(data[8 : 8 + size]), data[8 + size :]
    steps = [(_PUT, archive)]
    if gone:
        steps.insert(0, (_REMOVE, b"".join(os.fsencode(path) + b"\0" for path in gone)))
    for script, stdin in steps:
        code, output = run(script.encode(), stdin)
        if code:
            raise SandboxError(
                f"cannot restore a snapshot: {last_line(output.decode('utf-8', 'replace'))}"
            )


def _entry(line: bytes) -> _Entry:
    kind, num_links, changed_at, path = os.fsdecode(line).split(" ", 3)
    return _Entry(kind, int(num_links), float(changed_at), path)


def _is_layered(path: str) -> bool:
    return path.startswith((f".{WORKDIR}", f".{HOME}"))


def _replaced(entries: Iterable[_Entry], changed: set[str], base: frozenset[str]) -> frozenset[str]:
    """Returns the folders of the base that were removed and made again.

    They are not merged with those of the layers, which an overlay shows as more than one link, and
    nothing in them is old.
    """
    kept = {one.path for one in entries if one.path not in changed}
    old = {parent for path in kept for parent in _parents(path)}
    return frozenset(
        one.path
        for one in entries
        if one.kind == _FOLDER and one.num_links > 1 and one.path in base & changed - old
    )


def _parents(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _topmost(paths: frozenset[str]) -> list[str]:
    """Returns those that are not below another one."""
    return sorted(path for path in paths if paths.isdisjoint(_parents(path)))
