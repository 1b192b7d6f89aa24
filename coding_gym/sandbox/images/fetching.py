"""Fetches images by skopeo into OCI layout folders that share their blobs.

``skopeo copy`` renames complete blobs into place, and this module renames the complete layout. An
interrupted copy leaves complete blobs, which the next attempt uses, and a partial folder, which the
next attempt removes.
"""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from coding_gym.errors import MissingDependencyError, SandboxError
from coding_gym.program_output import last_line
from coding_gym.sandbox.folder_cache import FolderCache, key_lock
from coding_gym.sandbox.host_program import run_program
from coding_gym.sandbox.images.layout import full_name, image_folder, layout_key

_BLOBS = ".blobs"
_NUM_RETRIES = 3
_TIMEOUT_S = 3600.0
_MESSAGE = re.compile(r'msg="(.*)"$')
_DIGEST = re.compile("sha256:([0-9a-f]{64})")
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?/")  # registries without TLS


def fetch_image(image: str) -> Path:
    """Returns the layout folder of an image; fetches a missing image.

    Args:
        image: A name as for ``docker pull``: ``python:3.12``, ``ghcr.io/owner/name@sha256:…``.
            Mirrors and credentials of registries are those that skopeo reads, from
            ``registries.conf``, ``skopeo login`` and ``docker login``.

    Raises:
        InvalidArgumentError: ``image`` is not the name of an image.
        MissingDependencyError: skopeo is not installed.
        SandboxError: skopeo failed; the message contains its reason.
    """
    name = full_name(image)

    def build(folder: Path) -> None:
        (folder / "blobs").symlink_to(Path("..", _BLOBS))  # shared by all images
        _copy(name, f"oci:{folder}")

    cache, key = FolderCache(image_folder()), layout_key(name)
    try:
        if cache.path(key).is_dir():  # another process may fetch other images for an hour
            return cache.path(key)
        with _locked_blobs():
            return cache.get(key, build)
    except OSError as error:
        raise SandboxError(f"image {image!r} cannot be fetched: {error}") from error


def remove_image(image: str) -> frozenset[str]:
    """Removes an image, and all blobs that no other image uses; waits for a running fetch.

    The removed blobs include blobs of incomplete fetches.

    Returns:
        The digests of the removed blobs.

    Raises:
        OSError: A file cannot be removed.
    """
    folder = image_folder()
    with _locked_blobs():
        FolderCache(folder).remove(layout_key(full_name(image)))
        blobs = {path.name for path in folder.glob(f"{_BLOBS}/sha256/*")}
        indexes = folder.glob("*/index.json")
        unused_digests = frozenset(blobs.difference(*(_digests(index.parent) for index in indexes)))
        for digest in unused_digests:
            (folder / _BLOBS / "sha256" / digest).unlink()
    return frozenset(f"sha256:{digest}" for digest in unused_digests)


def _locked_blobs() -> FileLock:
    """Returns the lock on the blobs of all images; one process at a time fetches or removes."""
    (image_folder() / _BLOBS).mkdir(parents=True, exist_ok=True)
    return key_lock(image_folder(), _BLOBS)


def _digests(layout: Path) -> frozenset[str]:
    """Returns the hexadecimal digests in the index and the manifest of a layout."""
    with suppress(FileNotFoundError):
        manifests = frozenset(_DIGEST.findall((layout / "index.json").read_text()))
        texts = ((layout / "blobs" / "sha256" / digest).read_text() for digest in manifests)
        return manifests.union(*map(_DIGEST.findall, texts))
    return frozenset()


def _copy(name: str, target: str) -> None:
    """Copies an image from a registry by skopeo."""
    program = shutil.which("skopeo")
    if program is None:
        raise MissingDependencyError(
            "skopeo is not installed; install skopeo with dnf, brew, or conda (from conda-forge), "
            "or on Debian and Ubuntu run: apt-get install skopeo"
        )
    options = ["--quiet", f"--retry-times={_NUM_RETRIES}"]
    if _LOCAL.match(name):
        options.append("--src-tls-verify=false")
    arguments = [program, "copy", *options, "--", f"docker://{name}", target]
    try:
        result = run_program(arguments, cwd=Path("/"), env=os.environ, timeout_s=_TIMEOUT_S)
    except TimeoutError as error:
        raise SandboxError(f"skopeo cannot copy {name}: {error}") from error
    if result.returncode:
        line = last_line(result.stderr.decode("utf-8", "replace"))
        message = _MESSAGE.search(line)
        raise SandboxError(f"skopeo cannot copy {name}: {message[1] if message else line}")
