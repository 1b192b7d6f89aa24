"""Images in all the forms that tools write, and in none that they do not; their users."""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from image_fixtures import (
    LAYERS,
    Get,
    Refused,
    digest,
    docker_archive,
    entry,
    expect_layers,
    folder,
    oci_blobs,
    oci_files,
    oci_layout,
    symlink,
    tar_of,
    write_files,
)

from coding_gym.sandbox.images import image_folder
from coding_gym.sandbox.images.manifest import machine_architecture

pytestmark = pytest.mark.slow


def test_docker_archives_give_the_topmost_layer_first(tmp_path: Path, get: Get) -> None:
    facts = {"Env": ["PATH=/bin", "A=b=c"], "WorkingDir": "/testbed", "User": "me"}
    image = get(docker_archive(tmp_path / "image.tar", LAYERS, **facts))
    expect_layers(image)
    assert image.env == {"PATH": "/bin", "A": "b=c"}
    assert (image.workdir, image.user.uid, image.user.gid, image.user.name) == (
        "/testbed", 7, 8, "me",
    )  # fmt: skip


def test_links_in_circles_or_to_the_host_are_no_files(tmp_path: Path, refused: Refused) -> None:
    for target in ("manifest.json", "/etc/passwd", "../../../../etc/passwd"):
        path = tmp_path / "image.tar"
        path.write_bytes(tar_of([symlink("manifest.json", target)]))
        assert "no manifest.json" in refused(path)


def test_links_out_of_a_layout_are_refused(tmp_path: Path, refused: Refused) -> None:
    place = oci_layout(tmp_path / "image", LAYERS)
    blob = max((place / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    blob.rename(tmp_path / "elsewhere")
    for target in (tmp_path / "elsewhere", blob):
        blob.unlink(missing_ok=True)
        blob.symlink_to(target)
        assert blob.name in refused(place)


def test_nested_indexes_give_the_image_for_this_machine(tmp_path: Path, get: Get) -> None:
    blobs, mine = oci_blobs(LAYERS)
    others, theirs = oci_blobs([LAYERS[0]])
    platform = {"os": "linux", "architecture": machine_architecture()}
    kind = "application/vnd.oci.image.index.v1+json"
    inner = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": kind,
            "manifests": [
                theirs | {"platform": {"os": "linux", "architecture": "s390x"}},
                theirs | {"platform": {"os": "windows", "architecture": machine_architecture()}},
                mine | {"platform": platform},
                theirs | {"platform": {"os": "unknown", "architecture": "unknown"}},
            ],
        }
    ).encode()
    outer = {"mediaType": kind, "digest": digest(inner), "size": len(inner)}
    write_files(tmp_path / "image", oci_files(blobs | others | {digest(inner): inner}, outer))
    expect_layers(get(tmp_path / "image"))


def test_an_image_for_another_machine_is_refused(tmp_path: Path, refused: Refused) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    manifest["platform"] = {"os": "linux", "architecture": "s390x"}
    write_files(tmp_path / "image", oci_files(blobs, manifest))
    assert f"--platform linux/{machine_architecture()}" in refused(tmp_path / "image")


def test_indexes_without_end_are_refused(tmp_path: Path, refused: Refused) -> None:
    blobs: dict[str, bytes] = {}
    entry_of: dict[str, Any] = oci_blobs(LAYERS)[1]
    for _ in range(8):
        data = json.dumps({"manifests": [entry_of]}).encode()
        blobs[digest(data)] = data
        entry_of = {"digest": digest(data), "size": len(data)}
    write_files(tmp_path / "image", oci_files(blobs, entry_of))
    assert "nest" in refused(tmp_path / "image")


def test_of_several_images_one_must_be_named(tmp_path: Path, get: Get, refused: Refused) -> None:
    blobs, manifests = {}, []
    for name, layers in (("a:1", LAYERS), ("b:2", LAYERS[1:])):
        more, manifest = oci_blobs(layers)
        blobs |= more
        manifests.append(manifest | {"annotations": {"org.opencontainers.image.ref.name": name}})
    place = tmp_path / "images"
    write_files(place, oci_files(blobs, *manifests))
    assert "a:1, b:2" in refused(place)
    assert "0 of them named 'c'" in refused(f"{place}#c")
    expect_layers(get(f"{place}#a:1"))


def test_images_are_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, get: Get, refused: Refused
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (image_folder() / "owner").mkdir(parents=True)
    docker_archive(image_folder() / "owner" / "program:latest.tar", LAYERS)
    expect_layers(get("owner/program:latest"))
    expect_layers(get("owner/program"))
    assert "owner/other:1" in refused("owner/other:1")
    assert "no image" in refused("../data/coding_gym/images/owner/program:latest")


