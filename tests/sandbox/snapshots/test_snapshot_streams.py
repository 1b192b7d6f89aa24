"""Forged snapshots write only to their own folders, or are refused."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coding_gym.sandbox.inside.packing import Entry, restore
from coding_gym.sandbox.inside.syscalls import SetupError
from coding_gym.sandbox.ownership import remove_folder
from coding_gym.sandbox.served_sandbox import memory_file

_TARGETS = {"file": "", "folder": "", "fifo": "", "symlink": "x", "link": "./first"}
_KINDS = list(_TARGETS)


def _entry(path: str, kind: str = "file", target: str = "", **fields: Any) -> Entry:
    return Entry("place", path, kind, 0o755, 0, target)._replace(**fields)


_PLACE, _END = _entry(".", "folder"), ()
_FIRST = _entry("./first")


def _stream(*entries: Sequence[object]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file that must not change, and a folder beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_text("unharmed", encoding="ascii")
    (tmp_path / "place").mkdir()
    before = os.getcwd()  # noqa: PTH109 - a change of it is tested
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


def _unpack(world: Path, data: bytes) -> None:
    remove_folder(world / "place")
    (world / "place").mkdir()
    with memory_file(data) as file, _opened(world / "place") as folders:
        restore(folders, os.dup(file.fileno()))


def _assert_refused(world: Path, *entries: Sequence[object]) -> None:
    with pytest.raises(SetupError):
        _unpack(world, _stream(*entries))


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    "path",
    [
        *("./..", "./.", "../outside/victim", "./a/../../outside/new", "..", "./a"),
        *("/tmp/x", "/place/x", "outside/victim", "place", "x" * 256, ""),
        "./" + "x" * 256,
    ],
)
def test_entries_with_unsafe_paths_are_refused(world: Path, path: str, kind: str) -> None:
    first = _entry("./a")  # a file, which cannot have entries
    _assert_refused(world, _PLACE, _FIRST, first, _entry(path, kind, _TARGETS[kind]), _END)


@pytest.mark.parametrize("target", ["../outside", "/", "."])
def test_entries_below_a_symlink_are_refused(world: Path, target: str) -> None:
    link = _entry("./link", "symlink", target)
    for path in ("./link", "./link/new"):
        for kind in _KINDS:
            _assert_refused(world, _PLACE, _FIRST, link, _entry(path, kind, _TARGETS[kind]), _END)
    for through in ("./link/victim", "outside/victim", "../outside/victim"):
        _assert_refused(world, _PLACE, link, _entry("./hard", "link", through), _END)


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (_PLACE,),
        (_END,),
        (_PLACE, _entry(".", "folder", root="other"), _END),
        (_entry("./a", "folder"), _END),
        (_PLACE, _entry("./a", "folder"), _entry("./a", "folder"), _END),
        (_PLACE, _entry("./a", "folder"), _entry("./a"), _END),
        (_PLACE, _entry("./x", "link", "./none"), _END),
        (_PLACE, _entry("./x", "device"), _END),
        (_PLACE, _entry("./x", mtime_ns="z"), _END),
        (_PLACE, _entry("./x", mode="z"), _END),
        (_PLACE, _entry("./x", mtime_ns=1 << 99), _END),
        (_PLACE, _entry("./x", size=-1), _END),
        (_PLACE, _entry("./x", size=1 << 62), _END),
        (_PLACE, _entry("./x", size=1 << 70), _END),
        (_PLACE, _entry("./x", size=9, extents=[(0, 9)]), _END),
        (_PLACE, _entry("./x", size=9, extents=[(-9, 9)]), _END),
        (_PLACE, _entry("./x", size=9, extents=[9]), _END),
        (_PLACE, ["place", "./x", "symlink", 0, 0, 7], _END),
        (_PLACE, ["place", 7, "file", 0, 0], _END),
        (_PLACE, _entry("./x", root=[]), _END),
        (_PLACE, ["place"], _END),
    ],
)
def test_malformed_snapshots_are_refused(
    world: Path, entries: tuple[Sequence[object], ...]
) -> None:
    _assert_refused(world, *entries)


@pytest.mark.slow
def test_damaged_snapshots_change_nothing_outside(world: Path) -> None:
    folder, content = _entry("./folder", "folder"), b"content" * 9
    file = _entry("./folder/file", size=len(content), extents=[(0, len(content))])
    links = _entry("./second", "link", "./folder/file"), _entry("./link", "symlink", "folder")
    good = _stream(_PLACE, folder, file) + content + _stream(*links, _END)
    _unpack(world, good)
    assert (world / "place" / "second").read_bytes() == content
    for size in range(0, len(good), 97):
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
