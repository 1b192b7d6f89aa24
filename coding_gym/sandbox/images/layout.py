"""Finds and reads OCI layout folders, the format of images on disk; finds an image's user.

The format is that of https://github.com/opencontainers/image-spec (``image-layout.md``,
``manifest.md``, ``config.md``), with exactly one image, as ``skopeo copy`` writes it.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from platformdirs import user_data_path

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.folder_cache import PARTIAL
from coding_gym.sandbox.inside.fixed import OPAQUE
from coding_gym.sandbox.run_arguments import check_env

# Names of architectures in `uname` and in OCI documents.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ARCHITECTURE = _ARCHITECTURES.get(platform.machine(), platform.machine())
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_NAME = re.compile(r"\w[\w.:@/-]*")
_MAX_ETC_BYTES = 4 << 20  # size limit of a file such as /etc/passwd
# The largest uid: the next number, (uid_t) -1, means "no change".
_MAX_ID = (1 << 32) - 2
# Errors of reading a document that is missing or has values of wrong types.
_READ_ERRORS = (
    *(KeyError, TypeError, AttributeError, ValueError, RecursionError),
    *(FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError),
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The layers of an image, and the part of its configuration that a sandbox needs.

    Attributes:
        digest: The digest of the configuration, ``sha256:…``, which is the image's id.
        layers: Digests of the layers, the lowest first.
        env: Environment variables.
        user: ``name``, ``uid``, ``name:group`` …, unparsed; "" for root.
    """

    digest: str
    layers: tuple[str, ...]
    env: Mapping[str, str]
    user: str


def image_folder() -> Path:
    """Returns the folder of the fetched images."""
    return user_data_path("coding_gym") / "images"


def image_names() -> list[str]:
    """Returns the names of the images in `image_folder`."""
    keys = [index.parent.name for index in image_folder().glob("*/index.json")]
    return sorted(unquote(key) for key in keys if not key.endswith(PARTIAL))


def full_name(image: str) -> str:
    """Returns an image's name with its tag; the tag is ``latest`` if the name has none.

    Raises:
        InvalidArgumentError: ``image`` is not a valid name.
    """
    if not _NAME.fullmatch(image) or not image.isascii() or ".." in PurePosixPath(image).parts:
        raise InvalidArgumentError(f"the name of an image must be [HOST/]NAME[:TAG], got {image!r}")
    has_tag = ":" in image.rpartition("/")[2] or "@" in image
    return image if has_tag else f"{image}:latest"


def layout_key(name: str) -> str:
    """Returns an image's folder name in `image_folder`, without colons, which skopeo refuses."""
    return quote(name, safe="")


def find_image(image: str) -> Path:
    """Returns the layout folder of an image.

    Args:
        image: The path of a layout folder, with a ``/``, or the name of an image in `image_folder`.

    Raises:
        InvalidArgumentError: No layout folder or image has this path or name.
    """
    # `Path.is_file` raises OSError for a path that is too long.
    if "/" in image and os.path.isfile(f"{image}/index.json"):  # noqa: PTH113
        return Path(image)
    if "/" in image and os.path.isfile(image):  # noqa: PTH113
        raise InvalidArgumentError(
            f"image must be a name or an OCI layout folder, got the file {image!r}; convert an OCI "
            f"archive: skopeo copy oci-archive:{image} oci:FOLDER; for a file from docker save: "
            f"skopeo copy docker-archive:{image} oci:FOLDER"
        )
    is_name = _NAME.fullmatch(image) is not None
    if is_name and os.path.isdir(path := image_folder() / layout_key(full_name(image))):  # noqa: PTH112
        return path
    raise InvalidArgumentError(
        f"no image {image!r}: no OCI layout has this path (a path must contain /), and no image "
        f"in {image_folder()} has this name; run: coding-gym images pull --image "
        f"{image if is_name else 'NAME'}"
    )


def read_manifest(layout: Path) -> Manifest:
    """Returns the configuration and layers of the image in a layout folder.

    Raises:
        InvalidArgumentError: The layout is malformed, has a wrong digest, is for another kind of
            machine, or does not hold exactly one image.
    """
    try:
        index = json.loads((layout / "index.json").read_bytes())
        if len(index["manifests"]) != 1 or "manifests" in (
            document := _document(layout, index["manifests"][0]["digest"])
        ):
            raise InvalidArgumentError(
                f"{layout} must hold one image for one platform; copy one image, with :NAME after "
                f"the first path if the images have names: skopeo copy oci:{layout} oci:FOLDER"
            )
        return _manifest(layout, document)
    except InvalidArgumentError:
        raise
    except _READ_ERRORS as error:
        raise InvalidArgumentError(
            f"{layout} is not a complete OCI layout ({error!r}); remove {layout} and pull the image"
        ) from error


