"""Checks of images: the root of the file system is that of a container image."""

# The names of the checks say what others say in docstrings.

import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from checks.claims import claim, expect, opened, output
from coding_gym.errors import CodingGymError
from coding_gym.sandbox.protocol import Promise, Sandbox, SandboxBackend

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ENV = ["PATH=/usr/bin:/bin", "OF_THE_IMAGE=yes", "TERM=of-the-image"]


@claim(Promise.OWN_IMAGE)
def an_image_is_the_root_of_its_commands(backend: SandboxBackend) -> None:
    with tempfile.TemporaryDirectory(prefix="coding_gym-check-") as folder:
        path = Path(folder) / "image.tar"
        save_image(path)
        try:
            with opened(backend, {"file": "of the layer"}, image=str(path)) as sandbox:
                _look(sandbox)
                sandbox.write_file("written", b"new")
                expect("a written file", output(sandbox, "echo $(<written)"), "new\n")
        except CodingGymError as error:
            raise AssertionError(f"no image: {error}") from error


def _look(sandbox: Sandbox) -> None:
    expect("a file of the image", output(sandbox, "echo $(</etc/mark)"), "upper\n")
    expect("a removed file", output(sandbox, "[ -e /etc/removed ] || echo none"), "none\n")
    expect("a variable", output(sandbox, "echo $OF_THE_IMAGE"), "yes\n")
    expect("the workspace", output(sandbox, "echo $(<file)"), "of the layer\n")
    expect("the host's programs", output(sandbox, "type -P python3 git || echo none"), "none\n")


def save_image(path: Path) -> None:
    """Writes an image of bash in two layers, as ``docker save`` does."""
    bash = shutil.which("bash") or "/bin/bash"
    listing = subprocess.run(["ldd", bash], capture_output=True, text=True, check=True).stdout  # noqa: S607 - where the linker's tools are
    libraries = re.findall(r"(/[^ ]+) \(", listing)
    files = {name: Path(name).read_bytes() for name in libraries}
    files |= {"/bin/bash": Path(bash).read_bytes(), "/etc/mark": b"lower", "/etc/removed": b"x"}
    layers = [_tar(files), _tar({"/etc/mark": b"upper", "/etc/.wh.removed": b""})]
    digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    config = {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": _ENV, "Cmd": ["/bin/bash"]},
        "rootfs": {"type": "layers", "diff_ids": digests},
    }
    manifest = [
        {
            "Config": "config.json",
            "RepoTags": ["coding-gym-check:latest"],
            "Layers": [f"{index}/layer.tar" for index in range(len(layers))],
        }
    ]
    entries = {f"{index}/layer.tar": layer for index, layer in enumerate(layers)}
    entries |= {"config.json": json.dumps(config).encode()}
    entries |= {"manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(_tar(entries))


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
