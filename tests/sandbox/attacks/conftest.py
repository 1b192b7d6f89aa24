"""Fixtures: arenas, in which attacks run."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from arena import Arena
from image_fixtures import folder, oci_layout, symlink, system, tar_of

from coding_gym.sandbox import Mount, default_interpreter


@pytest.fixture(scope="session")
def arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arena]:
    """An arena of plain attackers, or of attackers who are root of an image."""
    is_root = getattr(request, "param", "") == "image root"
    changes = _image_root(tmp_path_factory.mktemp("image")) if is_root else {}
    with ExitStack() as stack:
        yield Arena(stack, **changes)


def _image_root(place: Path) -> dict[str, Any]:
    """Returns the fields of a spec whose image has this machine's Python."""
    python = default_interpreter()
    links = [folder("opt"), folder("opt/bin"), symlink("opt/bin/python", str(python.executable))]
    layers = [tar_of(system("true", "sleep")), tar_of(links)]
    shown = {Path("/usr")}
    if not python.prefix.is_relative_to("/usr"):
        shown.add(python.prefix)
    return {
        "image": str(oci_layout(place / "image", layers)),
        "python": None,
        "path": ("/opt/bin", "/bin", "/usr/bin"),
        "mounts": [Mount(source=path, target=str(path)) for path in shown],
    }
