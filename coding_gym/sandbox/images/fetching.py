"""Fetching images by skopeo into OCI layout folders that share their blobs.

``skopeo copy`` renames each complete blob into place, from a temporary file in its destination. The
destination is a folder that is renamed in its turn, so that an interrupted copy leaves complete
blobs, which the next try finds, and a folder that the next try removes.
"""

import re
import shutil
import subprocess
from pathlib import Path

from coding_gym.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    SandboxError,
    last_line,
)
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.sandbox.images.layout import full_name, image_folder, layout_key

_BLOBS = ".blobs"
_NUM_RETRIES = 3
_DAEMON_TIMEOUT_S = 600
_MESSAGE = re.compile(r'msg="(.*)"$')
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?/")


def fetch_image(image: str, *, from_docker: bool = False) -> Path:
    """Returns the layout folder of an image, which is fetched if it is not there.

    Args:
        image: A name as of ``docker pull``: ``python:3.12``, ``ghcr.io/owner/name@sha256:…``.
        from_docker: Whether to take it from the Docker daemon that ``DOCKER_HOST`` names, instead
            of from its registry. Mirrors and credentials of registries are those that skopeo reads,
            from ``registries.conf``, ``skopeo login`` and ``docker login``.

    Raises:
        InvalidArgumentError: It is no name of an image.
        MissingDependencyError: skopeo is not installed.
        SandboxError: skopeo or the daemon failed; says how.
    """
    name = full_name(image)

    def build(folder: Path) -> None:
        # A standard layout, whose blobs are those of all images.
        (folder / "blobs").symlink_to(Path("..", _BLOBS))
        if from_docker:
            saved = folder / "saved.tar"
            _save(name, saved)
            _copy(
                f"docker-archive:{saved}", f"oci:{folder}", "--dest-oci-accept-uncompressed-layers"
            )
            saved.unlink()
        else:
            options = ("--src-tls-verify=false",) if _LOCAL.match(name) else ()
            _copy(f"docker://{name}", f"oci:{folder}", *options)

    try:
        (image_folder() / _BLOBS).mkdir(parents=True, exist_ok=True)
        return FolderCache(image_folder()).get(layout_key(name), build)
    except OSError as error:
        raise SandboxError(f"image {image!r} cannot be fetched: {error}") from error


def write_docker_archive(layout: Path, archive: Path, name: str) -> None:
    """Writes an image as ``docker save`` would, under a name; raises as `fetch_image`."""
    _copy(f"oci:{layout}", f"docker-archive:{archive}:{name}")


def _copy(source: str, target: str, *options: str) -> None:
    program = shutil.which("skopeo")
    if program is None:
        raise MissingDependencyError(
            "skopeo is not installed; run: apt-get install skopeo (or dnf, brew, conda install "
            "-c conda-forge skopeo)"
        )
    command = [program, "copy", "--quiet", f"--retry-times={_NUM_RETRIES}", *options]
    done = subprocess.run(
        [*command, "--", source, target], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        line = last_line(done.stderr.decode("utf-8", "replace"))
        found = _MESSAGE.search(line)
        raise SandboxError(f"skopeo cannot copy {source}: {found[1] if found else line}")


def _save(name: str, archive: Path) -> None:
    """Writes what ``docker save`` writes; skopeo itself speaks to old daemons only."""
    import docker

    try:
        api = docker.from_env(timeout=_DAEMON_TIMEOUT_S).api
        api.inspect_image(name)  # else the daemon answers with an empty archive
        with archive.open("wb") as file:
            file.writelines(api.get_image(name))
    except docker.errors.ImageNotFound as error:
        message = f"the Docker daemon has no image {name!r}; run: docker pull {name}"
        raise InvalidArgumentError(message) from error
    except docker.errors.DockerException as error:
        raise SandboxError(f"cannot take image {name!r} from Docker: {error}") from error
