"""Finding an image's configuration and layers in the output of ``docker save`` or an OCI tool.

The forms are those of https://github.com/opencontainers/image-spec (``image-layout.md``,
``manifest.md``, ``image-index.md``, ``config.md``) and of ``docker save``, whose ``manifest.json``
names files.
"""

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.images.content import Content, parse, read_document

_MAX_NESTING = 4
_NAMES = ("org.opencontainers.image.ref.name", "io.containerd.image.name")
# This machine's name for itself, and that of the Open Container Initiative.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_DIGEST = re.compile("sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
# Files of `docker save`: any of new versions, configurations of old ones.
_NAMED_BY_DIGEST = re.compile(r"blobs/sha256/([0-9a-f]{64})|([0-9a-f]{64})\.json")
# Errors of looking into a document whose values are of other types than they should be.
_MALFORMED = (KeyError, TypeError, AttributeError)


class LayerFile(NamedTuple):
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
    """An image's configuration, as far as a sandbox needs it, and its layers.

    Attributes:
        digest: Of the configuration, ``sha256:…``: the image's id.
        layers: The lowest first.
        env: Environment variables.
        workdir: Where commands start; "" where it does not say.
        user: ``name``, ``uid``, ``name:group`` … as it was written; "" for root.
    """

    digest: str
    layers: tuple[LayerFile, ...]
    env: Mapping[str, str]
    workdir: str
    user: str


def read_manifest(content: Content, reference: str = "") -> Manifest:
    """Returns an image's configuration and layers.

    Args:
        content: The files it comes in.
        reference: Which image, where there are several: a name and tag.

    Raises:
        InvalidArgumentError: It is malformed, a digest is wrong, it is for another kind of machine,
            or the reference does not choose exactly one image.
    """
    for name, find in (("manifest.json", _find_docker), ("index.json", _find_oci)):
        if (file := content.open(name)) is None:
            continue
        file.close()
        document = parse(read_document(content, name), name)
        try:
            config, layers = find(content, document, reference)
        except _MALFORMED as error:
            raise InvalidArgumentError(f"its {name} is malformed: {error!r}") from error
        return _manifest(config, layers)
    raise InvalidArgumentError(
        "it is neither what `docker save` writes nor an OCI layout: it has no manifest.json and no "
        "index.json"
    )


def machine_architecture() -> str:
    """Returns the architecture of this machine in the words of image manifests."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


# A configuration, and names and digests of layers.
_Found = tuple[bytes, list[tuple[str, str]]]


def _find_docker(content: Content, entries: Any, reference: str) -> _Found:
    chosen = _choose([(tuple(e.get("RepoTags") or ()), e) for e in entries], reference)
    config = read_document(content, chosen["Config"])
    _verify(config, _digest_in(chosen["Config"]))
    return config, [(name, _digest_in(name)) for name in chosen["Layers"]]


def _find_oci(content: Content, index: Any, reference: str) -> _Found:
    manifest = _descend(content, index, reference, 0)
    digests = [checked_digest(layer["digest"]) for layer in manifest["layers"]]
    config = _read_blob(content, manifest["config"])
    return config, [(_blob(digest), digest) for digest in digests]


def _descend(content: Content, index: Any, reference: str, depth: int) -> Any:
    """Returns the manifest of the image for this machine, which may be some indexes away."""
    if depth > _MAX_NESTING:
        raise InvalidArgumentError(f"its indexes nest more than {_MAX_NESTING} deep")
    # Attestations of builders are listed beside images, as of an unknown platform.
    found = [entry for entry in index["manifests"] if is_ours(entry.get("platform") or {})]
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
    if "manifests" in document:
        return _descend(content, document, reference, depth + 1)
    return document


def is_ours(platform: Any) -> bool:
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


def _manifest(config: bytes, layers: list[tuple[str, str]]) -> Manifest:
    """Reads a configuration; that of Docker and that of the OCI have one form."""
    document = parse(config, "configuration")
    try:
        diff_ids = [checked_digest(text) for text in document["rootfs"]["diff_ids"]]
        if len(layers) != len(diff_ids):
            raise ValueError(f"its manifest lists {len(layers)} layers, it lists {len(diff_ids)}")
        pairs = zip(layers, diff_ids, strict=True)
        settings = document.get("config") or {}
        variables = [_checked_text(pair).partition("=") for pair in settings.get("Env") or ()]
        fits = is_ours(document)
        manifest = Manifest(
            digest=f"sha256:{hashlib.sha256(config).hexdigest()}",
            layers=tuple(LayerFile(*layer, diff_id) for layer, diff_id in pairs),
            env={name: value for name, _, value in variables if name},
            workdir=_checked_text(settings.get("WorkingDir") or ""),
            user=_checked_text(settings.get("User") or ""),
        )
    except (*_MALFORMED, ValueError) as error:
        raise InvalidArgumentError(f"its configuration is malformed: {error!r}") from error
    if not fits:
        raise InvalidArgumentError(
            f"it is for {document.get('os', 'linux')}/{document.get('architecture')}, this machine "
            f"runs linux/{machine_architecture()}; pull it again with --platform "
            f"linux/{machine_architecture()}"
        )
    return manifest


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _read_blob(content: Content, descriptor: Any) -> bytes:
    digest = checked_digest(descriptor["digest"])
    data = read_document(content, _blob(digest))
    _verify(data, digest)
    return data


def _digest_in(name: str) -> str:
    """Returns the digest that a file is named by; "" where it is named otherwise."""
    found = _NAMED_BY_DIGEST.fullmatch(name)
    return f"sha256:{found[1] or found[2]}" if found else ""


def _verify(data: bytes, digest: str) -> None:
    kind, _, value = digest.partition(":")
    if digest and hashlib.new(kind, data).hexdigest() != value:
        raise InvalidArgumentError(f"one of its documents has another digest than {digest}")


def checked_digest(text: Any) -> str:
    """Returns a digest that names a file and no more; raises InvalidArgumentError for others."""
    if not _DIGEST.fullmatch(text):
        raise InvalidArgumentError(f"{text!r} is not a sha256 or sha512 digest")
    return str(text)


def _checked_text(value: Any) -> str:
    """Returns text that a system call takes; raises ValueError or TypeError for anything else."""
    value.encode()  # JSON knows halves of characters
    if "\0" in value:
        raise ValueError(f"{value!r} holds a NUL")
    return str(value)
