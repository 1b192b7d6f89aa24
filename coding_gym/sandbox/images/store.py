"""Images, unpacked: each layer once per user that owns it, shared by all images that have it."""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from platformdirs import user_cache_path, user_data_path

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox.folder_cache import FolderCache
from coding_gym.sandbox.images.content import Content, opened
from coding_gym.sandbox.images.layer_unpacking import unpack_layer
from coding_gym.sandbox.images.manifest import LayerFile, read_manifest
from coding_gym.sandbox.images.users import ImageUser, find_user, read_etc

_log = logging.getLogger(__name__)

# Part of every key: raised whenever the result of unpacking changes.
_SCHEMA = 1
# One page of mount options holds that many keys, and an overlay no more than some hundreds.
_MAX_LAYERS = 140
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An unpacked image.

    Attributes:
        digest: Its id, ``sha256:…``.
        folder: Holds the layers.
        layers: Names of their folders there, the topmost first.
        env: Environment variables of its commands.
        workdir: Where its commands start; "/" where it does not say.
        user: The user of its commands.
    """

    digest: str
    folder: Path
    layers: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    user: ImageUser


class ImageStore:
    """Unpacks images and remembers them.

    Args:
        folder: Where the layers lie; the user's cache by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or user_cache_path("coding_gym") / "layers"
        self._cache = FolderCache(self._folder)
        self._known: dict[object, Image] = {}

    def get(self, image: str, owner: tuple[int, int]) -> Image:
        """Returns an image, unpacked now if it is the first time.

        Args:
            image: As `find_image` takes it.
            owner: The uid and gid of all its files, whatever those in the image.

        Raises:
            InvalidArgumentError: There is no such image, or it is broken, hostile, or for another
                kind of machine.
            SandboxUnavailableError: The cache cannot hold layers.
            SandboxError: It cannot be unpacked for another reason, such as a full disk.
        """
        path, reference = find_image(image)
        with _errors_about(image):
            key = (_identity(path), reference, owner)
            known = self._known.get(key)
            # Anyone may have emptied the cache since.
            if known is None or not all((known.folder / name).is_dir() for name in known.layers):
                known = self._known[key] = self._unpack(path, reference, owner)
            return known

    def _unpack(self, path: Path, reference: str, owner: tuple[int, int]) -> Image:
        with opened(path) as content:
            manifest = read_manifest(content, reference)
            if not 0 < len(manifest.layers) <= _MAX_LAYERS:
                raise InvalidArgumentError(
                    f"it has {len(manifest.layers)} layers; an overlay takes 1 to {_MAX_LAYERS}, "
                    "so squash a longer list: docker export | docker import"
                )
            # Sandboxes reach the layers through it, as a user who does not own it.
            self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._folder.chmod(0o755)
            keys = [self._layer(content, layer, owner) for layer in manifest.layers]
        # An overlay takes no folder twice; the highest of equal layers hides the others.
        names = tuple(dict.fromkeys(reversed(keys)))
        return Image(
            digest=manifest.digest,
            folder=self._folder,
            layers=names,
            env=manifest.env,
            workdir=manifest.workdir or "/",
            user=find_user(manifest.user, partial(read_etc, [self._folder / n for n in names])),
        )

    def _layer(self, content: Content, layer: LayerFile, owner: tuple[int, int]) -> str:
        """Returns the name of a layer's folder, unpacked now if it is the first time."""

        def build(folder: Path) -> None:
            file = content.open(layer.name)
            if file is None:
                raise InvalidArgumentError("it is missing")
            with file:
                skipped = unpack_layer(
                    file, folder, owner, digest=layer.digest, diff_id=layer.diff_id
                )
            if skipped:
                listed = ", ".join(skipped[:_MAX_LISTED])
                _log.warning("layer %s: left out %d: %s", layer.name, len(skipped), listed)

        facts = json.dumps([_SCHEMA, layer.diff_id, owner])
        key = hashlib.sha256(facts.encode()).hexdigest()[:24]
        try:
            self._cache.get(key, build)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"layer {layer.name}: {error}") from error
        return key


def image_digest(image: str) -> str:
    """Returns an image's id, without unpacking it; raises as `ImageStore.get` does."""
    path, reference = find_image(image)
    with _errors_about(image), opened(path) as content:
        return read_manifest(content, reference).digest


@contextmanager
def _errors_about(image: str) -> Iterator[None]:
    """Names the image in the errors of the block."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"image {image!r} cannot be used: {error}") from error
    except OSError as error:
        raise SandboxError(f"image {image!r} cannot be unpacked: {error}") from error


def image_folder() -> Path:
    """Returns the folder in which images are found by name."""
    return user_data_path("coding_gym") / "images"


def find_image(image: str) -> tuple[Path, str]:
    """Returns where an image lies, and the name that chooses one of several there.

    Args:
        image: The path of a tar or of an OCI layout folder; or a name such as ``python:3.12``, of
            which `image_folder` has the folder, or the tar ``python:3.12.tar``. ``#NAME:TAG``
            behind it chooses one of several.

    Raises:
        InvalidArgumentError: There is none.
    """
    if (path := Path(image).expanduser()).exists():
        return path, ""
    place, _, reference = image.partition("#")
    if (path := Path(place).expanduser()).exists():
        return path, reference
    if place and not path.is_absolute() and ".." not in path.parts:
        for name in (place, f"{place}.tar", f"{place}:latest", f"{place}:latest.tar"):
            if (path := image_folder() / name).exists():
                return path, reference
    is_path = not place or place.startswith(("/", "~", ".")) or place.endswith(".tar")
    name = "NAME" if is_path else place
    raise InvalidArgumentError(
        f"no image {image!r}: there is no such file or folder, and no such name in "
        f"{image_folder()}; run: coding-gym images pull --image {name} (or docker save {name} -o "
        "FILE.tar, and give that path)"
    )


def _identity(path: Path) -> tuple[object, ...]:
    """Returns facts that change when another image comes to lie at a path."""
    found = []
    for place in (path, path / "index.json", path / "manifest.json"):
        try:
            facts = place.stat()
        except OSError:
            continue
        found.append((facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns))
    return (str(path.resolve()), *found)
