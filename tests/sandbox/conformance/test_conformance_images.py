"""The root of the file system is that of a container image."""

from pathlib import Path

import pytest
from image_fixtures import entry, folder, oci_layout, system, tar_of
from sandbox_fixtures import opened, output

from coding_gym.errors import CodingGymError
from coding_gym.sandbox.protocol import Promise, SandboxBackend

_ENV = ["PATH=/usr/bin:/bin", "OF_THE_IMAGE=yes", "TERM=of-the-image"]
_LAYERS = (
    [*system(), entry("etc/mark", "lower"), entry("etc/removed", "x")],
    [folder("etc"), entry("etc/mark", "upper"), entry("etc/.wh.removed")],
)


@pytest.mark.promise(Promise.OWN_IMAGE)
def test_an_image_is_the_root_of_its_commands(backend: SandboxBackend, tmp_path: Path) -> None:
    if backend.name == "docker":
        pytest.skip("it runs images of its daemon")
    image = oci_layout(tmp_path / "image", [*map(tar_of, _LAYERS)], Env=_ENV)
    try:
        with opened(backend, {"file": "of the layer"}, image=str(image)) as sandbox:
            assert output(sandbox, "echo $(</etc/mark)") == "upper\n"
            assert output(sandbox, "[ -e /etc/removed ] || echo none") == "none\n"
            assert output(sandbox, "echo $OF_THE_IMAGE") == "yes\n"
            assert output(sandbox, "echo $(<file)") == "of the layer\n"
            assert output(sandbox, "type -P python3 git || echo none") == "none\n"
            sandbox.write_file("written", b"new")
            assert output(sandbox, "echo $(<written)") == "new\n"
    except CodingGymError as error:
        raise AssertionError(f"no image: {error}") from error
