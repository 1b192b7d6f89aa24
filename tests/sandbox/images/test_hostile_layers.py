"""What a layer must not do is not done, whatever its tar says."""

import gzip
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from making_images import (
    Entry,
    digest,
    entry,
    folder,
    symlink,
    tar_of,
)

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.stream import LayerLimits, LayerStream
from coding_gym.sandbox.images.unpacking import LayerUnpacker, Unpacked

Unpack = Callable[..., Unpacked]
RefusedLayer = Callable[..., str]


def test_set_user_id_bits_are_stripped(root: Path, unpack: Unpack) -> None:
    unpack(entry("su", "x", mode=0o6755), folder("shared", mode=0o2775), folder("tmp", mode=0o1777))
    modes = [stat.S_IMODE((root / name).stat().st_mode) for name in ("su", "shared", "tmp")]
    assert modes == [0o755, 0o775, 0o1777]


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"])
def test_special_files_are_left_out_and_reported(root: Path, unpack: Unpack, kind: bytes) -> None:
    # A character device 0:0 would be a removal of our own making.
    done = unpack(entry("dev/node", kind=kind, devmajor=0, devminor=0), entry("file", "x"))
    assert sorted(p.name for p in root.rglob("*") if not p.is_dir()) == ["file"]
    assert done.skipped[0].startswith("dev/node (")


def test_absolute_names_mean_the_same_without_their_slash(root: Path, unpack: Unpack) -> None:
    unpack(entry(f"{root.parent}/outside/new", "x"), entry("//etc//passwd", "y"))
    assert (root / str(root.parent).lstrip("/") / "outside/new").read_text() == "x"
    assert (root / "etc/passwd").read_text() == "y"


def test_an_attribute_cannot_make_a_folder_opaque(root: Path, unpack: Unpack) -> None:
    place = folder("etc")
    place[0].pax_headers = {"SCHILY.xattr.user.overlay.opaque": "y"}
    assert len(unpack(place).skipped) == 1
    assert os.listxattr(root / "etc") == []


@pytest.mark.parametrize("name", ["../outside/new", "a/../../outside/new", "..", "a/.."])
def test_names_that_go_up_are_refused(refused_layer: RefusedLayer, name: str) -> None:
    assert "leads out" in refused_layer(entry(name, "x"))


@pytest.mark.parametrize("target", ["../outside", "/", ".", "inside"])
def test_names_through_a_symlink_made_earlier_are_refused(
    refused_layer: RefusedLayer, target: str
) -> None:
    assert "no folder" in refused_layer(
        folder("inside"), symlink("link", target), entry("link/new", "x")
    )


def test_a_folder_replaced_by_a_symlink_is_refused(refused_layer: RefusedLayer) -> None:
    said = refused_layer(folder("a"), entry("a/file", "x"), symlink("a", "../outside"))
    assert "is a folder, and then it is not" in said


def test_a_file_that_is_written_through_a_symlink_replaces_it(root: Path, unpack: Unpack) -> None:
    unpack(symlink("link", "../outside/secret"), entry("link", "mine"))
    assert (root.parent / "outside/secret").read_text() == "theirs"
    assert (root / "link").read_text() == "mine"


def test_a_folder_made_where_a_symlink_was_is_a_folder(root: Path, unpack: Unpack) -> None:
    unpack(symlink("link", "../outside"), folder("link", mode=0o777), entry("link/new", "x"))
    assert sorted(p.name for p in (root.parent / "outside").iterdir()) == ["secret"]
    assert (root / "link/new").read_text() == "x"


@pytest.mark.parametrize(
    "target", ["../outside/secret", "/etc/passwd", "link/secret", "missing", "folder"]
)
def test_hard_links_to_what_is_no_file_of_the_layer_are_refused(
    refused_layer: RefusedLayer, target: str
) -> None:
    refused_layer(
        folder("folder"),
        symlink("link", "../outside"),
        entry("hard", kind=tarfile.LNKTYPE, linkname=target),
    )


