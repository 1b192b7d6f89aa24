"""Reads, writes, saves and restores files of a container, by scripts for its bash.

A snapshot holds what commands have changed: a list of what they removed, and a tar. Commands can
write to the workspace, their home, /tmp and /dev/shm. A file of the first two was changed if the
kernel's own date on it (``ctime``) is later than the container's start: no command can set that. In
the others everything is new. Sockets are left out, and files that their owner may not read.
"""

import errno
import json
import os
import shlex
from collections.abc import Callable, Iterable
from typing import NamedTuple

from coding_gym.errors import SandboxError, last_line
from coding_gym.sandbox.spec import HOME, WORKDIR

# Bytes of messages that a script may print beside a file, such as errors.
MESSAGE_BYTES = 1 << 16
# bash reads and prints between NULs; programs are quicker, where the image has them.
_CHECKED_PATH = """LC_ALL=C; path={path}
refuse() {{ echo "refused: $1"; exit 1; }}
copy() {{
  local text
  while IFS= read -r -d '' text; do printf '%s\\0' "$text" || return; done
  printf %s "$text"
}}
[[ -d $path ]] && refuse EISDIR
[[ -e $path && ! -f $path ]] && refuse EINVAL
"""
_READ = """exec 5<"$path" || exit 1
type -P head >/dev/null && exec head -c {limit} <&5
copy <&5
"""
_WRITE = """is_new=
[[ -e $path || -L $path ]] || is_new=yes
if [[ $is_new && $path = */* && ! -d ${path%/*} ]]; then
  # Where a file is in the way, opening says so better.
  message=$(mkdir -p -- "${path%/*}/" 2>&1) || [[ $message = *"File exists" ]] || refuse "$message"
fi
exec 5>"$path" || exit 1
copy=copy
type -P cat >/dev/null && copy=cat
$copy >&5 && exit
[[ $is_new ]] && rm -f -- "$path"
exit 1
"""
_ERRNO_BY_TEXT = {os.strerror(number): number for number in errno.errorcode}

_NO_TOOLS = 3
_LIST = f"""LC_ALL=C; cd / || exit
{{ type -P find xargs && tar --version; }} >/dev/null || exit {_NO_TOOLS}
find .{WORKDIR} .{HOME} -xdev -printf '%y %n %C@ %p\\0'
find ./tmp ./dev/shm -xdev -mindepth 1 -printf '%y %n inf %p\\0'
"""
_PACK = (
    "cd / && tar -c --format=posix --null --no-recursion --ignore-failed-read -T - -f - 2>/dev/null"
)
_REMOVE = "cd / && xargs -0 rm -rf --"
_UNPACK = "cd / && tar -x -p -f -"
_SOCKET, _FOLDER = "s", "d"

Script = Callable[[bytes, bytes], tuple[int, bytes]]


def read_script(path: str, max_bytes: int) -> bytes:
    """Returns the script that prints a file, and one byte more than is allowed where there is."""
    return _script(_READ.format(limit=max_bytes + 1), path)


def write_script(path: str) -> bytes:
    """Returns the script that writes its standard input to a file, making missing folders."""
    return _script(_WRITE, path)


def _script(body: str, path: str) -> bytes:
    return os.fsencode(_CHECKED_PATH.format(path=shlex.quote(path)) + body)


def raise_error(exit_code: int, output: bytes, path: str) -> None:
    """Raises the OSError that `read_script` or `write_script` met and named in its last line."""
    if exit_code == 0:
        return
    lines = output.decode("utf-8", "replace").strip().splitlines() or [""]
    reason = lines[-1].rpartition(": ")[2]
    number = getattr(errno, reason, None) if reason.isupper() else _ERRNO_BY_TEXT.get(reason)
    number = number or errno.EIO
    raise OSError(number, os.strerror(number), path)


class _Entry(NamedTuple):
    kind: str
    num_links: int
    changed_at: float
    path: str


def take_snapshot(run: Script, base: Iterable[str], started_at: float) -> bytes:
    """Returns the changed files.

    Args:
        run: Runs a script with some standard input and returns its exit code and output.
        base: Paths in the workspace at the start, relative to it.
        started_at: When the container started, in seconds since 1970.

    Raises:
        SandboxError: It cannot be taken.
    """
    code, output = run(_LIST.encode(), b"")
    if code == _NO_TOOLS:
        raise SandboxError("cannot take a snapshot: the image needs GNU find, tar and xargs")
    if code:
        raise SandboxError(f"cannot take a snapshot: {_reason(output)}")
    entries = [_entry(line) for line in output.split(b"\0") if line]
    changed = {one.path for one in entries if one.changed_at > started_at and one.kind != _SOCKET}
    code, archive = run(_PACK.encode(), _listing(changed))
    if code > 1:  # 1 is for files that could not be read
        raise SandboxError(f"cannot take a snapshot: tar ended with {code}")
    known = frozenset(f".{WORKDIR}/{name}" for name in base)
    gone = known.difference(one.path for one in entries) | _replaced(entries, changed, known)
    # Escapes what is not Unicode.
    head = json.dumps(sorted(p for p in gone if gone.isdisjoint(_parents(p)))).encode("ascii")
    return len(head).to_bytes(8, "big") + head + archive


def put_snapshot(run: Script, data: bytes) -> None:
    """Restores the changed files in a fresh container.

    Raises:
        SandboxError: It cannot be put there.
    """
    size = int.from_bytes(data[:8], "big")
    gone, archive = json.loads(data[8 : 8 + size]), data[8 + size :]
    for script, stdin in ((_REMOVE, _listing(gone)), (_UNPACK, archive)):
        code, output = run(script.encode(), stdin)
        if code:
            raise SandboxError(f"cannot restore a snapshot: {_reason(output)}")


def _listing(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _reason(output: bytes) -> str:
    return last_line(output.decode("utf-8", "replace"))


def _entry(line: bytes) -> _Entry:
    kind, num_links, changed_at, path = os.fsdecode(line).split(" ", 3)
    return _Entry(kind, int(num_links), float(changed_at), path)


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
