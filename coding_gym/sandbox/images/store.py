"""Unpacks images: each layer once per owning user, shared by all images that have the layer.

Whiteout files mark removed files (https://github.com/opencontainers/image-spec,
``layer.md``): an empty file ``.wh.NAME`` removes NAME of lower layers, and an opaque whiteout,
``.wh..wh..opq``, removes all entries of lower layers in its folder. An overlay uses a character
device 0:0 and an extended attribute in place of these files.
"""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.program_output import DISK_FULL, last_line
from coding_gym.sandbox.folder_cache import BUILT, FolderCache, build_sandbox, content_key
from coding_gym.sandbox.images.fetching import remove_image
from coding_gym.sandbox.images.layout import (
    ImageUser,
    blob_path,
    find_image,
    find_user,
    read_etc,
    read_manifest,
)
from coding_gym.sandbox.inside.fixed import DATE_S, NO_PROGRAM_CODE, OPAQUE
from coding_gym.sandbox.layer_union import united
from coding_gym.sandbox.ownership import cache_folder, remove_folder
from coding_gym.sandbox.protocol import SandboxBackend
from coding_gym.sandbox.spec import Mount, SandboxLimits, SandboxSpec

# Part of every key; increase it whenever the result of unpacking changes.
_SCHEMA = 3
# The number of keys that fit on one page of mount options.
_MAX_LAYERS = 140
_MAX_BYTES = 64 << 30
_TIMEOUT_S = 3600.0
_LAYER = "/opt/layer"  # in sandboxes
_WHITEOUT, _OPAQUE, _RESERVED_PREFIX = ".wh.", ".wh..wh..opq", ".wh..wh."

