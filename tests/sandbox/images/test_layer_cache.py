"""Each layer is unpacked once, whole or not at all."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from making_images import (
    LAYERS,
    config_of,
    docker_archive,
    entry,
    oci_layout,
    tar_of,
)

from coding_gym.errors import SandboxError
from coding_gym.sandbox.images import Image, ImageStore

Get = Callable[[Path | str], Image]
Refused = Callable[[Path | str], str]
OWNER = (os.geteuid(), os.getegid())


def contents(image: Image) -> list[list[str]]:
    folders = [image.folder / name for name in image.layers]
    return [sorted(p.name for p in layer.rglob("*") if p.is_file()) for layer in folders]


def expect_layers(image: Image) -> None:
    assert contents(image) == [["high"], ["low", "passwd"]]


def test_a_hostile_layer_leaves_nothing(tmp_path: Path, refused: Refused, cache: Path) -> None:
    bad = tar_of([entry("fine", "x"), entry("../escape", "y")])
    assert "leads out" in refused(docker_archive(tmp_path / "image.tar", [LAYERS[0], bad]))
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


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


_UNPACK = """
import sys
from pathlib import Path
from coding_gym.sandbox.images import ImageStore
from coding_gym.sandbox.images import store
if sys.argv[3] == "slow":
    class Waits(store.LayerUnpacker):
        def unpack(self, stream):
            done = super().unpack(stream)
            print("unpacked", flush=True)
            sys.stdin.read()
            return done
    store.LayerUnpacker = Waits
ImageStore(Path(sys.argv[1])).get(sys.argv[2], ({}, {}))
print("done", flush=True)
""".format(*OWNER)


def _start(cache: Path, image: Path, how: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _UNPACK, str(cache), str(image), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_unpacking_leaves_nothing_that_is_taken_for_whole(
    tmp_path: Path, get: Get, cache: Path
) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS[:1])
    with _start(cache, path, "slow") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "unpacked\n"
        process.send_signal(signal.SIGKILL)
    assert [p.suffix for p in cache.iterdir() if p.is_dir()] == [".partial"]
    assert contents(get(path)) == [["low", "passwd"]]
    assert list(cache.glob("*.partial")) == []


def test_two_processes_unpack_once(tmp_path: Path, cache: Path) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS[:1])
    with _start(cache, path, "slow") as first, _start(cache, path, "slow") as second:
        assert first.stdout is not None
        assert second.stdout is not None
        said = {first.stdout.readline, second.stdout.readline}
        for process in (first, second):
            assert process.stdin is not None
            process.stdin.close()
        lines = [read() for read in said] + [first.stdout.read(), second.stdout.read()]
    assert (first.returncode, second.returncode) == (0, 0)
    assert "".join(lines).count("unpacked") == 1


def test_the_digest_is_that_of_the_configuration(tmp_path: Path, cache: Path) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS)
    config = json.dumps(config_of(LAYERS)).encode()
    wanted = f"sha256:{hashlib.sha256(config).hexdigest()}"
    store = ImageStore(cache)
    assert store.digest(str(path)) == wanted
    assert not cache.exists()
    assert store.get(str(path), OWNER).digest == wanted
