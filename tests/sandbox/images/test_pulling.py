"""Images are pulled from a registry without a daemon, and nothing counts before its digest fits."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from image_fixtures import LAYERS, Get, expect_layers, oci_blobs, tar_of
from image_fixtures import entry as member
from registries import Registry, guarded, running_registry

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.images import ImageStore, pull_image

pytestmark = pytest.mark.slow

# Pulls an image; says how far it is after each piece, and waits for an answer.
_SLOWLY = """
import sys
from pathlib import Path
from coding_gym.sandbox.images import pull_image

def show(done, total):
    print(done, total, flush=True)
    sys.stdin.readline()

pull_image(sys.argv[1], folder=Path(sys.argv[2]), on_progress=show)
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        running.push("owner/made:1", *oci_blobs(LAYERS, Env=["PATH=/bin"]))
        yield running


def test_a_pulled_image_is_found_by_its_name(
    registry: Registry, tmp_path: Path, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    name = f"{registry.host}/owner/made:1"
    reported: list[tuple[int, int]] = []
    path = pull_image(name, on_progress=lambda done, total: reported.append((done, total)))
    expect_layers(get(name))
    assert reported[-1][0] == reported[-1][1] > 0
    registry_is_not_asked_again = "http://127.0.0.1:1"
    assert pull_image(name, mirror=registry_is_not_asked_again) == path


def test_a_mirror_stands_in_for_the_registry_of_the_name(
    registry: Registry, tmp_path: Path, get: Get
) -> None:
    path = pull_image("owner/made:1", folder=tmp_path, mirror=registry.url)
    assert path == tmp_path / "owner" / "made:1"
    expect_layers(get(path))


def test_the_machines_variant_of_several_is_taken(
    registry: Registry, tmp_path: Path, get: Get
) -> None:
    blobs, manifest = oci_blobs(LAYERS)
    own = manifest | {"platform": {"os": "linux", "architecture": ""}}
    other = manifest | {"platform": {"os": "linux", "architecture": "s390x"}}
    kind = "application/vnd.oci.image.index.v1+json"
    registry.push("owner/both:inner", blobs, manifest)
    for tag, listed in (("both", [other, own]), ("alien", [other])):
        index = {"schemaVersion": 2, "mediaType": kind, "manifests": listed}
        put = requests.put(
            f"{registry.url}/v2/owner/both/manifests/{tag}",
            json=index,
            headers={"Content-Type": kind},
            timeout=30,
        )
        put.raise_for_status()
    expect_layers(get(pull_image(f"{registry.host}/owner/both:both", folder=tmp_path)))
    with pytest.raises(InvalidArgumentError, match="linux/"):
        pull_image(f"{registry.host}/owner/both:alien", folder=tmp_path)


def test_a_token_is_fetched_where_the_registry_wants_one(
    registry: Registry, tmp_path: Path, get: Get
) -> None:
    with guarded(registry) as url:
        expect_layers(get(pull_image("owner/made:1", folder=tmp_path, mirror=url)))
    with (
        guarded(registry, admits=False) as url,
        pytest.raises(InvalidArgumentError, match="401"),
    ):
        pull_image("owner/made:1", folder=tmp_path / "other", mirror=url)


def test_passwords_go_to_their_own_registry_alone(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    pair = base64.b64encode(b"me:secret").decode()
    seen: list[str | None] = []
    with guarded(registry, seen=seen) as url:
        mirror = url.removeprefix("http://")
        for name, place in (("other", "https://index.docker.io/v1/"), ("own", mirror)):
            config = {"auths": {place: {"auth": pair}}}
            (tmp_path / "config.json").write_text(json.dumps(config))
            pull_image("owner/made:1", folder=tmp_path / name, mirror=url)
    assert seen == [None, f"Basic {pair}"]


def test_a_killed_pull_resumes(registry: Registry, tmp_path: Path) -> None:
    layers = [tar_of([member(f"file{n}", os.urandom(4 << 20))]) for n in range(4)]
    registry.push("owner/large:1", *oci_blobs(layers))
    name, folder = f"{registry.host}/owner/large:1", tmp_path / "images"
    command = [sys.executable, "-c", _SLOWLY, name, str(folder)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        done, total = map(int, process.stdout.readline().split())
        while done < total * 0.4:
            process.stdin.write("\n")
            process.stdin.flush()
            done = int(process.stdout.readline().split()[0])
        process.kill()
    there = sum(file.stat().st_size for file in (folder / ".blobs").iterdir())
    assert there >= done
    reported: list[int] = []
    path = pull_image(name, folder=folder, on_progress=lambda done, _: reported.append(done))
    assert len(ImageStore(tmp_path / "cache").get(str(path), (0, 0)).layers) == 4
    # Whole megabytes come one by one, and blobs that are there come at once.
    assert len(reported) <= ((total - there) >> 20) + 2 * (len(layers) + 2)


def test_a_damaged_layer_is_refused_and_fetched_again(
    registry: Registry, tmp_path: Path, get: Get
) -> None:
    blobs, manifest = oci_blobs([*LAYERS, tar_of([member("more", "more")])])
    registry.push("owner/damaged:1", blobs, manifest)
    digest = list(blobs)[-2]
    place = registry.blob(digest)
    right = place.read_bytes()
    place.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    name = f"{registry.host}/owner/damaged:1"
    with pytest.raises(SandboxError, match=digest):
        pull_image(name, folder=tmp_path)
    assert not (tmp_path / registry.host / "owner").exists()
    place.write_bytes(right)
    assert (
        len(
            ImageStore(tmp_path / "cache")
            .get(str(pull_image(name, folder=tmp_path)), (0, 0))
            .layers
        )
        == 3
    )


def test_images_share_the_layers_that_they_have_in_common(
    registry: Registry, tmp_path: Path
) -> None:
    blobs, manifest = oci_blobs([*LAYERS, tar_of([member("own", "own")])])
    registry.push("owner/third:1", blobs, manifest)
    for name in ("made", "third"):
        pull_image(f"{registry.host}/owner/{name}:1", folder=tmp_path)
    shared = [one for one in (tmp_path / ".blobs").iterdir() if one.stat().st_nlink == 3]
    assert len(shared) == len(LAYERS)


@pytest.mark.parametrize("name", ["", "Upper/Case", "../up:1", "a b", "owner/../x:1", "x:a b"])
def test_what_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        pull_image(name, folder=tmp_path)


def test_unknown_images_and_unreachable_registries_differ(
    registry: Registry, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError, match="owner/none:latest"):
        pull_image(f"{registry.host}/owner/none", folder=tmp_path)
    with pytest.raises(SandboxError, match=r"127\.0\.0\.1:1"):
        pull_image("127.0.0.1:1/owner/made:1", folder=tmp_path)
