"""One layer's tar is unpacked completely or not at all, and nothing else changes."""

import gzip
import os
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from image_fixtures import Entry, entry, folder, oci_layout, symlink, tar_of
from sandbox_fixtures import BACKEND

from coding_gym.errors import SandboxError
from coding_gym.sandbox.images import store
from coding_gym.sandbox.images.store import unpack_image
from coding_gym.sandbox.ownership import remove_folder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cache")]

Unpack = Callable[..., Path]
Refused = Callable[[Path], str]


@pytest.fixture
def unpack(tmp_path: Path) -> Unpack:
    """Returns a function that returns the folder of an image's only layer."""

    def run(*entries: Entry) -> Path:
        image = oci_layout(tmp_path / "image", [tar_of(entries)])
        image_of_one_layer = unpack_image(str(image), BACKEND)
        return image_of_one_layer.folder / image_of_one_layer.layers[0]

    return run


def test_entries_keep_modes_times_and_links(unpack: Unpack) -> None:
    root = unpack(
        folder("./a/", mode=0o750),
        entry("./a/run", "#!", mode=0o755),
        symlink("./a/link", "/nowhere/at/all"),
        entry("./a/second", kind=tarfile.LNKTYPE, linkname="./a/run"),
        entry("/absolute//name", "inside"),
        entry(os.fsdecode(b"latin-\xe9"), "3"),
    )
    facts = (root / "a/run").lstat()
    assert (stat.S_IMODE(facts.st_mode), facts.st_mtime, facts.st_nlink) == (0o755, 1e9, 2)
    assert (root / "a/link").readlink() == Path("/nowhere/at/all")
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o750
    assert (root / "absolute/name").read_text() == "inside"
    assert Path(os.fsdecode(os.fsencode(root) + b"/latin-\xe9")).read_text() == "3"
    assert {path.lstat().st_uid for path in root.rglob("*")} == {BACKEND.owner()[0]}


def test_setuid_bits_attributes_and_devices_of_layers_are_dropped(unpack: Unpack) -> None:
    file = entry("file", "x")
    file[0].pax_headers = {
        "SCHILY.xattr.user.overlay.opaque": "y",
        "SCHILY.xattr.security.capability": "\x01",
    }
    root = unpack(
        folder("none", mode=0), entry("none/inner", "x", mode=0), entry("su", "x", mode=0o6755),
        entry("null", kind=tarfile.CHRTYPE, devmajor=1, devminor=3), file,
    )  # fmt: skip
    modes = [stat.S_IMODE((root / path).stat().st_mode) for path in ("none", "none/inner", "su")]
    assert modes == [0o700, 0o600, 0o755]
    assert not (root / "null").exists()
    assert os.listxattr(root / "file") == []


def test_whiteouts_are_converted_for_an_overlay(unpack: Unpack) -> None:
    root = unpack(
        folder("a"), entry("a/.wh.gone"), folder("b"), entry("b/.wh..wh..opq"), entry("b/kept", ""),
        entry("c/.wh.below"), entry(".wh.new"), entry("new", "x"), entry(".wh.d"), folder("d"),
        entry(".wh..wh.plnk/book", "keeping of aufs"),
    )  # fmt: skip
    for name in ("a/gone", "c/below"):
        facts = (root / name).lstat()
        assert (stat.S_ISCHR(facts.st_mode), facts.st_rdev) == (True, 0)
    for name in ("b", "d"):
        assert os.getxattr(root / name, "user.overlay.opaque") == b"y"
    names = sorted(path.name for path in root.rglob("*"))
    assert names == ["a", "b", "below", "c", "d", "gone", "kept", "new"]
    assert (root / "a").stat().st_mtime == 1e9


def test_whiteouts_in_deep_folders_are_converted(unpack: Unpack) -> None:
    root = unpack(entry("d/" * 1200 + ".wh.gone"))  # more than Python's limit on recursion
    assert stat.S_ISCHR((root / ("d/" * 1200) / "gone").lstat().st_mode)
    remove_folder(root / "d")  # `shutil.rmtree` would fail


_LINK = symlink("link", "../outside")
_HOST_FILE = "../../../../../../../../etc/passwd"
# Layers by their defect.
_HOSTILE: dict[str, bytes] = {
    **{
        f"up by {name}": tar_of([entry(name, "x")])
        for name in ("../outside/new", "a/../../outside/new", "..")
    },
    **{
        f"through {to}": tar_of([folder("in"), symlink("link", to), entry("link/new", "x")])
        for to in ("../outside", "/", "/opt/layer")
    },
    **{
        f"a hard link to {target}": tar_of(
            [_LINK, entry("hard", kind=tarfile.LNKTYPE, linkname=target)]
        )
        for target in (_HOST_FILE, "/etc/passwd", "link/secret", "missing")
    },
    **{f"removal {name}": tar_of([entry(name)]) for name in (".wh.", ".wh..", "a/.wh...")},
    "a long name": tar_of([entry("n" * 300, "x")]),
    "an end in the middle": tar_of([entry("x", bytes(100_000))])[:50_000],
    "no tar": b"no tar at all" * 100,
    "half a compression": gzip.compress(tar_of([entry("x", os.urandom(100_000))]))[:50_000],
}


def test_zstd_is_read_and_layers_are_unpacked_once(tmp_path: Path) -> None:
    layer = tar_of([entry("file", "x")])
    compressed = subprocess.run(["zstd", "-c"], input=layer, capture_output=True, check=True).stdout  # noqa: S607 - anywhere
    first = unpack_image(str(oci_layout(tmp_path / "z", compressed=[compressed])), BACKEND)
    assert (first.folder / first.layers[0] / "file").read_text() == "x"
    second = oci_layout(tmp_path / "two", compressed=[compressed], Env=["A=1"])
    before = (first.folder / first.layers[0]).lstat()
    assert unpack_image(str(second), BACKEND).layers == first.layers
    assert (first.folder / first.layers[0]).lstat() == before


@pytest.mark.parametrize("case", _HOSTILE)
def test_a_hostile_layer_is_refused(tmp_path: Path, refused: Refused, case: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("theirs")
    refused(oci_layout(tmp_path / "image", compressed=[_HOSTILE[case]]))
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]
    assert (tmp_path / "outside/secret").stat().st_nlink == 1


def _sparse(num_bytes: int) -> bytes:
    holes = b"2\n0\n5\n%d\n0\n" % num_bytes
    info, content = entry("GNUSparseFile.0/s", holes.ljust(512, b"\0") + b"there")
    info.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s",
        "GNU.sparse.realsize": str(num_bytes),
    }  # fmt: skip
    return tar_of([(info, content)])


def test_a_layer_above_the_size_limit_is_refused(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MAX_BYTES", 20_000)
    for number, layer in enumerate(
        (tar_of([entry("a", bytes(15_000)), entry("b", bytes(15_000))]), _sparse(1 << 50))
    ):
        refused(oci_layout(tmp_path / str(number), [layer]))


def test_a_full_disk_is_not_an_error_of_the_image(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    image = str(oci_layout(tmp_path / "image", [tar_of([entry("a", bytes(4 << 20))])]))
    filler = small_disk / "filler"
    filler.write_bytes(bytes(2 << 20))
    with pytest.raises(SandboxError):
        unpack_image(image, BACKEND)
    filler.unlink()
    assert len(unpack_image(image, BACKEND).layers) == 1
