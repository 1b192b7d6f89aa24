"""What a layer must not do is not done, whatever its tar says."""

import gzip
import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from image_fixtures import Entry, RefusedLayer, Unpack, digest, entry, folder, symlink, tar_of

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.layer_unpacking import unpack_layer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"])
def test_special_files_are_left_out_and_reported(root: Path, unpack: Unpack, kind: bytes) -> None:
    # A character device 0:0 would be a removal of our own making.
    skipped = unpack(entry("dev/node", kind=kind, devmajor=0, devminor=0), entry("file", "x"))
    assert [p.name for p in root.rglob("*")] == ["file"]
    assert skipped[0].startswith("dev/node (")


def test_absolute_names_mean_the_same_without_their_slash(root: Path, unpack: Unpack) -> None:
    unpack(entry(f"{root.parent}/outside/new", "x"), entry("//etc//passwd", "y"))
    assert (root / str(root.parent).lstrip("/") / "outside/new").read_text() == "x"
    assert (root / "etc/passwd").read_text() == "y"


def test_an_attribute_cannot_make_a_folder_opaque(root: Path, unpack: Unpack) -> None:
    place = folder("etc")
    place[0].pax_headers = {"SCHILY.xattr.user.overlay.opaque": "y"}
    assert len(unpack(place)) == 1
    assert os.listxattr(root / "etc") == []


def test_a_file_that_is_written_through_a_symlink_replaces_it(root: Path, unpack: Unpack) -> None:
    unpack(symlink("link", "../outside/secret"), entry("link", "mine"))
    assert (root.parent / "outside/secret").read_text() == "theirs"
    assert (root / "link").read_text() == "mine"


def test_a_folder_made_where_a_symlink_was_is_a_folder(root: Path, unpack: Unpack) -> None:
    unpack(symlink("link", "../outside"), folder("link", mode=0o777), entry("link/new", "x"))
    assert sorted(p.name for p in (root.parent / "outside").iterdir()) == ["secret"]
    assert (root / "link/new").read_text() == "x"


def test_hard_links_to_symlinks_do_not_follow_them(root: Path, unpack: Unpack) -> None:
    unpack(symlink("link", "../outside/secret"), entry("h", kind=tarfile.LNKTYPE, linkname="link"))
    assert (root / "h").is_symlink()
    assert (root.parent / "outside/secret").stat().st_nlink == 1


def _header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)  # which has room for any size


def _claiming(name: str, kind: bytes, **headers: str) -> bytes:
    """Returns a tar with an entry that claims 2^60 bytes and has none."""
    info = tarfile.TarInfo(name)
    info.type, info.pax_headers = kind, headers
    records = info.tobuf(tarfile.PAX_FORMAT)[: -tarfile.BLOCKSIZE]
    info.size = 1 << 60
    return records + info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def _sized(size: bytes) -> bytes:
    header = bytearray(tarfile.TarInfo("file").tobuf())
    header[124:136] = size
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:512]) + 8 * 32)
    return bytes(header) + bytes(1024)


