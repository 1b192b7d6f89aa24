"""One layer's tar becomes a folder with everything that it holds; once, whole or not at all."""

import hashlib
import json
import os
import stat
import tarfile
from pathlib import Path

import pytest
from image_fixtures import (
    LAYERS,
    Get,
    Unpack,
    config_of,
    docker_archive,
    entry,
    folder,
    oci_layout,
    symlink,
)
from sandbox_fixtures import BACKEND

from coding_gym.sandbox.images import ImageStore, image_digest
from coding_gym.sandbox.ownership import remove_folder

pytestmark = pytest.mark.slow


def test_entries_come_out_with_modes_times_and_owner(root: Path, unpack: Unpack) -> None:
    unpack(
        folder("./"),
        folder("./a/", mode=0o750),
        entry("./a/run", "#!", mode=0o755),
        symlink("./a/link", "/nowhere/at/all"),
        entry("./a/twin", kind=tarfile.LNKTYPE, linkname="./a/run"),
    )
    facts = (root / "a/run").lstat()
    assert (stat.S_IMODE(facts.st_mode), facts.st_mtime) == (0o755, 1_000_000_000)
    assert ((facts.st_uid, facts.st_gid), facts.st_nlink) == (BACKEND.owner(), 2)
    assert (root / "a/link").readlink() == Path("/nowhere/at/all")
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o750
    assert {p.lstat().st_mtime for p in root.rglob("*")} == {1_000_000_000}
    assert {p.lstat().st_uid for p in (root, *root.rglob("*"))} == {BACKEND.owner()[0]}


def test_names_of_any_length_and_bytes_come_out(root: Path, unpack: Unpack) -> None:
    long = "/".join(["x" * 120] * 5)
    unpack(entry(long, "1"), entry("grüße", "2"), entry(os.fsdecode(b"latin-\xe9"), "3"))
    assert (root / long).read_text() == "1"
    assert (root / "grüße").read_text() == "2"
    assert (Path(os.fsdecode(os.fsencode(root) + b"/latin-\xe9"))).read_text() == "3"


def test_sparse_files_keep_their_holes(root: Path, unpack: Unpack) -> None:
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "sparse",
        "GNU.sparse.realsize": str(50 << 20),
    }
    map_of_data = b"1\n10485760\n5\n".ljust(512, b"\0")
    info, content = entry("GNUSparseFile.0/sparse", map_of_data + b"there")
    info.pax_headers = headers
    unpack((info, content), entry("next", "after it"))
    facts = (root / "sparse").stat()
    assert (facts.st_size, facts.st_blocks * 512 < 1 << 20) == (50 << 20, True)
    with (root / "sparse").open("rb") as file:
        file.seek(10 << 20)
        assert file.read(6) == b"there\0"
    assert (root / "next").read_text() == "after it"


def test_user_attributes_stay_and_others_are_reported(root: Path, unpack: Unpack) -> None:
    file = entry("file", "x")
    file[0].pax_headers = {
        "SCHILY.xattr.user.note": "kept",
        "SCHILY.xattr.security.capability": "\x01",
        "SCHILY.xattr.user.overlay.redirect": "/outside",
        "SCHILY.xattr.trusted.overlay.opaque": "y",
    }
    skipped = unpack(file)
    assert os.listxattr(root / "file") == ["user.note"]
    assert os.getxattr(root / "file", "user.note") == b"kept"
    assert len(skipped) == 3


def test_whiteouts_become_what_an_overlay_understands(root: Path, unpack: Unpack) -> None:
    unpack(
        folder("a"),
        entry("a/.wh.gone"),
        folder("b"),
        entry("b/.wh..wh..opq"),
        entry("b/kept", "x"),
        entry("c/.wh.below"),
    )
    for name in ("a/gone", "c/below"):
        facts = (root / name).lstat()
        assert (stat.S_ISCHR(facts.st_mode), facts.st_rdev) == (True, 0)
    assert os.getxattr(root / "b", "user.overlay.opaque") == b"y"
    assert sorted(p.name for p in root.rglob("*")) == ["a", "b", "below", "c", "gone", "kept"]


@pytest.mark.parametrize("swap", [False, True])
def test_what_a_layer_removes_and_has_is_new(root: Path, unpack: Unpack, *, swap: bool) -> None:
    entries = [entry(".wh.file"), entry("file", "new"), entry(".wh.d"), entry("d/inner", "new")]
    unpack(*(reversed(entries) if swap else entries))
    assert (root / "file").read_text() == "new"
    assert os.getxattr(root / "d", "user.overlay.opaque") == b"y"
    unpack(entry(".wh.e"), entry("e", "x"), folder("e"))
    unpack(entry("f", "x"), entry(".wh.f"), folder("f"))
    unpack(entry(".wh.g"), entry("g/.wh.below"), entry("g/.wh.h"), entry("g/h/.wh..wh..opq"))
    for name in ("e", "f", "g"):
        assert os.getxattr(root / name, "user.overlay.opaque") == b"y"


def test_the_last_entry_of_a_name_counts(root: Path, unpack: Unpack) -> None:
    unpack(
        entry("file", "first", mode=0o600),
        entry("file", "second", mode=0o755),
        symlink("was-link", "/outside"),
        entry("was-link", "file now"),
        entry("was-file", "x"),
        folder("was-file"),
        entry("was-file/inner", "y"),
    )
    assert (root / "file").read_text() == "second"
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o755
    assert (root / "was-link").is_symlink() is False
    assert (root / "was-file/inner").read_text() == "y"


def test_folders_without_permissions_stay_usable_and_removable(root: Path, unpack: Unpack) -> None:
    unpack(
        folder("none", mode=0), entry("none/file", "x", mode=0), folder("read", mode=0o500),
        entry("read/file", "y", mode=0o400),
    )  # fmt: skip
    modes = [stat.S_IMODE((root / p).stat().st_mode) for p in ("none", "none/file", "read")]
    assert modes == [0o700, 0o600, 0o700]
    remove_folder(root)
    assert not root.exists()


def test_set_user_id_bits_are_removed(root: Path, unpack: Unpack) -> None:
    unpack(entry("su", "x", mode=0o6755), folder("shared", mode=0o6775), folder("tmp", mode=0o1777))
    modes = [stat.S_IMODE((root / name).stat().st_mode) for name in ("su", "shared", "tmp")]
    assert modes == [0o755, 0o775, 0o1777]


OWNER = (os.geteuid(), os.getegid())


def test_layers_are_made_once(tmp_path: Path, get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    first = get(docker_archive(tmp_path / "one.tar", LAYERS))
    monkeypatch.setattr("coding_gym.sandbox.images.store.unpack_layer", None)
    assert get(oci_layout(tmp_path / "two", LAYERS[:1])).layers == first.layers[1:]


def test_a_changed_file_is_read_again(tmp_path: Path, get: Get) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    before = get(path)
    docker_archive(path, LAYERS[1:])
    assert get(path).layers == before.layers[:1]


def test_the_digest_is_that_of_the_configuration(tmp_path: Path, cache: Path) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    config = json.dumps(config_of(LAYERS)).encode()
    wanted = f"sha256:{hashlib.sha256(config).hexdigest()}"
    assert image_digest(str(path)) == wanted
    assert ImageStore(cache).get(str(path), OWNER).digest == wanted
