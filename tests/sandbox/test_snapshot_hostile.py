"""Snapshots that no sandbox made: whatever they say, they fill their folders or are refused."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coding_gym.sandbox.copies import pack_copies, unpack_copies
from coding_gym.sandbox.zygote import records
from coding_gym.sandbox.zygote.chunks import ChunkWriter
from coding_gym.sandbox.zygote.records import MAGIC, Record

_PLACE = Record(kind=records.PLACE, name=b"place", mode=0o755)
_UP = Record(kind=records.UP)
_END = Record(kind=records.END)
_FOLDER = Record(kind=records.FOLDER, name=b"folder", mode=0o755)
_LINK = Record(kind=records.SYMLINK, name=b"link", size=2)
_WHITEOUT = Record(kind=records.WHITEOUT, name=b"gone")


def _data(*parts: Record | bytes, magic: bytes = MAGIC) -> bytes:
    written = bytearray(magic)
    writer = ChunkWriter(lambda chunk, _: written.extend(chunk))
    for part in parts:
        if isinstance(part, Record):
            records.write(writer, part)
        else:
            writer.write(part)
    writer.finish()
    return bytes(written)


def _extents(*extents: tuple[int, int, bytes]) -> bytes:
    written = bytearray()
    writer = ChunkWriter(lambda chunk, _: written.extend(chunk))
    for offset, size, data in extents:
        records.write_extent(writer, offset, size)
        writer.write(data)
    writer.finish()
    return bytes(written)


def _file(name: bytes, size: int = 1, *, data: bytes | None = None, mode: int = 0o644) -> bytes:
    head = _data(Record(kind=records.FILE, name=name, size=size, mode=mode), magic=b"")
    return head + (_extents((0, 1, b"x"), (size, 0, b"")) if data is None else data)


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


def _unpack(world: Path, data: bytes) -> None:
    unpack_copies(data, {"place": world / "place"})


def test_what_is_well_made_is_taken(world: Path) -> None:
    _unpack(world, _data(_PLACE, _FOLDER, _file(b"file"), _UP, _LINK, b"up", _UP, _END))
    assert (world / "place" / "folder" / "file").read_bytes() == b"x"
    assert (world / "place" / "link").readlink() == Path("up")


_NAMES = (b"..", b".", b"a/b", b"/tmp/x", b"../outside/victim", b"nul\0", b"x" * 256, b"")


@pytest.mark.parametrize(
    "make",
    [
        lambda name: _file(name),
        lambda name: Record(kind=records.FOLDER, name=name, mode=0o755),
        lambda name: Record(kind=records.FIFO, name=name),
        lambda name: Record(kind=records.HARD_LINK, name=name, inode=1),
    ],
    ids=["file", "folder", "fifo", "hard link"],
)
def test_names_lead_nowhere(world: Path, make: Callable[[bytes], Record | bytes]) -> None:
    first = Record(kind=records.FIFO, name=b"first", inode=1, num_names=2)
    for name in _NAMES:
        with pytest.raises(ValueError, match="entry"):
            _unpack(world, _data(_PLACE, first, make(name), _UP, _END))
        (world / "place" / "first").unlink(missing_ok=True)


@pytest.mark.parametrize("target", [b"../outside", b"/"])
def test_nothing_is_made_through_a_symlink(world: Path, target: bytes) -> None:
    link = Record(kind=records.SYMLINK, name=b"link", size=len(target))
    folder = Record(kind=records.FOLDER, name=b"link", mode=0o777)
    for inside in (folder, _file(b"link")):
        with pytest.raises(FileExistsError):
            _unpack(world, _data(_PLACE, link, target, inside, _file(b"victim"), _UP, _UP, _END))


@pytest.mark.parametrize(
    "again", [_FOLDER, _file(b"folder"), Record(kind=records.FIFO, name=b"folder")]
)
def test_no_name_is_made_twice(world: Path, again: Record | bytes) -> None:
    with pytest.raises(FileExistsError):
        _unpack(world, _data(_PLACE, _FOLDER, _UP, again, _UP, _END))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((), "too early"),
        ((_PLACE, _UP), "too early"),
        ((_END,), "lacks place"),
        ((_PLACE, _UP, _PLACE, _UP, _END), "no place named"),
        ((Record(kind=records.PLACE, name=b"\xff"), _UP, _END), "no place named"),
        ((_PLACE, _END), "does not end"),
        ((_PLACE, _PLACE), "does not end"),
        ((_FOLDER, _UP, _END), "outside every place"),
        ((_PLACE, _UP, _UP, _END), "outside every place"),
        ((_PLACE, _UP, _END, b"more"), "follows its end"),
        ((_PLACE, Record(kind=records.HARD_LINK, name=b"x", inode=3)), "no first"),
        ((_PLACE, _LINK, b"a\0"), "NUL"),
        ((_PLACE, Record(kind=records.SYMLINK, name=b"x", size=0)), "nowhere"),
        ((_PLACE, Record(kind=records.SYMLINK, name=b"x", size=5000), b"y" * 5000), "nowhere"),
        ((_PLACE, _file(b"x", 10, data=_extents((9, 2, b"yy")))), "beyond the end"),
        ((_PLACE, _file(b"x", 10, data=_extents((1 << 63, 1 << 63, b"yy")))), "beyond the end"),
        ((_PLACE, _file(b"x", 10, data=_extents((0, 10, b"short")))), "too early"),
        ((_PLACE, Record(kind=records.FIFO, name=b"x", mode=0o10644)), "cannot be"),
        ((_PLACE, Record(kind=77, name=b"x")), "cannot be"),
        ((_PLACE, Record(kind=records.FOLDER, name=b"x", xattrs=(("trusted.x", b""),))), "named"),
        ((_PLACE, Record(kind=records.FOLDER, name=b"x", xattrs=(("user.\0", b""),))), "named"),
        (
            (_PLACE, Record(kind=records.FOLDER, name=b"x", xattrs=(("user.x", b"v" * 70000),))),
            "too long",
        ),
    ],
)
def test_nonsense_is_refused(world: Path, parts: tuple[Record | bytes, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _unpack(world, _data(*parts))


def test_another_version_is_refused(world: Path) -> None:
    with pytest.raises(ValueError, match="version"):
        _unpack(world, _data(_PLACE, _UP, _END, magic=MAGIC.replace(b"1", b"2")))


def test_an_impossible_size_costs_nothing(world: Path) -> None:
    huge = (1 << 63) - 1
    with pytest.raises((OSError, ValueError)):
        _unpack(world, _data(_PLACE, _file(b"x", huge, data=_extents((0, huge, b"little")))))


def test_the_only_device_is_the_one_that_anybody_may_make(world: Path) -> None:
    _unpack(world, _data(_PLACE, _WHITEOUT, _UP, _END))
    assert os.lstat(world / "place" / "gone").st_rdev == 0


def test_hard_links_need_not_add_up(world: Path) -> None:
    first = Record(kind=records.FIFO, name=b"a", inode=1, num_names=0)
    second = Record(kind=records.HARD_LINK, name=b"b", inode=1)
    _unpack(world, _data(_PLACE, first, second, _UP, _END))
    assert _names(world / "place") == ["a", "b"]
    assert os.lstat(world / "place" / "a").st_nlink == 2
    again = Record(kind=records.FIFO, name=b"c", inode=1, num_names=9)
    with pytest.raises(FileExistsError):
        _unpack(world, _data(_PLACE, first, again, _UP, _END))


def test_a_tree_of_any_depth_is_taken(world: Path) -> None:
    depth = 1100
    _unpack(world, _data(_PLACE, *[_FOLDER] * depth, *[_UP] * (depth + 1), _END))
    data = pack_copies({"place": world / "place"})
    assert data.count(b"folder") == depth
    unpack_copies(_data(_PLACE, _UP, _END), {"place": world / "place"})
    assert _names(world / "place") == []


def test_cut_or_damaged_snapshots_are_refused_and_nothing_else(world: Path) -> None:
    place = world / "place"
    (place / "folder").mkdir()
    (place / "folder" / "file").write_bytes(b"content" * 9)
    os.link(place / "folder" / "file", place / "second")
    (place / "link").symlink_to("folder")
    good = pack_copies({"place": place})
    for size in range(0, len(good), 7):
        with pytest.raises(ValueError, match=r"early|version"):
            _unpack(world, good[:size])
    generator = random.Random(3)
    num_refused = 0
    for _ in range(150):
        damaged = bytearray(good)
        damaged[generator.randrange(len(MAGIC), len(good))] ^= 1 << generator.randrange(8)
        try:
            _unpack(world, bytes(damaged))
        except (OSError, ValueError):
            num_refused += 1
    assert 20 < num_refused < 150
