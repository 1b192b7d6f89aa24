"""Snapshots that no sandbox made fill their own folders or are refused."""

import io
import json
import os
import random
import socket
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from coding_gym.sandbox.inside import wire
from coding_gym.sandbox.inside.packing import Changes, restore, send
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.sandbox.served_sandbox import memory_file

_KINDS = {
    "file": {},
    "folder": {"type": tarfile.DIRTYPE},
    "fifo": {"type": tarfile.FIFOTYPE},
    "symlink": {"type": tarfile.SYMTYPE, "linkname": "x"},
    "hard link": {"type": tarfile.LNKTYPE, "linkname": "place/first"},
}


def _entry(name: str, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for field, value in {"mode": 0o755, "uname": "0", **fields}.items():
        setattr(info, field, value)
    return info


def _folder(name: str) -> tarfile.TarInfo:
    return _entry(name, type=tarfile.DIRTYPE)


_PLACE, _END = _folder("place/."), tarfile.TarInfo("end")


def _tar(*entries: tarfile.TarInfo) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            tar.addfile(entry)
    return file.getvalue()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Path]:
    """A folder with something that must not change, and a place beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_text("unharmed", encoding="ascii")
    (tmp_path / "place").mkdir()
    before = os.getcwd()  # noqa: PTH109 - what os says
    yield tmp_path
    os.chdir(before)
    assert _names(tmp_path) == ["outside", "place"]
    assert _names(tmp_path / "outside") == ["victim"]
    assert (tmp_path / "outside" / "victim").read_text(encoding="ascii") == "unharmed"
    assert (tmp_path / "outside" / "victim").stat().st_nlink == 1


@contextmanager
def _opened(place: Path) -> Iterator[dict[str, int]]:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield {"place": descriptor}
    finally:
        os.close(descriptor)


def _exchange(
    world: Path, use: Callable[[dict[str, int], socket.socket], None], file: BinaryIO
) -> dict[str, Any]:
    """Calls a side of the channel that wants a file, and returns its last reply."""
    ours, theirs = socket.socketpair()
    with ours, theirs, _opened(world / "place") as folders:
        socket.send_fds(ours, [b"+"], [file.fileno()])
        use(folders, theirs)
        theirs.sendall(wire.pack({}))
        replies = ours.recv(1 << 10)
    return dict(json.loads(replies[10 + 8 : replies.index(b"}", 10) + 1]))


def _pack(world: Path) -> bytes:
    with memory_file(size=1 << 20) as file:
        reply = _exchange(world, lambda f, c: send(Changes(f, newest_first=True), c), file)
        return file.read(reply["size"])


def _unpack(world: Path, data: bytes) -> None:
    remove_folder(world / "place")
    (world / "place").mkdir()
    with memory_file(data) as file:
        _exchange(world, restore, file)


def _assert_refused(world: Path, *entries: tarfile.TarInfo) -> None:
    with pytest.raises(SetupError):
        _unpack(world, _tar(*entries))


def test_a_well_formed_snapshot_is_taken(world: Path) -> None:
    link = _entry("place/./link", type=tarfile.SYMTYPE, linkname="up")
    _unpack(world, _tar(_PLACE, _folder("place/./a"), _entry("place/./a/file"), link, _END))
    assert (world / "place" / "a" / "file").read_bytes() == b""
    assert (world / "place" / "link").readlink() == Path("up")


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    "name",
    [
        *("place/./..", "place/./.", "place/../outside/victim", "place/./a/../../outside/new"),
        *("/tmp/x", "/place/x", "outside/victim", "place2/./x", "place", "x" * 256, ""),
        "place/./" + "x" * 256,
    ],
)
def test_names_lead_nowhere(world: Path, name: str, kind: str) -> None:
    _assert_refused(world, _PLACE, _entry("place/./first"), _entry(name, **_KINDS[kind]), _END)


@pytest.mark.parametrize("target", ["../outside", "/", "."])
def test_nothing_is_made_through_a_symlink(world: Path, target: str) -> None:
    link = _entry("place/./link", type=tarfile.SYMTYPE, linkname=target)
    for name in ("place/./link", "place/./link/new"):
        for fields in _KINDS.values():
            _assert_refused(world, _PLACE, _entry("place/./first"), link, _entry(name, **fields))
    for through in ("place/./link/victim", "outside/victim", "place/../outside/victim"):
        hard = _entry("place/./hard", type=tarfile.LNKTYPE, linkname=through)
        _assert_refused(world, _PLACE, link, hard, _END)


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (_PLACE,),
        (_END,),
        (_PLACE, _folder("other/."), _END),
        (_folder("place/./a"), _END),
        (_PLACE, _folder("place/./a"), _folder("place/./a"), _END),
        (_PLACE, _folder("place/./a"), _entry("place/./a"), _END),
        (_PLACE, _entry("place/./x", type=tarfile.LNKTYPE, linkname="place/./none"), _END),
        (_PLACE, _entry("place/./x", type=b"Z"), _END),
        (_PLACE, _entry("place/./x", type=tarfile.CHRTYPE, devmajor=1, devminor=3), _END),
        (_PLACE, _entry("place/./x", type=tarfile.BLKTYPE), _END),
        (_PLACE, _entry("place/./x", uname=""), _END),
        (_PLACE, _entry("place/./x", uname="z"), _END),
    ],
)
def test_malformed_snapshots_are_refused(world: Path, entries: tuple[tarfile.TarInfo, ...]) -> None:
    _assert_refused(world, *entries)


@pytest.mark.slow
def test_damaged_snapshots_reach_nothing_outside(world: Path) -> None:
    place = world / "place"
    (place / "folder").mkdir()
    (place / "folder" / "file").write_bytes(b"content" * 9)
    os.link(place / "folder" / "file", place / "second")
    (place / "link").symlink_to("folder")
    good = _pack(world)
    for size in range(0, good.index(b"end\0"), 97):
        with pytest.raises(SetupError):
            _unpack(world, good[:size])
    generator = random.Random(3)
    num_refused = 0
    for _ in range(150):
        damaged = bytearray(good)
        damaged[generator.randrange(len(good))] ^= 1 << generator.randrange(8)
        try:
            _unpack(world, bytes(damaged))
        except SetupError:
            num_refused += 1
    assert 5 < num_refused < 150
