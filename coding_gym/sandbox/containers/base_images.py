"""The image that a sandbox is made from: a name that the daemon knows, or a file that it loads."""

import hashlib
import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.containers.engine import Engine
from coding_gym.sandbox.containers.locks import SharedLock
from coding_gym.sandbox.images.content import Content, opened, parse, read_document
from coding_gym.sandbox.images.manifest import Manifest, read_manifest
from coding_gym.sandbox.images.store import find_image

LOADED = "coding-gym-images"
_IN_MEMORY_BYTES = 32 << 20
_lock = SharedLock()


def find_base(engine: Engine, name: str) -> dict[str, Any]:
    """Returns what the daemon says of an image, which it loads now where it has to.

    Args:
        engine: The daemon. It is not told to download anything.
        name: As `SandboxSpec.image`.

    Raises:
        InvalidArgumentError: It is a file that holds no image for this kind of machine.
        SandboxUnavailableError: There is no such image; says how to get it.
        SandboxError: The daemon refused to load it.
    """
    is_path = "/" in name and Path(name.partition("#")[0]).expanduser().exists()
    with engine.errors_as(f"look for the image {name!r}"):
        found = None if is_path else engine.find_image(name)
    if found is not None:
        return found
    try:
        path, reference = find_image(name)
    except InvalidArgumentError as error:
        raise SandboxUnavailableError(
            f"the Docker daemon has no image {name!r}",
            f"run `docker pull {name}`, or name one of `docker images`",
        ) from error
    try:
        with _lock, opened(path) as content, engine.errors_as(f"load the image {name!r}"):
            return _load(engine, content, reference)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"image {name!r} cannot be used: {error}") from error
    except OSError as error:
        raise SandboxError(f"image {name!r} cannot be read: {error}") from error


def _load(engine: Engine, content: Content, reference: str) -> dict[str, Any]:
    manifest = read_manifest(content, reference)
    # Under a name of ours: those in the file may be in use for other images.
    tag = f"{LOADED}:{manifest.config.digest.partition(':')[2][:40]}"
    found = engine.find_image(tag)
    if found is None:
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                _write_archive(tar, content, manifest, tag)
            file.seek(0)
            for line in engine.api.load_image(file):
                if "error" in line:
                    raise SandboxError(f"cannot load an image: {line['error']}")
        found = engine.find_image(tag)
    if found is None:
        raise SandboxError("the image was removed while it was loaded")
    return found


def _write_archive(tar: tarfile.TarFile, content: Content, manifest: Manifest, tag: str) -> None:
    """Writes an image as ``docker save`` would, which every daemon can load."""
    hexadecimal = manifest.config.digest.partition(":")[2]
    _add(tar, f"{hexadecimal}.json", _configuration(content, manifest.config.digest))
    files = []
    for layer in manifest.layers:
        name = f"{layer.diff_id.partition(':')[2]}/layer.tar"
        file = content.open(layer.name)
        if file is None:
            raise InvalidArgumentError(f"its layer {layer.name} is missing")
        with file:
            entry = tarfile.TarInfo(name)
            entry.size = file.seek(0, io.SEEK_END)
            file.seek(0)
            if name not in files:
                tar.addfile(entry, file)
        files.append(name)
    listing = [{"Config": f"{hexadecimal}.json", "RepoTags": [tag], "Layers": files}]
    _add(tar, "manifest.json", json.dumps(listing).encode())


def _configuration(content: Content, digest: str) -> bytes:
    """Returns the bytes of the configuration with this digest, which was found before."""
    kind, _, value = digest.partition(":")
    names = [f"blobs/{kind}/{value}", f"{value}.json"]
    if (file := content.open("manifest.json")) is not None:
        file.close()
        entries = parse(read_document(content, "manifest.json"), "manifest.json")
        names = [entry["Config"] for entry in entries]
    for name in names:
        data = read_document(content, name)
        if hashlib.new(kind, data).hexdigest() == value:
            return data
    raise InvalidArgumentError("its configuration has changed while it was read")


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