def test_a_hard_link_to_a_symlink_is_one_to_the_link_itself(root: Path, unpack: Unpack) -> None:
    unpack(symlink("link", "../outside/secret"), entry("h", kind=tarfile.LNKTYPE, linkname="link"))
    assert (root / "h").is_symlink()
    assert (root.parent / "outside/secret").stat().st_nlink == 1


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "a/.wh..."])
def test_removals_of_no_name_are_refused(refused_layer: RefusedLayer, name: str) -> None:
    assert "removes no name" in refused_layer(entry(name))


@pytest.mark.parametrize(
    "hostile",
    [
        folder(".wh.folder"),
        entry(".wh.file", "content"),
        symlink(".wh.link", "/etc"),
        entry(".wh.a/b", "x"),
        entry("a/.wh..wh..opq/b", "x"),
        entry(".wh.dev", kind=tarfile.CHRTYPE),
    ],
    ids=lambda hostile: hostile[0].name,
)
def test_odd_uses_of_removals_names_are_refused(
    refused_layer: RefusedLayer, hostile: Entry
) -> None:
    assert ".wh." in refused_layer(folder("a"), hostile)


def test_a_removal_below_a_symlink_is_refused(refused_layer: RefusedLayer) -> None:
    assert "no folder" in refused_layer(symlink("link", "../outside"), entry("link/.wh.secret"))


def test_an_opaque_mark_below_a_symlink_is_refused(refused_layer: RefusedLayer) -> None:
    assert "no folder" in refused_layer(symlink("link", "../outside"), entry("link/.wh..wh..opq"))


def test_too_many_entries_are_refused(refused_layer: RefusedLayer) -> None:
    assert "more than 3 entries" in refused_layer(*(entry(str(n)) for n in range(4)), max_entries=3)


def test_too_many_bytes_are_refused(refused_layer: RefusedLayer) -> None:
    assert "bytes" in refused_layer(
        entry("a", bytes(5000)), entry("b", bytes(5000)), max_bytes=8000
    )


def test_a_file_that_says_to_be_huge_is_refused_before_it_is_made(
    root: Path, refused_layer: RefusedLayer
) -> None:
    info = tarfile.TarInfo("huge")
    info.size = 1 << 60
    assert "1152921504606846976" in refused_layer(data=info.tobuf() + bytes(1024))
    assert list(root.iterdir()) == []


def test_holes_count_as_bytes(refused_layer: RefusedLayer) -> None:
    info, content = entry("GNUSparseFile.0/s", b"1\n0\n5\n".ljust(512, b"\0") + b"there")
    info.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s",
        "GNU.sparse.realsize": str(1 << 50),
    }  # fmt: skip
    assert "bytes" in refused_layer((info, content))


def test_bombs_are_refused_by_their_ratio(
    monkeypatch: pytest.MonkeyPatch, refused_layer: RefusedLayer
) -> None:
    monkeypatch.setattr("coding_gym.sandbox.images.stream.FREE_BYTES", 1 << 20)
    bomb = gzip.compress(tar_of([entry("zeros", bytes(16 << 20))]))
    assert "100 times its size" in refused_layer(data=bomb, max_ratio=100)


def test_a_header_that_would_fill_the_memory_is_refused(refused_layer: RefusedLayer) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    assert "header" in refused_layer(data=info.tobuf() + bytes(8 << 20))


def test_headers_that_nest_without_end_are_refused(refused_layer: RefusedLayer) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 0
    assert refused_layer(data=info.tobuf() * 3000)


@pytest.mark.parametrize("size", [b"\xff" * 12, b"\x80" + b"\xff" * 11, b"77777777777\0"])
def test_sizes_that_cannot_be_are_refused(refused_layer: RefusedLayer, size: bytes) -> None:
    header = bytearray(tarfile.TarInfo("file").tobuf())
    header[124:136] = size
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:512]) + 8 * 32)
    assert refused_layer(data=bytes(header) + bytes(1024))


