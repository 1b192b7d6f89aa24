"""OCI layout folders: lookup by name, refusals, and users of images."""

import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from image_fixtures import (
    digest,
    entry,
    folder,
    oci_blobs,
    oci_files,
    oci_layout,
    symlink,
    tar_of,
    write_files,
)
from sandbox_fixtures import BACKEND

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.layout import (
    find_image,
    find_user,
    image_folder,
    image_names,
    read_manifest,
)

Refused = Callable[[Path], str]
LAYERS = (tar_of([entry("low", "1")]), tar_of([entry("high", "up here")]))
ETC = {"passwd": b"root:x:0:0:::\nme:x:7:8:::\n", "group": b"wheel:x:10:\n"}


def test_a_layout_has_layers_and_settings(tmp_path: Path) -> None:
    place = oci_layout(tmp_path / "image", LAYERS, Env=["PATH=/bin", "A=b=c"], User="me")
    manifest = read_manifest(place)
    assert manifest.layers == tuple(digest(gzip.compress(one, 1, mtime=0)) for one in LAYERS)
    assert (manifest.env, manifest.user) == ({"PATH": "/bin", "A": "b=c"}, "me")
    assert BACKEND.image_id(str(place)) == manifest.digest


def test_layouts_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    place = oci_layout(image_folder() / "owner%2Fprogram%3Alatest", LAYERS)
    assert find_image("owner/program") == find_image("owner/program:latest") == place
    others = ("owner/other:1", "owner/program:2", "../images/owner%2Fprogram%3Alatest")
    for name in (*others, "", "a" * 300, "/" + "a" * 300, "a/" * 3000):
        with pytest.raises(InvalidArgumentError):
            find_image(name)
    write_files(image_folder() / "owner%2Fother%3A1.0a1b2c3d.partial", {"index.json": b"{}"})
    assert image_names() == ["owner/program:latest"]  # without the rest of a killed fetch
    (tmp_path / "image.tar").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="docker-archive"):
        find_image(str(tmp_path / "image.tar"))
    monkeypatch.chdir(oci_layout(tmp_path / "owner" / "program", LAYERS).parents[1])
    assert find_image("./owner/program") == Path("owner/program")
    oci_layout(tmp_path / "node", LAYERS)
    with pytest.raises(InvalidArgumentError, match="no image 'node'"):
        find_image("node")


@pytest.mark.parametrize("changed", ["config", "layer", "manifest"])
def test_a_wrong_digest_is_refused(tmp_path: Path, refused: Refused, changed: str) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    inner = json.loads(blobs[manifest["digest"]])
    name = {
        "config": inner["config"]["digest"],
        "layer": inner["layers"][0]["digest"],
        "manifest": manifest["digest"],
    }[changed]
    write_files(tmp_path / "image", oci_files(blobs | {name: blobs[name] + b" "}, manifest))
    assert name[7:] in refused(tmp_path / "image")


_INDEX_TEXTS = (b"", b"[]", b"{}", b"[" * 100_000, b'{"manifests": 3}', b"\xff")
_SETTINGS = ({"Env": ["A=\ud800"]}, {"Env": ["A=b\0"]}, {"User": "\ud800"})


def test_malformed_documents_are_refused(tmp_path: Path, refused: Refused) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    for number, named in enumerate(("md5:" + "0" * 32, "sha256:../../etc/passwd", 7, None)):
        files = oci_files(blobs, manifest | {"digest": named})
        refused(write_files(tmp_path / f"digest{number}", files))
    inner = json.loads(blobs[manifest["digest"]]) | {"layers": [{"digest": 5}]}
    document = json.dumps(inner).encode()
    files = oci_files(blobs | {digest(document): document}, {"digest": digest(document)})
    refused(write_files(tmp_path / "layer", files))
    for number, text in enumerate(_INDEX_TEXTS):
        refused(write_files(tmp_path / f"index{number}", {"index.json": text}))
    for number, facts in enumerate(_SETTINGS):
        refused(oci_layout(tmp_path / f"settings{number}", LAYERS, **facts))


def test_several_or_foreign_images_are_refused(tmp_path: Path, refused: Refused) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    write_files(tmp_path / "two", oci_files(blobs, manifest, manifest))
    assert "skopeo copy" in refused(tmp_path / "two")
    inner = json.dumps({"manifests": [manifest]}).encode()
    entry_of = {"digest": digest(inner), "size": len(inner)}
    write_files(tmp_path / "nested", oci_files(blobs | {digest(inner): inner}, entry_of))
    assert "skopeo copy" in refused(tmp_path / "nested")
    alien = json.loads(blobs[json.loads(blobs[manifest["digest"]])["config"]["digest"]])
    config = json.dumps(alien | {"architecture": "s390x"}).encode()
    document = json.dumps({"config": {"digest": digest(config)}, "layers": []}).encode()
    made = {digest(config): config, digest(document): document}
    write_files(tmp_path / "alien", oci_files(made, {"digest": digest(document)}))
    assert "s390x" in refused(tmp_path / "alien")


def test_the_user_is_looked_up_in_the_image() -> None:
    for wanted, user in {
        "": (0, 0, "root"),
        "me": (7, 8, "me"),
        "7": (7, 8, "me"),
        "me:50": (7, 50, "me"),
        "me:wheel": (7, 10, "me"),
        "4000:5": (4000, 5, "4000"),
    }.items():
        result = find_user(wanted, ETC.__getitem__)
        assert (result.uid, result.gid, result.name) == user
    for unknown in ("nobody-here", "me:nothing", "4294967295", "-1", "9" * 30):
        with pytest.raises(InvalidArgumentError, match=unknown):
            find_user(unknown, ETC.__getitem__)


@pytest.mark.parametrize(
    "above",
    [
        [entry(".wh.etc")],
        [folder("etc"), entry("etc/.wh.passwd")],
        [folder("etc"), entry("etc/.wh..wh..opq")],
        [symlink("etc", "/etc")],
        [folder("etc"), symlink("etc/passwd", "/etc/passwd")],
    ],
    ids=["removed folder", "removed", "opaque", "linked folder", "linked file"],
)
@pytest.mark.slow
def test_users_come_only_from_the_united_layers(
    tmp_path: Path, refused: Refused, above: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    below = tar_of([folder("etc"), entry("etc/passwd", ETC["passwd"])])
    host_user = Path("/etc/passwd").read_text().splitlines()[1].split(":")[0]
    for user in ("me", host_user):
        image = oci_layout(tmp_path / user, [below, tar_of(above)], User=user)
        assert repr(user) in refused(image)
