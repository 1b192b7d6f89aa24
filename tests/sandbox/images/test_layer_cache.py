"""Each layer is unpacked once, whole or not at all."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from making_images import (
    LAYERS,
    Get,
    config_of,
    docker_archive,
    expect_layers,
    oci_layout,
)

from coding_gym.errors import SandboxError
from coding_gym.sandbox.images import ImageStore

OWNER = (os.geteuid(), os.getegid())


def test_layers_are_shared_by_images_and_not_unpacked_again(
    tmp_path: Path, get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = get(docker_archive(tmp_path / "one.tar", LAYERS))
    monkeypatch.setattr("coding_gym.sandbox.images.store.LayerUnpacker", None)
    assert get(oci_layout(tmp_path / "two", LAYERS[:1])).layers == first.layers[1:]


def test_each_owner_has_layers_of_his_own(tmp_path: Path, cache: Path) -> None:
    path = str(docker_archive(tmp_path / "image.tar", LAYERS))
    store = ImageStore(cache)
    mine = store.get(path, OWNER)
    if os.geteuid() == 0:
        assert not set(mine.layers) & set(store.get(path, (64998, 64998)).layers)
    assert all((cache / name).stat().st_uid == OWNER[0] for name in mine.layers)


def test_a_changed_file_is_read_again(tmp_path: Path, get: Get) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    before = get(path)
    docker_archive(path, LAYERS[1:])
    assert get(path).layers == before.layers[:1]


def test_an_emptied_cache_is_filled_again(tmp_path: Path, get: Get, cache: Path) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    image = get(path)
    (cache / image.layers[0] / "high").unlink()
    (cache / image.layers[0]).rmdir()
    expect_layers(get(path))


def test_a_cache_that_cannot_be_written_is_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    with pytest.raises(SandboxError, match="cannot be unpacked"):
        ImageStore(tmp_path / "file" / "layers").get(str(path), OWNER)


def test_the_digest_is_that_of_the_configuration(tmp_path: Path, cache: Path) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    config = json.dumps(config_of(LAYERS)).encode()
    wanted = f"sha256:{hashlib.sha256(config).hexdigest()}"
    store = ImageStore(cache)
    assert store.digest(str(path)) == wanted
    assert not cache.exists()
    assert store.get(str(path), OWNER).digest == wanted
