"""Folders to unpack into, stores, and images of a few programs."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from image_fixtures import (
    Entry,
    Get,
    MakeImage,
    Refused,
    RefusedLayer,
    Unpack,
    docker_archive,
    entry,
    folder,
    system,
    tar_of,
)
from sandbox_fixtures import BACKEND, make_sandbox

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Sandbox
from coding_gym.sandbox.images import ImageStore, layer_unpacking

OWNER = (os.geteuid(), os.getegid())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("theirs")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def unpack(root: Path, monkeypatch: pytest.MonkeyPatch) -> Unpack:
    def run(*entries: Entry, data: bytes | None = None, **limits: int) -> list[str]:
        for name, value in limits.items():
            monkeypatch.setattr(layer_unpacking, name, value)
        layer = io.BytesIO(tar_of(entries) if data is None else data)
        return layer_unpacking.unpack_layer(layer, root, BACKEND.owner())

    return run


@pytest.fixture
def refused_layer(root: Path, unpack: Unpack) -> RefusedLayer:
    """Returns a function that gives the reason, having seen that nothing outside was touched."""

    def refuse(*entries: Entry, data: bytes | None = None, **limits: int) -> str:
        with pytest.raises(InvalidArgumentError) as caught:
            unpack(*entries, data=data, **limits)
        outside = root.parent / "outside"
        assert sorted(p.name for p in root.parent.iterdir()) == ["outside", "root"]
        assert [p.name for p in outside.iterdir()] == ["secret"]
        assert (outside / "secret").read_text() == "theirs"
        return str(caught.value)

    return refuse


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "layers"


@pytest.fixture
def get(cache: Path) -> Get:
    store = ImageStore(cache)
    return lambda image: store.get(str(image), OWNER)


@pytest.fixture
def refused(get: Get, cache: Path) -> Refused:
    """Returns a function that gives the one-line reason; nothing half-made may be left."""

    def refuse(image: Path | str) -> str:
        with pytest.raises(InvalidArgumentError) as caught:
            get(image)
        assert "\n" not in str(caught.value)
        assert list(cache.glob("*.partial")) == []
        return str(caught.value)

    return refuse


@pytest.fixture(scope="session")
def base_layer() -> bytes:
    return tar_of(system())


@pytest.fixture
def make_image(tmp_path: Path, base_layer: bytes) -> MakeImage:
    count = iter(range(100))

    def make(*layers: list[Entry], **facts: object) -> str:
        path = tmp_path / f"image{next(count)}.tar"
        return str(docker_archive(path, [base_layer, *map(tar_of, layers)], **facts))

    return make


@pytest.fixture
def image(make_image: MakeImage) -> str:
    """An image of three layers: the second adds, the third removes."""
    return make_image(
        [
            folder("data"), entry("data/kept", "kept"), entry("data/gone", "gone"),
            folder("data/full"), entry("data/full/old", "old"), entry("data/changed", "before"),
            folder("bin-d"), entry("bin-d/tool", "#!/bin/bash\necho tool\n", mode=0o755),
        ],
        [
            folder("data"), entry("data/.wh.gone"), folder("data/full"),
            entry("data/full/.wh..wh..opq"), entry("data/full/new", "new"),
            entry("data/changed", "after"),
        ],
        Env=["PATH=/bin-d:/bin", "GREETING=hello there", "TZ=Asia/Tokyo"],
    )  # fmt: skip


@pytest.fixture
def sandbox(image: str) -> Iterator[Sandbox]:
    with make_sandbox(image=image) as opened:
        yield opened