def test_a_tar_that_ends_in_the_middle_is_refused(refused_layer: RefusedLayer) -> None:
    whole = tar_of([entry("file", bytes(100_000))])
    assert "ends in the middle" in refused_layer(data=whole[:50_000])


def test_what_is_no_tar_is_refused(refused_layer: RefusedLayer) -> None:
    assert refused_layer(data=b"no tar at all" * 100)


def test_a_broken_compression_is_refused(refused_layer: RefusedLayer) -> None:
    data = gzip.compress(tar_of([entry("file", os.urandom(100_000))]))
    assert "uncompressed" in refused_layer(data=data[:50_000])


def test_names_longer_than_a_file_system_takes_are_refused(refused_layer: RefusedLayer) -> None:
    assert "cannot be unpacked" in refused_layer(entry("n" * 300, "x"))


@pytest.mark.parametrize("name", ["d/" * 300 + "file", "/".join(["d" * 250] * 20)])
def test_names_deeper_or_longer_than_a_path_may_be_are_refused(
    refused_layer: RefusedLayer, name: str
) -> None:
    assert "longer than a path may be" in refused_layer(entry(name, "x"))


def test_folders_that_are_only_implied_count_as_entries(
    root: Path, refused_layer: RefusedLayer
) -> None:
    for name in ("file", ".wh.file", ".wh..wh..opq"):
        assert "entries" in refused_layer(entry("d/" * 200 + name), max_entries=100)
        shutil.rmtree(root / "d")


def test_removals_that_would_fill_the_memory_are_refused(
    refused_layer: RefusedLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coding_gym.sandbox.images.whiteouts.MAX_PARTS", 40)
    entries = [entry("d/" * 9 + f".wh.{number}") for number in range(5)]
    assert "removes too much" in refused_layer(*entries)


@pytest.mark.parametrize("wrong", ["digest", "diff_id"])
def test_other_bytes_than_the_digest_says_are_refused(root: Path, wrong: str) -> None:
    layer = tar_of([entry("file", "x")])
    packed = gzip.compress(layer)
    digests = {"digest": digest(packed), "diff_id": digest(layer)} | {wrong: digest(b"others")}
    stream = LayerStream(io.BytesIO(packed), LayerLimits(), **digests)
    with pytest.raises(InvalidArgumentError, match="have the digest"):
        LayerUnpacker(str(root), (os.geteuid(), os.getegid())).unpack(stream)


def test_bytes_behind_the_end_of_the_tar_count_for_the_digest(root: Path) -> None:
    layer = tar_of([entry("file", "x")])
    stream = LayerStream(io.BytesIO(layer + b"more"), LayerLimits(), diff_id=digest(layer))
    with pytest.raises(InvalidArgumentError, match="have the digest"):
        LayerUnpacker(str(root), (os.geteuid(), os.getegid())).unpack(stream)


@pytest.mark.parametrize(
    ("magic", "way_out"), [(b"\xfd7zXZ\x00", "docker save"), (b"BZh9", "docker save")]
)
def test_compressions_that_images_do_not_have_are_refused_with_the_way_out(
    refused_layer: RefusedLayer, magic: bytes, way_out: str
) -> None:
    assert way_out in refused_layer(data=magic + bytes(100))


def test_without_a_module_for_zstd_the_way_out_is_told(
    monkeypatch: pytest.MonkeyPatch, refused_layer: RefusedLayer
) -> None:
    monkeypatch.setattr("coding_gym.sandbox.images.stream.ZSTD_MODULES", (("no_zstd", "open"),))
    assert "pip install zstandard" in refused_layer(data=b"\x28\xb5\x2f\xfd" + bytes(100))


def test_descriptors_are_all_closed(unpack: Unpack, refused_layer: RefusedLayer) -> None:
    before = _num_descriptors()
    unpack(*(entry(f"{n}/{n}/file", "x") for n in range(20)))
    refused_layer(
        folder("a"), entry("a/b/c/d", "x"), symlink("a/b/l", "/"), entry("a/b/l/e/f", "x")
    )
    assert _num_descriptors() == before


def _num_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
