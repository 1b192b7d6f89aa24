"""Snapshots that no sandbox made fill their own folders or are refused."""

import io
import os
import random
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coding_gym.sandbox.inside.packing import Changes, pack, unpack
from coding_gym.sandbox.inside.placing import (
    DEVICE,
    FIFO,
    FILE,
    FOLDER,
    LINK,
    SYMLINK,
    Attributes,
    Record,
)
from coding_gym.sandbox.inside.tar_records import END, encode, padding
from coding_gym.sandbox.inside.wire import ChunkReader, ChunkWriter
from coding_gym.sandbox.ownership import remove_folder

Part = Record | bytes

_OPEN = Attributes(0o755, (0, 0))
_PLACE = Record(FOLDER, b"place", attributes=_OPEN)
_FOLDER = Record(FOLDER, b"place/folder", attributes=_OPEN)


def _data(*parts: Part) -> bytes:
    return b"".join(encode(part) if isinstance(part, Record) else part for part in parts)


def _file(path: bytes, data: bytes = b"x", size: int = 1, start: int = 0) -> bytes:
    extents = ((start, len(data)),)
    record = Record(FILE, path, size=size, extents=extents, attributes=_OPEN)
    return encode(record) + data + padding(len(data))


def _with_attribute(name: str, value: bytes = b"") -> Record:
    return Record(FOLDER, b"place/x", attributes=Attributes(0o755, (0, 0), ((name, value),)))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Path]:
    """A folder with something that must not change, and a place beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_text("unharmed", encoding="ascii")
    (tmp_path / "place").mkdir()
    yield tmp_path
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


def _pack(place: Path) -> bytes:
    data = bytearray()
    with _opened(place) as folders:
        pack(
            Changes(folders, newest_first=True),
            ChunkWriter(lambda pieces, _: data.extend(b"".join(pieces))),
        )
    return bytes(data)


def _unpack(world: Path, data: bytes) -> None:
    remove_folder(world / "place")
    (world / "place").mkdir()
    with _opened(world / "place") as folders:
        unpack(ChunkReader(lambda: (data, False)), folders)


def test_a_well_formed_snapshot_is_taken(world: Path) -> None:
    link = Record(SYMLINK, b"place/link", target=b"up")
    _unpack(world, _data(_PLACE, _FOLDER, _file(b"place/folder/file"), link, END))
    assert (world / "place" / "folder" / "file").read_bytes() == b"x"
    assert (world / "place" / "link").readlink() == Path("up")


def test_a_snapshot_is_a_tar_that_others_read(world: Path) -> None:
    place, content = world / "place", b"content" * 99
    long = place / "folder" / ("long é" * 30)
    long.parent.mkdir()
    long.write_bytes(content)
    os.link(long, place / "second")
    os.truncate(long, 5 << 20)
    with tarfile.open(fileobj=io.BytesIO(_pack(place))) as tar:
        found = {member.name: member.mtime for member in tar}
        second = tar.extractfile("place/second")
        assert second is not None
        assert second.read() == content.ljust(5 << 20, b"\0")
    names = ("place", "place/folder", f"place/folder/{long.name}", "place/second", "place.links/1")
    assert found.keys() == {*names}
    assert found["place.links/1"] == pytest.approx(long.stat().st_mtime)


_WAYS_OUT = (b"..", b".", b"../outside/victim", b"a/../../outside/new", b"nul\0", b"x" * 256, b"")


@pytest.mark.parametrize(
    "make",
    [
        _file,
        lambda path: Record(FOLDER, path),
        lambda path: Record(FIFO, path),
        lambda path: Record(SYMLINK, path, target=b"x"),
        lambda path: Record(LINK, path, target=b"place.links/first"),
        lambda path: Record(LINK, b"place/new", target=path),
    ],
    ids=["file", "folder", "fifo", "symlink", "hard link", "target of a hard link"],
)
def test_names_lead_nowhere(world: Path, make: Callable[[bytes], Part]) -> None:
    first = Record(FIFO, b"place.links/first")
    for name in _WAYS_OUT:
        # A NUL ends a short path, and is part of one in a PAX header.
        path = b"place/" + name + b"/z" * 60 * (b"\0" in name)
        with pytest.raises((ValueError, OSError)):
            _unpack(world, _data(_PLACE, first, make(path), END))
    for path in (b"/tmp/x", b"/place/x", b"outside/victim", b"place2/x"):
        with pytest.raises(ValueError):
            _unpack(world, _data(_PLACE, first, make(path), END))


@pytest.mark.parametrize("target", [b"../outside", b"/", b"."])
def test_nothing_is_made_through_a_symlink(world: Path, target: bytes) -> None:
    link = Record(SYMLINK, b"place/link", target=target)
    for inside in (Record(FOLDER, b"place/link"), _file(b"place/link"), _file(b"place/link/new")):
        with pytest.raises((FileExistsError, ValueError)):
            _unpack(world, _data(_PLACE, link, inside, END))
    for through in (b"place/link/victim", b"place/link/outside/victim", b"outside/victim"):
        hard = Record(LINK, b"place/hard", target=through)
        with pytest.raises(ValueError):
            _unpack(world, _data(_PLACE, link, hard, END))


@pytest.mark.parametrize("again", [_FOLDER, _file(b"place/folder"), Record(FIFO, b"place/folder")])
def test_no_name_is_made_twice(world: Path, again: Part) -> None:
    with pytest.raises(FileExistsError):
        _unpack(world, _data(_PLACE, _FOLDER, again, END))


_HUGE = (1 << 63) - 1


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (_PLACE,),
        (END,),
        (_PLACE, _PLACE, END),
        (_PLACE, Record(FOLDER, b"other"), END),
        (Record(FOLDER, b"\xff"), END),
        (_FOLDER, END),
        (_file(b"place"), END),
        (_PLACE, END, b"more"),
        (_PLACE, END[:600]),
        (_PLACE, Record(LINK, b"place/x", target=b"place.links/3"), END),
        (_PLACE, Record(SYMLINK, b"place/x", target=b"a\0" + b"b" * 99)),
        (_PLACE, _file(b"place/x", b"yy", 10, 9)),
        (_PLACE, _file(b"place/x", b"yy", 10, 1 << 63)),
        (_PLACE, _file(b"place/x", b"yy", 1 << 64, 1 << 63)),
        (_PLACE, _file(b"place/x", b"y", 9, -1)),
        (_PLACE, encode(Record(FILE, b"place/x", size=9, extents=((0, 9),))), b"yy"),
        (_PLACE, encode(Record(FILE, b"place/x", size=_HUGE, extents=((0, _HUGE),)))),
        (_PLACE, Record(b"7", b"place/x")),
        (_PLACE, Record(FIFO, b"x", num_shared=2)),
        (_PLACE, Record(FIFO, b"x", num_shared=-1)),
        (_PLACE, encode(_FOLDER).replace(b"atime=0", b"atime=z")),
        (_PLACE, encode(_FOLDER).replace(b"40 atime", b"-4 atime")),
        (_PLACE, encode(_FOLDER).replace(b"40 atime=0", b"40 atime=9")),
        (_PLACE, encode(_FOLDER)[:124] + b"-0000001000" + encode(_FOLDER)[135:]),
        (_PLACE, _with_attribute("trusted.x")),
        (_PLACE, _with_attribute("user.\0"), END),
    ],
)
def test_malformed_snapshots_are_refused(world: Path, parts: tuple[Part, ...]) -> None:
    with pytest.raises(ValueError):
        _unpack(world, _data(*parts))


def test_the_only_device_is_the_one_that_anybody_may_make(world: Path) -> None:
    _unpack(world, _data(_PLACE, Record(DEVICE, b"place/gone"), END))
    assert os.lstat(world / "place" / "gone").st_rdev == 0


@pytest.mark.slow
def test_damaged_snapshots_are_refused(world: Path) -> None:
    place = world / "place"
    (place / "folder").mkdir()
    (place / "folder" / "file").write_bytes(b"content" * 9)
    os.link(place / "folder" / "file", place / "second")
    (place / "link").symlink_to("folder")
    good = _pack(place)
    for size in range(0, len(good), 47):
        with pytest.raises(ValueError):
            _unpack(world, good[:size])
    generator = random.Random(3)
    num_refused = 0
    for _ in range(150):
        damaged = bytearray(good)
        damaged[generator.randrange(len(good))] ^= 1 << generator.randrange(8)
        try:
            _unpack(world, bytes(damaged))
        except (OSError, ValueError):
            num_refused += 1
    assert 10 < num_refused < 150