def blob_path(layout: Path, digest: str) -> Path:
    """Returns the path of a blob after verifying the digest of its content.

    Raises:
        InvalidArgumentError: The digest is malformed, or differs from the digest of the file.
        OSError: There is no such file.
    """
    if not _DIGEST.fullmatch(digest):
        raise InvalidArgumentError(f"a digest in {layout} must be sha256:…, got {digest!r}")
    path = (layout / "blobs" / digest.replace(":", "/")).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with path.open("rb") as file:
        if f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" != digest:
            raise InvalidArgumentError(
                f"{path} does not match the digest in its name; remove this file and {layout}, "
                "and pull the image again"
            )
    return path


def _manifest(layout: Path, document: Any) -> Manifest:
    digest = document["config"]["digest"]
    config = _document(layout, digest)
    system, architecture = config.get("os", "linux"), config.get("architecture")
    if (system, architecture) not in {("linux", ARCHITECTURE), ("linux", None)}:
        raise InvalidArgumentError(
            f"{layout} must be an image for linux/{ARCHITECTURE}, got {system}/{architecture}"
        )
    settings = config.get("config") or {}
    variables = [pair.partition("=") for pair in settings.get("Env") or ()]
    env = {name: value for name, _, value in variables if name}
    check_env(env)
    return Manifest(
        digest=digest,
        layers=tuple(str(layer["digest"]) for layer in document["layers"]),
        env=env,
        user=str(settings.get("User") or ""),
    )


def _document(layout: Path, digest: str) -> Any:
    return json.loads(blob_path(layout, digest).read_bytes())


@dataclass(frozen=True, slots=True)
class ImageUser:
    """A user of an image.

    Attributes:
        uid: User id in the sandbox.
        gid: Group id in the sandbox.
        name: The user's name in the image; the uid if the image names no such user.
    """

    uid: int
    gid: int
    name: str


def find_user(name_or_id: str, read: Callable[[str], bytes]) -> ImageUser:
    """Returns the user that an image's configuration names.

    Args:
        name_or_id: A name or uid, optionally with ``:group`` or ``:gid``; "" for root.
        read: Returns the content of a named file in the image's ``/etc``; empty if it is missing.

    Raises:
        InvalidArgumentError: The image has no such user or group.
    """
    user, _, group = (name_or_id or "0").partition(":")
    users = [row for row in _rows(read("passwd"), 7) if user in (row[0], row[2])]
    name, _, uid, gid, *_ = users[0] if users else [user, "", user, "0"]
    if group:
        groups = [row[2] for row in _rows(read("group"), 4) if row[0] == group]
        gid = groups[0] if groups else group
    if not (_is_id(uid) and _is_id(gid)):
        raise InvalidArgumentError(
            f"the image's user must be a number or a name in its /etc/passwd and /etc/group, got "
            f"{name_or_id!r}; correct USER in the image"
        )
    return ImageUser(int(uid), int(gid), "root" if int(uid) == 0 else name)


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(_MAX_ID)) and int(text) <= _MAX_ID


def _rows(text: bytes, num_fields: int) -> list[list[str]]:
    lines = text.decode("utf-8", "replace").splitlines()
    rows = [line.split(":") for line in lines if "\0" not in line]
    return [row for row in rows if len(row) >= num_fields]


def read_etc(layers: Sequence[Path], name: str) -> bytes:
    """Returns the content of a file in ``/etc`` of image layers; empty if the file is missing.

    Symbolic links, which can lead to host files, are not followed. The topmost layer comes first.
    No other process may change the layers.
    """
    for layer in layers:
        etc = layer / "etc"
        path = etc / name
        if not os.path.lexists(etc):
            continue
        if etc.is_symlink() or not etc.is_dir():
            return b""
        if os.path.lexists(path):
            if path.is_symlink() or not path.is_file():
                return b""
            with path.open("rb") as file:
                return file.read(_MAX_ETC_BYTES)
        if OPAQUE in os.listxattr(etc):
            return b""
    return b""
