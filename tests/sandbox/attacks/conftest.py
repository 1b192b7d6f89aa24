"""The arena in which attacks take place."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from arena import Arena
from image_fixtures import folder, oci_layout, symlink, system, tar_of

from coding_gym.agents.capture import CapturedRequests
from coding_gym.agents.capture_server import CaptureEndpoint
from coding_gym.agents.harness import LAYER
from coding_gym.sandbox import Mount, default_interpreter


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeats the attacks, in nightly tests, in sandboxes with the endpoint of an agent."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "arena" in metafunc.fixturenames and not any(one.args[0] == "arena" for one in marks):
        kinds = ["", pytest.param("harness", marks=pytest.mark.nightly)]
        metafunc.parametrize("arena", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def arena(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arena]:
    """An arena of plain attackers, of an image's root, or of code in a harness's sandbox."""
    kind = getattr(request, "param", "")
    with ExitStack() as stack:
        changes: dict[str, Any] = {}
        if kind == "image root":
            changes = _image_root(tmp_path_factory.mktemp("image"))
        elif kind == "harness":
            endpoint = stack.enter_context(_running_endpoint())
            layer = Mount(source=tmp_path_factory.mktemp("layer"), target=LAYER)
            changes = {"forwards": {8765: endpoint.path}, "mounts": [layer]}
        yield Arena(stack, **changes)


@contextmanager
def _running_endpoint() -> Iterator[CaptureEndpoint]:
    """Yields an endpoint whose event loop runs in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    endpoint = CaptureEndpoint(create_autospec(CapturedRequests, instance=True))
    asyncio.run_coroutine_threadsafe(endpoint.start(), loop).result()
    yield endpoint
    asyncio.run_coroutine_threadsafe(endpoint.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


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