_UNPACK = Path(__file__).with_name("unpack.sh").read_text(encoding="utf-8")
_DISK_FULL = (*map(os.strerror, DISK_FULL), "Wrote only")  # "Wrote only" comes from tar
_UNSUPPORTED_ERRNOS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An unpacked image.

    Attributes:
        folder: The folder that has the layers' folders.
        layers: Names of the layers' folders in ``folder``, the topmost first.
        env: Environment variables of its commands.
        user: The user of its commands.
    """

    folder: Path
    layers: tuple[str, ...]
    env: Mapping[str, str]
    user: ImageUser


def layer_folder() -> Path:
    """Returns the folder of the unpacked layers."""
    return cache_folder() / "layers"


def unpack_image(image: str, backend: SandboxBackend) -> Image:
    """Returns an image; unpacks the layers that are missing in `layer_folder`.

    Args:
        image: As for `find_image`.
        backend: Opens the sandboxes that unpack layers; `backend.owner` owns the image's files.

    Raises:
        InvalidArgumentError: There is no such image, or the image is malformed, hostile, or for
            another kind of machine.
        SandboxUnavailableError: The cache cannot hold layers, or a program is missing.
        SandboxError: The image cannot be unpacked for another reason, such as a full disk.
    """
    try:
        layout = find_image(image)
        return _unpack(layout, backend)
    except FileNotFoundError as error:
        raise InvalidArgumentError(
            f"image {image!r} is incomplete: {error}; remove {layout}, and pull the image again"
        ) from error
    except OSError as error:
        raise SandboxError(f"image {image!r} cannot be unpacked: {error}") from error


def remove_unpacked(image: str, backend: SandboxBackend) -> None:
    """Removes a fetched image, and its unpacked layers that no other fetched image has.

    Args:
        image: The name of an image that was fetched.
        backend: As for `unpack_image`; no sandbox may run the image.

    Raises:
        OSError: A blob cannot be removed, or a folder cannot be renamed.
    """
    folder = layer_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for digest in remove_image(image):
        FolderCache(folder).remove(_key(digest, backend.owner()))


def _unpack(layout: Path, backend: SandboxBackend) -> Image:
    manifest = read_manifest(layout)
    if not 0 < len(manifest.layers) <= _MAX_LAYERS:
        raise InvalidArgumentError(
            f"{layout} must have 1 to {_MAX_LAYERS} layers, got {len(manifest.layers)}; squash "
            "the image: docker export $(docker create IMAGE) | docker import - NAME"
        )
    folder = layer_folder()
    # The user of sandboxes, who may not own this folder, must be able to enter it.
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.chmod(0o755)
    keys, owner = [], backend.owner()
    for digest in manifest.layers:
        key = _key(digest, owner)
        FolderCache(folder).get(key, partial(_unpack_layer, layout, digest, backend))
        keys.append(key)
    # An overlay accepts no folder twice; the highest of equal layers hides the others.
    names = tuple(dict.fromkeys(reversed(keys)))
    user = find_user(manifest.user, partial(read_etc, [folder / name for name in names]))
    return Image(folder=folder, layers=names, env=manifest.env, user=user)


def _key(digest: str, owner: tuple[int, int]) -> str:
    return content_key(_SCHEMA, digest, owner)


def _unpack_layer(layout: Path, digest: str, backend: SandboxBackend, folder: Path) -> None:
    """Unpacks a layer into an empty folder.

    Raises:
        InvalidArgumentError: The layer is hostile, malformed or too large.
        SandboxUnavailableError: A program is missing, or the cache cannot hold layers.
        SandboxError: The disk is full, or the time limit passed.
    """
    blob = Mount(source=blob_path(layout, digest), target=_LAYER)
    spec = SandboxSpec(mounts=(blob,), limits=SandboxLimits(file_bytes=_MAX_BYTES))
    with build_sandbox(backend, spec, {BUILT: folder}) as sandbox:
        env = {"CG_LAYER": _LAYER, "CG_INTO": BUILT, "CG_MAX": str(_MAX_BYTES)}
        result = sandbox.run(_UNPACK, timeout_s=_TIMEOUT_S, cwd="/", env=env)
    if result.timed_out:
        raise SandboxError(f"layer {digest} of {layout} was not unpacked in {_TIMEOUT_S:g} s")
    if not result.ok:
        message = f"layer {digest} of {layout} cannot be unpacked: {last_line(result.output)}"
        if result.exit_code == NO_PROGRAM_CODE:
            raise SandboxUnavailableError(message, "run: apt-get install tar gzip zstd")
        is_full = any(text in message for text in _DISK_FULL)
        raise SandboxError(message) if is_full else InvalidArgumentError(message)
    try:
        _convert_whiteouts(folder)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_ERRNOS:
            raise
        raise SandboxUnavailableError(
            "the cache folder's file system lacks features for image layers (character devices "
            f"0:0 and user extended attributes): {error}",
            "set XDG_CACHE_HOME to a folder on ext4, xfs, btrfs or a recent tmpfs",
        ) from error


def _convert_whiteouts(folder: Path) -> None:
    """Converts whiteout files to whiteouts of an overlay."""
    for name in united((folder,)):
        *parents, last = name.split("/")
        if last.startswith(_WHITEOUT) and not any(part.startswith(_WHITEOUT) for part in parents):
            parent = folder.joinpath(*parents)
            info = parent.lstat()
            _convert_whiteout(parent, last)
            os.utime(parent, ns=(info.st_atime_ns, info.st_mtime_ns))
    os.utime(folder, (DATE_S, DATE_S))  # most layers have no entry for their root


def _convert_whiteout(parent: Path, name: str) -> None:
    hidden_name = name.removeprefix(_WHITEOUT)
    if hidden_name in {"", ".", ".."}:
        raise InvalidArgumentError(f"a whiteout must name a file, got {name!r}")
    whiteout, target = parent / name, parent / hidden_name
    if whiteout.is_dir() and not whiteout.is_symlink():
        remove_folder(whiteout)
    else:
        whiteout.unlink()
    if name == _OPAQUE:
        _make_opaque(parent)
    elif name.startswith(_RESERVED_PREFIX):
        return  # a file of aufs
    elif target.is_dir() and not target.is_symlink():
        _make_opaque(target)  # the layer replaces the folder
    elif not os.path.lexists(target):
        os.mknod(target, stat.S_IFCHR | 0o600, 0)


def _make_opaque(folder: Path) -> None:
    os.setxattr(folder, OPAQUE, b"y")
