"""Fetching images by skopeo into OCI layout folders that share their blobs.

``skopeo copy`` renames each complete blob into place, from a temporary file in its destination. The
destination is a folder that is renamed in its turn, so that an interrupted copy leaves complete
blobs, which the next try finds, and a folder that the next try removes.
"""

import re
import shutil
import subprocess
from pathlib import Path

from coding_gym.errors import MissingDependencyError, SandboxError, last_line
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.sandbox.images.layout import full_name, image_folder, layout_key

_BLOBS = ".blobs"
_NUM_RETRIES = 3
_MESSAGE = re.compile(r'msg="(.*)"$')
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?/")


def fetch_image(image: str) -> Path:
    """Returns the layout folder of an image, which is fetched if it is not there.

    Args:
        image: A name as of ``docker pull``: ``python:3.12``, ``ghcr.io/owner/name@sha256:…``.
            Mirrors and credentials of registries are those that skopeo reads, from
            ``registries.conf``, ``skopeo login`` and ``docker login``.

    Raises:
        InvalidArgumentError: It is no name of an image.
        MissingDependencyError: skopeo is not installed.
        SandboxError: skopeo failed; says how.
    """
    name = full_name(image)

    def build(folder: Path) -> None:
        # A standard layout, whose blobs are those of all images.
        (folder / "blobs").symlink_to(Path("..", _BLOBS))
        _copy(name, folder)

    try:
        (image_folder() / _BLOBS).mkdir(parents=True, exist_ok=True)
        return FolderCache(image_folder()).get(layout_key(name), build)
    except OSError as error:
        raise SandboxError(f"image {image!r} cannot be fetched: {error}") from error


def _copy(name: str, layout: Path) -> None:
    program = shutil.which("skopeo")
    if program is None:
        raise MissingDependencyError(
            "skopeo is not installed; run: apt-get install skopeo (or dnf, brew, conda install "
            "-c conda-forge skopeo)"
        )
    command = [program, "copy", "--quiet", f"--retry-times={_NUM_RETRIES}"]
    if _LOCAL.match(name):
        command.append("--src-tls-verify=false")
    done = subprocess.run(
        [*command, "--", f"docker://{name}", f"oci:{layout}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        line = last_line(done.stderr.decode("utf-8", "replace"))
        message = _MESSAGE.search(line)
        raise SandboxError(f"skopeo cannot copy {name}: {message[1] if message else line}")
