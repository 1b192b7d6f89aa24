"""Images of a few programs, and a private image store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from image_fixtures import Entry, MakeImage, entry, folder, oci_layout, system, tar_of
from sandbox_fixtures import BACKEND, make_sandbox

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Sandbox
from coding_gym.sandbox.images.store import layer_folder, unpack_image


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return layer_folder()


@pytest.fixture
def refused(cache: Path) -> Callable[[Path], str]:
    """Returns a function that returns the one-line error; no partial folder may remain."""

    def refuse(image: Path) -> str:
        with pytest.raises(InvalidArgumentError) as caught:
            unpack_image(str(image), BACKEND)
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
        path = tmp_path / f"image{next(count)}"
        return str(oci_layout(path, [base_layer, *map(tar_of, layers)], **facts))

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