@pytest.mark.parametrize("what", ["config", "layer", "manifest"])
def test_wrong_digests_are_refused(tmp_path: Path, refused: Refused, what: str) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    inner = json.loads(blobs[manifest["digest"]])
    changed = {
        "config": inner["config"]["digest"],
        "layer": inner["layers"][0]["digest"],
        "manifest": manifest["digest"],
    }[what]
    data = gzip.compress(LAYERS[1]) if what == "layer" else blobs[changed] + b" "
    write_files(tmp_path / "image", oci_files(blobs | {changed: data}, manifest))
    assert "digest" in refused(tmp_path / "image")


def test_a_layer_of_another_diff_id_is_refused(tmp_path: Path, refused: Refused) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    data = path.read_bytes()
    assert data.count(b"up here") == 1
    path.write_bytes(data.replace(b"up here", b"not so."))
    assert "1/layer.tar: its bytes have the digest" in refused(path)


@pytest.mark.parametrize(
    "named", ["md5:" + "0" * 32, "sha256:" + "0" * 63 + "/", "sha256:../../etc/passwd", 7, None]
)
def test_digests_that_are_none_are_refused(tmp_path: Path, refused: Refused, named: Any) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    write_files(tmp_path / "image", oci_files(blobs, manifest | {"digest": named}))
    refused(tmp_path / "image")


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"{}", b"[1]", b"[" * 100_000, b'[{"Config": 3, "Layers": []}]', b"\xff\xfe",
     b'[{"Config": "manifest.json", "Layers": "abc"}]', b'{"manifests": 3}',
     b'[{"Config": "a\\u0000b", "Layers": []}]', b'[{"Config": "\\ud800", "Layers": []}]'],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("name", ["manifest.json", "index.json"])
def test_malformed_documents_are_refused(
    tmp_path: Path, refused: Refused, name: str, document: bytes
) -> None:
    write_files(tmp_path / "image", {name: document})
    refused(tmp_path / "image")


@pytest.mark.parametrize(
    "facts", [{"Env": ["A=\ud800"]}, {"Env": ["A=b\0"]}, {"User": "\ud800"}, {"WorkingDir": "\0"}]
)
def test_odd_settings_are_refused(tmp_path: Path, refused: Refused, facts: dict[str, Any]) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS, **facts)
    assert "its configuration is malformed" in refused(path)


@pytest.mark.parametrize(
    "data", [b"", b"text", b"\x1f\x8b broken", b"\x1f\x8b\x01 broken"], ids=repr
)
def test_files_that_are_no_tar_are_refused(tmp_path: Path, refused: Refused, data: bytes) -> None:
    (tmp_path / "image.tar").write_bytes(data)
    assert "neither a tar nor a folder" in refused(tmp_path / "image.tar")


def test_more_layers_than_an_overlay_takes_are_refused(tmp_path: Path, refused: Refused) -> None:
    layers = [tar_of([entry(str(number), "x")]) for number in range(141)]
    assert "squash" in refused(docker_archive(tmp_path / "image.tar", layers))


@pytest.mark.parametrize(
    ("wanted", "uid", "gid", "name"),
    [
        ("", 0, 0, "root"),
        ("0", 0, 0, "root"),
        ("root", 0, 0, "root"),
        ("me", 7, 8, "me"),
        ("7", 7, 8, "me"),
        ("me:50", 7, 50, "me"),
        ("me:wheel", 7, 10, "me"),
        ("4000", 4000, 0, "4000"),
        ("4000:5", 4000, 5, "4000"),
    ],
)
def test_the_user_is_looked_up_in_the_image(
    tmp_path: Path, get: Get, wanted: str, uid: int, gid: int, name: str
) -> None:
    layers = [LAYERS[0], tar_of([entry("etc/group", "wheel:x:10:\n")])]
    user = get(docker_archive(tmp_path / "image.tar", layers, User=wanted)).user
    assert (user.uid, user.gid, user.name) == (uid, gid, name)


@pytest.mark.parametrize("wanted", ["nobody-here", "me:nothing", "4294967295", "-1", "9" * 30])
def test_an_unknown_user_is_refused(tmp_path: Path, refused: Refused, wanted: str) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS, User=wanted)
    assert repr(wanted) in refused(path)


@pytest.mark.parametrize(
    "above",
    [
        [entry("etc/.wh.passwd")],
        [folder("etc"), entry("etc/.wh..wh..opq")],
        [entry(".wh.etc")],
        [symlink("etc", "/etc")],
        [folder("etc"), symlink("etc/passwd", "/etc/passwd")],
    ],
    ids=["removed", "opaque", "removed folder", "linked folder", "linked file"],
)
def test_users_are_looked_up_in_the_united_image_alone(
    tmp_path: Path, refused: Refused, above: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    path = docker_archive(tmp_path / "image.tar", [LAYERS[0], tar_of(above)], User="me")
    assert "whom its /etc/passwd does not have" in refused(path)
    wanted = Path("/etc/passwd").read_text().splitlines()[1].split(":")[0]
    path = docker_archive(tmp_path / "image.tar", [LAYERS[0], tar_of(above)], User=wanted)
    assert "whom its /etc/passwd does not have" in refused(path)
