"""Finding an image's configuration and layers in what ``docker save`` or an OCI tool wrote.

The forms are those of https://github.com/opencontainers/image-spec (``image-layout.md``,
``manifest.md``, ``image-index.md``, ``config.md``) and of ``docker save``, whose ``manifest.json``
names files.
"""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.content import Content, parse, read_document

_MAX_NESTING = 4
_NAMES = ("org.opencontainers.image.ref.name", "io.containerd.image.name")
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
# This machine's name for itself, and that of the Open Container Initiative.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_DIGEST_CHARS = {"sha256": 64, "sha512": 128}
# What the parts of a document raise that are not of the kind that they should be.
_MALFORMED = (KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """An image's configuration, as far as a sandbox needs it.

    Attributes:
        digest: Of the configuration itself, ``sha256:…``: the image's id.
        diff_ids: Digest of each layer's tar, uncompressed; the lowest layer first.
        env: Environment variables.
        workdir: Where commands start; "" where it does not say.
        user: ``name``, ``uid``, ``name:group`` … as it was written; "" for root.
    """

    digest: str
    diff_ids: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    user: str


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A layer as it lies in the image.

    Attributes:
        name: Of the file.
        digest: Of its bytes; "" where nothing says it.
        diff_id: Of its bytes once they are uncompressed.
    """

    name: str
    digest: str
    diff_id: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """An image's configuration, and its layers, the lowest first."""

    config: ImageConfig
    layers: tuple[LayerFile, ...]


def read_manifest(content: Content, reference: str = "") -> Manifest:
    """Returns what the image is made of.

    Args:
        content: The files it comes in.
        reference: Which image, where there are several: a name and tag.

    Raises:
        InvalidArgumentError: It is malformed, a digest is wrong, it is for another kind of machine,
            or it is not clear which of several images is meant.
    """
    for name, read in (("manifest.json", _read_docker), ("index.json", _read_oci)):
        if (file := content.open(name)) is not None:
            file.close()
            return read(content, reference)
    raise InvalidArgumentError(
        "it is neither what `docker save` writes nor an OCI layout: it has no manifest.json and no "
        "index.json"
    )


def machine_architecture() -> str:
    """Returns the architecture of this machine in the words of image manifests."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def _read_docker(content: Content, reference: str) -> Manifest:
    entries = parse(read_document(content, "manifest.json"), "manifest.json")
    try:
        chosen = _choose([(tuple(e.get("RepoTags") or ()), e) for e in entries], reference)
        name, layer_names = chosen["Config"], chosen["Layers"]
        data = read_document(content, name)
        # Old archives name it by its digest, new ones lie in an OCI layout.
        _verify(data, _digest_in(name), name)
        config = _read_config(data, name)
        layers = _pair(config, [(name, _digest_of_blob(name)) for name in layer_names])
    except _MALFORMED as error:
        raise InvalidArgumentError(f"its manifest.json is malformed: {error!r}") from error
    return Manifest(config, layers)


def _read_oci(content: Content, reference: str) -> Manifest:
    index = parse(read_document(content, "index.json"), "index.json")
    try:
        manifest = _descend(content, index, reference, 0)
        config = _read_config(_read_blob(content, manifest["config"]), "configuration")
        digests = [_checked_digest(layer["digest"]) for layer in manifest["layers"]]
        layers = _pair(config, [(_blob(digest), digest) for digest in digests])
    except _MALFORMED as error:
        raise InvalidArgumentError(f"its manifest is malformed: {error!r}") from error
    return Manifest(config, layers)


def _descend(content: Content, index: Any, reference: str, depth: int) -> Any:
    """Returns the manifest of the image for this machine, which may be some indexes away."""
    if depth > _MAX_NESTING:
        raise InvalidArgumentError(f"its indexes nest more than {_MAX_NESTING} deep")
    # Attestations of builders are listed beside images, as of an unknown platform.
    found = [entry for entry in index["manifests"] if _is_ours(entry.get("platform") or {})]
    if not found and index["manifests"]:
        raise InvalidArgumentError(
            f"it has no image for linux/{machine_architecture()}; pull it again with --platform "
            f"linux/{machine_architecture()}"
        )
    if depth == 0:
        chosen = _choose([(_names(entry), entry) for entry in found], reference)
    else:
        chosen = found[0]
    document = parse(_read_blob(content, chosen), "manifest")
    kind = document.get("mediaType") or chosen.get("mediaType")
    if kind in _INDEXES or "manifests" in document:
        return _descend(content, document, reference, depth + 1)
    return document


def _is_ours(platform: Any) -> bool:
    """Whether a platform, as manifests and configurations describe it, is this machine's."""
    system, architecture = platform.get("os", "linux"), platform.get("architecture", "")
    return system == "linux" and architecture in {"", machine_architecture()}


def _names(entry: Any) -> tuple[str, ...]:
    notes = entry.get("annotations") or {}
    return tuple(notes[key] for key in _NAMES if key in notes)


def _choose(images: list[tuple[tuple[str, ...], Any]], reference: str) -> Any:
    """Returns the image of a name, or the only one."""
    found = [image for names, image in images if not reference or reference in names]
    if len(found) == 1:
        return found[0]
    known = ", ".join(name for names, _ in images for name in names) or "none"
    problem = f"it holds {len(images)} images"
    if reference:
        problem += f", {len(found)} of them named {reference!r}"
    raise InvalidArgumentError(
        f"{problem}; name one behind a '#', as in image.tar#NAME:TAG (names: {known})"
    )


def _pair(config: ImageConfig, files: list[tuple[str, str]]) -> tuple[LayerFile, ...]:
    if len(files) != len(config.diff_ids):
        raise InvalidArgumentError(
            f"its manifest lists {len(files)} layers, its configuration {len(config.diff_ids)}"
        )
    pairs = zip(files, config.diff_ids, strict=True)
    return tuple(LayerFile(str(name), digest, diff_id) for (name, digest), diff_id in pairs)


def _blob(digest: str) -> str:
    kind, _, value = digest.partition(":")
    return f"blobs/{kind}/{value}"


def _read_blob(content: Content, descriptor: Any) -> bytes:
    digest = _checked_digest(descriptor["digest"])
    data = read_document(content, _blob(digest))
    _verify(data, digest, _blob(digest))
    return data


def _digest_in(name: str) -> str:
    """Returns the digest that a file is named by; "" where it is named otherwise."""
    value = name.rpartition("/")[2].removesuffix(".json")
    is_digest = len(value) == 64 and not value.strip("0123456789abcdef")
    return f"sha256:{value}" if is_digest else ""


def _digest_of_blob(name: str) -> str:
    return _digest_in(name) if name.startswith("blobs/sha256/") else ""


def _verify(data: bytes, digest: str, name: str) -> None:
    kind, _, value = digest.partition(":")
    if digest and hashlib.new(kind, data).hexdigest() != value:
        raise InvalidArgumentError(f"its {name} has another digest than {digest}")


def _read_config(data: bytes, name: str) -> ImageConfig:
    """Reads a configuration; that of Docker and that of the OCI have one form."""
    document = parse(data, name)
    try:
        settings = document.get("config") or {}
        pairs = [_checked_text(pair).partition("=") for pair in settings.get("Env") or ()]
        config = ImageConfig(
            digest=f"sha256:{hashlib.sha256(data).hexdigest()}",
            diff_ids=tuple(_checked_digest(text) for text in document["rootfs"]["diff_ids"]),
            env={name: value for name, _, value in pairs if name},
            workdir=_checked_text(settings.get("WorkingDir") or ""),
            user=_checked_text(settings.get("User") or ""),
        )
    except (*_MALFORMED, ValueError) as error:
        raise InvalidArgumentError(f"its configuration is malformed: {error!r}") from error
    if not _is_ours(document):
        raise InvalidArgumentError(
            f"it is for {document.get('os', 'linux')}/{document.get('architecture')}, this machine "
            f"runs linux/{machine_architecture()}; pull it again with --platform "
            f"linux/{machine_architecture()}"
        )
    return config


def _checked_digest(text: Any) -> str:
    """Returns a digest that names a file and no more; raises InvalidArgumentError for others."""
    kind, _, value = _checked_text(text).partition(":")
    if len(value) != _DIGEST_CHARS.get(kind) or value.strip("0123456789abcdef"):
        raise InvalidArgumentError(f"{text!r} is not a sha256 or sha512 digest")
    return f"{kind}:{value}"


def _checked_text(value: Any) -> str:
    """Returns text that a system call takes; raises InvalidArgumentError for anything else."""
    try:
        if isinstance(value, str) and "\0" not in value:
            value.encode()  # JSON knows halves of characters
            return value
    except UnicodeEncodeError:
        pass
    raise InvalidArgumentError(f"{value!r} is not text")
