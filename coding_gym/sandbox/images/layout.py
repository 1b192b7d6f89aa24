"""Finds and reads OCI layout folders, the format of all images on disk.

The format is that of https://github.com/opencontainers/image-spec (``image-layout.md``,
``manifest.md``, ``config.md``), with exactly one image, as ``skopeo copy`` writes it.
"""

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from platformdirs import user_data_path

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.run_arguments import check_env

# Names of architectures in `uname` and in OCI documents.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
ARCHITECTURE = _ARCHITECTURES.get(platform.machine(), platform.machine())
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_NAME = re.compile(r"\w[\w.:@/-]*")
# Errors of reading a document with values of wrong types.
_MALFORMED = (KeyError, TypeError, AttributeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The layers of an image, and the part of its configuration that a sandbox needs.

    Attributes:
        digest: Of the configuration, ``sha256:…``: the image's id.
        layers: Digests of the layers, the lowest first.
        env: Environment variables.
        user: ``name``, ``uid``, ``name:group`` …, unparsed; "" for root.
    """

    digest: str
    layers: tuple[str, ...]
    env: Mapping[str, str]
    user: str


def image_folder() -> Path:
    """Returns the folder in which images are found by name."""
    return user_data_path("coding_gym") / "images"


def image_names() -> list[str]:
    """Returns the names of the images in `image_folder`."""
    return sorted(unquote(index.parent.name) for index in image_folder().glob("*/index.json"))


def full_name(image: str) -> str:
    """Returns an image's name with its tag, which is ``latest`` where it has none.

    Raises:
        InvalidArgumentError: It is no name.
    """
    if not _NAME.fullmatch(image) or not image.isascii() or ".." in PurePosixPath(image).parts:
        raise InvalidArgumentError(
            f"the name of an image must be [HOST/]NAME[:TAG] in lower case, got {image!r}"
        )
    has_tag = ":" in image.rpartition("/")[2] or "@" in image
    return image if has_tag else f"{image}:latest"


def layout_key(name: str) -> str:
    """Returns the name of an image's folder in `image_folder`; skopeo takes no colon there."""
    return quote(name, safe="")


def find_image(image: str) -> Path:
    """Returns the layout folder of an image.

    Args:
        image: The path of a layout folder, or the name of an image in `image_folder`.

    Raises:
        InvalidArgumentError: No layout folder or image has this path or name.
    """
    path = Path(image).expanduser()
    if (path / "index.json").is_file():
        return path
    if path.is_file():
        raise InvalidArgumentError(
            f"image {image!r} is a file, and images are OCI layout folders; run: skopeo copy "
            f"docker-archive:{image} oci:FOLDER (or oci-archive:{image})"
        )
    is_name = _NAME.fullmatch(image) is not None
    if is_name and (path := image_folder() / layout_key(full_name(image))).is_dir():
        return path
    raise InvalidArgumentError(
        f"no image {image!r}: there is no such layout folder, and no such name in "
        f"{image_folder()}; run: coding-gym images pull --image {image if is_name else 'NAME'}"
    )


def image_digest(image: str) -> str:
    """Returns an image's id; raises InvalidArgumentError as `find_image` and `read_manifest`."""
    return read_manifest(find_image(image)).digest


def read_manifest(layout: Path) -> Manifest:
    """Returns the configuration and layers of the image in a layout folder.

    Raises:
        InvalidArgumentError: It is malformed, a digest is wrong, it is for another kind of machine,
            or there is not exactly one image.
    """
    try:
        index = json.loads((layout / "index.json").read_bytes())
        if len(index["manifests"]) != 1 or "manifests" in (
            document := _document(layout, index["manifests"][0]["digest"])
        ):
            raise InvalidArgumentError(
                f"{layout} must hold one image for one platform; copy the one that is wanted: "
                f"skopeo copy oci:{layout} oci:FOLDER (oci:{layout}:NAME where it has names)"
            )
        return _manifest(layout, document)
    except _MALFORMED as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"{layout} is malformed: {error!r}") from error
    except OSError as error:
        raise InvalidArgumentError(f"{layout} is an incomplete OCI layout: {error}") from error


def blob_path(layout: Path, digest: str) -> Path:
    """Returns the file of a blob, whose digest is verified.

    Raises:
        InvalidArgumentError: The digest is malformed, or the file has another one.
        OSError: There is no such file.
    """
    if not _DIGEST.fullmatch(digest):
        raise InvalidArgumentError(f"{layout}: {digest!r} is not a sha256 digest")
    path = (layout / "blobs" / digest.replace(":", "/")).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with path.open("rb") as file:
        if f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" != digest:
            raise InvalidArgumentError(
                f"{path} does not match the digest in its name; remove it and {layout}, and pull "
                "the image again"
            )
    return path


def _manifest(layout: Path, document: Any) -> Manifest:
    digest = document["config"]["digest"]
    config = _document(layout, digest)
    system, architecture = config.get("os", "linux"), config.get("architecture")
    if (system, architecture) not in {("linux", ARCHITECTURE), ("linux", None)}:
        raise InvalidArgumentError(
            f"{layout} is for {system}/{architecture}, and this machine runs linux/{ARCHITECTURE}"
        )
    settings = config.get("config") or {}
    variables = [pair.partition("=") for pair in settings.get("Env") or ()]
    env = {name: value for name, _, value in variables if name}
    check_env(env)
    return Manifest(
        digest=digest,
        layers=tuple(layer["digest"] for layer in document["layers"]),
        env=env,
        user=str(settings.get("User") or ""),
    )


def _document(layout: Path, digest: str) -> Any:
    return json.loads(blob_path(layout, digest).read_bytes())
