"""skopeo fetches images; a failed fetch leaves no partial files, and the next fetch works."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from image_fixtures import entry, oci_layout, tar_of
from registries import Registry, running_registry
from sandbox_fixtures import BACKEND

from coding_gym.errors import InvalidArgumentError, MissingDependencyError, SandboxError
from coding_gym.sandbox.images import fetching
from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import image_names
from coding_gym.sandbox.images.store import unpack_image

pytestmark = pytest.mark.slow

LAYERS = (tar_of([entry("low", "1")]), tar_of([entry("high", os.urandom(1 << 20))]))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    with running_registry(folder) as running:
        running.push("owner/made:1", oci_layout(folder / "made", LAYERS, Env=["A=b"]))
        yield running


@pytest.fixture(autouse=True)
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "_NUM_RETRIES", 0)


def layers_of(layout: Path) -> list[str]:
    """Returns the digests of an image's layers."""
    blobs = layout / "blobs" / "sha256"
    [manifest] = json.loads((layout / "index.json").read_text())["manifests"]
    document = json.loads((blobs / manifest["digest"][7:]).read_text())
    return [layer["digest"] for layer in document["layers"]]


def test_a_pulled_image_is_found_without_another_fetch(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{registry.host}/owner/made:1"
    layout = fetch_image(name)
    image = unpack_image(name, BACKEND)
    assert (image.env, len(image.layers)) == ({"A": "b"}, 2)
    assert image_names() == [name]
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "")
        assert fetch_image(name) == layout
        with pytest.raises(MissingDependencyError, match="apt-get install skopeo"):
            fetch_image("other:1")


def test_a_stalled_registry_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "skopeo"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(fetching, "_TIMEOUT_S", 0.2)
    with pytest.raises(SandboxError):
        fetch_image("host/name:1")
    assert image_names() == []


def test_images_share_blobs(registry: Registry, tmp_path: Path) -> None:
    more = tar_of([entry("own", "own")])
    registry.push("owner/third:1", oci_layout(tmp_path / "third", [*LAYERS, more]))
    layouts = [fetch_image(f"{registry.host}/owner/{name}:1") for name in ("made", "third")]
    assert layers_of(layouts[1])[:2] == layers_of(layouts[0])
    assert len({(layout / "blobs").resolve() for layout in layouts}) == 1


def test_a_removal_keeps_the_blobs_of_a_running_fetch(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.push("owner/also:1", oci_layout(tmp_path / "also", LAYERS, Env=["C=d"]))
    first, second = (f"{registry.host}/owner/{name}:1" for name in ("made", "also"))
    fetch_image(first)
    copy = fetching._copy
    with ThreadPoolExecutor(1) as pool:
        removals: list[Future[frozenset[str]]] = []

        def copy_during_a_removal(name: str, target: str) -> None:
            removals.append(pool.submit(fetching.remove_image, first))
            with pytest.raises(TimeoutError):
                removals[0].result(0.2)
            copy(name, target)

        monkeypatch.setattr(fetching, "_copy", copy_during_a_removal)
        layout = fetch_image(second)
        assert removals[0].result(30)  # the configuration of the first image
    assert len(unpack_image(second, BACKEND).layers) == 2
    assert (image_names(), layout.exists()) == ([second], True)


def test_a_blob_that_the_registry_damaged_is_refused(registry: Registry, tmp_path: Path) -> None:
    layers = [*LAYERS, tar_of([entry("more", os.urandom(1000))])]
    registry.push("owner/damaged:1", layout := oci_layout(tmp_path / "damaged", layers))
    place = registry.blob(layers_of(layout)[-1])
    right = place.read_bytes()
    place.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(SandboxError):
        fetch_image(f"{registry.host}/owner/damaged:1")
    assert image_names() == []
    place.write_bytes(right)
    assert len(layers_of(fetch_image(f"{registry.host}/owner/damaged:1"))) == 3


@pytest.mark.parametrize("name", ["{}/owner/none:1", "Upper/Case"])
def test_an_image_that_cannot_be_fetched_is_named(registry: Registry, name: str) -> None:
    with pytest.raises(SandboxError, match=name.format(registry.host)):
        fetch_image(name.format(registry.host))
    for text in ("", "../up:1", "a b", "owner/../x:1", "/etc", "-x", "x:é"):
        with pytest.raises(InvalidArgumentError):
            fetch_image(text)
    assert image_names() == []