_LINK = symlink("link", "../outside")
_ODD_REMOVALS = (
    folder(".wh.folder"), entry(".wh.file", "content"), symlink(".wh.link", "/etc"),
    entry(".wh.a/b", "x"), entry("a/.wh..wh..opq/b", "x"), entry(".wh.dev", kind=tarfile.CHRTYPE),
)  # fmt: skip
# Layers by what is wrong with them, as entries or as bytes.
_REFUSED: dict[str, list[Entry] | bytes] = {
    **{
        f"up by {name}": [entry(name, "x")]
        for name in ("../outside/new", "a/../../outside/new", "..", "a/..")
    },
    **{
        f"through {to}": [folder("in"), symlink("link", to), entry("link/new", "x")]
        for to in ("../outside", "/", ".", "in")
    },
    **{
        f"a hard link to {target}": [
            folder("folder"),
            _LINK,
            entry("hard", kind=tarfile.LNKTYPE, linkname=target),
        ]
        for target in ("../outside/secret", "/etc/passwd", "link/secret", "missing", "folder", "/")
    },
    **{f"removal {name}": [entry(name)] for name in (".wh.", ".wh..", ".wh...", "a/.wh...")},
    **{f"odd {one[0].name}": [folder("a"), one] for one in _ODD_REMOVALS},
    "a removal below a link": [_LINK, entry("link/.wh.secret")],
    "an opaque mark below a link": [_LINK, entry("link/.wh..wh..opq")],
    "a folder that becomes a link": [folder("a"), entry("a/file", "x"), symlink("a", "../outside")],
    "a long name": [entry("n" * 300, "x")],
    "a deep path": [entry("d/" * 300 + "file", "x")],
    "a long path": [entry("/".join(["d" * 250] * 20), "x")],
    "a header of 8 GiB": _header(b"x", 1 << 33) + bytes(8 << 20),
    "a later one": _header(b"0", 0) + _header(b"L", 1 << 33) + bytes(8 << 20),
    "headers without end": _header(tarfile.XHDTYPE, 0) * 3000,
    "size -1": _sized(b"\xff" * 12),
    "size 2^95": _sized(b"\x80" + b"\xff" * 11),
    "size 2^33": _sized(b"77777777777\0"),
    "an end in the middle": tar_of([entry("x", bytes(100_000))])[:50_000],
    **{
        f"nothing, {which}": layer
        for which, layer in {
            "of unknown type": _claiming("x", b"Z"),
            "in a reserved name": _claiming(".wh..wh.plnk", tarfile.REGTYPE),
            "for a file of holes": _claiming("x", tarfile.REGTYPE, **{"GNU.sparse.realsize": "0"}),
        }.items()
    },
    "no tar": b"no tar at all" * 100,
    "half a compression": gzip.compress(tar_of([entry("x", os.urandom(100_000))]))[:50_000],
    "another compression": b"BZh9" + bytes(100),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_a_hostile_layer_is_refused(refused_layer: RefusedLayer, case: str) -> None:
    layer = _REFUSED[case]
    assert refused_layer(data=layer) if isinstance(layer, bytes) else refused_layer(*layer)


def test_too_many_entries_are_refused(refused_layer: RefusedLayer) -> None:
    assert "more than 3 entries" in refused_layer(*(entry(str(n)) for n in range(4)), MAX_ENTRIES=3)


def test_too_many_bytes_are_refused(refused_layer: RefusedLayer) -> None:
    assert "bytes" in refused_layer(
        entry("a", bytes(5000)), entry("b", bytes(5000)), MAX_BYTES=8000
    )


def test_a_huge_file_is_refused_before_it_is_made(root: Path, refused_layer: RefusedLayer) -> None:
    data = _header(tarfile.REGTYPE, 1 << 60) + bytes(1024)
    assert "1152921504606846976" in refused_layer(data=data)
    assert list(root.iterdir()) == []


def test_holes_count_as_bytes(refused_layer: RefusedLayer) -> None:
    info, content = entry("GNUSparseFile.0/s", b"1\n0\n5\n".ljust(512, b"\0") + b"there")
    info.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s",
        "GNU.sparse.realsize": str(1 << 50),
    }  # fmt: skip
    assert "bytes" in refused_layer((info, content))


def test_implied_folders_count_as_entries(root: Path, refused_layer: RefusedLayer) -> None:
    for name in ("file", ".wh.file", ".wh..wh..opq"):
        assert "entries" in refused_layer(entry("d/" * 200 + name), MAX_ENTRIES=100)
        shutil.rmtree(root / "d")


_TAR = tar_of([entry("file", "x")])


@pytest.mark.parametrize(
    ("data", "digests"),
    [
        (_TAR, {"digest": digest(b"others")}),
        (gzip.compress(_TAR), {"diff_id": digest(b"others")}),
        (_TAR + b"more", {"diff_id": digest(_TAR)}),
    ],
    ids=["compressed", "uncompressed", "bytes behind the end of the tar"],
)
def test_another_digest_is_refused(root: Path, data: bytes, digests: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError):
        unpack_layer(io.BytesIO(data), root, (os.geteuid(), os.getegid()), **digests)
