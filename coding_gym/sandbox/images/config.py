"""What an image says of itself: its layers, and how programs in it are to be started."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coding_gym.errors import InvalidArgumentError

# This machine's name for itself, and that of the Open Container Initiative.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


@dataclass(frozen=True, slots=True, kw_only=True)
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
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    user: str = ""


def machine_architecture() -> str:
    """Returns the architecture of this machine in the words of image manifests."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def read_config(data: Any, digest: str) -> ImageConfig:
    """Reads a configuration; that of Docker and that of the OCI have one form.

    Args:
        data: The parsed document.
        digest: Of its bytes.

    Raises:
        InvalidArgumentError: It is malformed, or for another kind of machine.
    """
    try:
        system, architecture = data.get("os", "linux"), data.get("architecture", "")
        diff_ids = tuple(_digest(text) for text in data["rootfs"]["diff_ids"])
        wanted = data.get("config") or {}
        pairs = [_text(pair).partition("=") for pair in wanted.get("Env") or ()]
        config = ImageConfig(
            digest=digest,
            diff_ids=diff_ids,
            env={name: value for name, _, value in pairs if name},
            workdir=_text(wanted.get("WorkingDir") or ""),
            user=_text(wanted.get("User") or ""),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidArgumentError(f"its configuration is malformed: {error!r}") from error
    if system != "linux" or architecture not in {"", machine_architecture()}:
        raise InvalidArgumentError(
            f"it is for {system}/{architecture}, this machine runs linux/{machine_architecture()}; "
            f"pull it again with --platform linux/{machine_architecture()}"
        )
    return config


def check_digest(text: Any) -> str:
    """Returns a digest of a kind that can be verified.

    Raises:
        InvalidArgumentError: It is another kind, or none.
    """
    try:
        return _digest(text)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from error


def _digest(text: Any) -> str:
    """Takes digests that name a file no further than they should."""
    kind, _, value = _text(text).partition(":")
    length = {"sha256": 64, "sha512": 128}.get(kind, 0)
    if not length or len(value) != length or value.strip("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a sha256 or sha512 digest")
    return f"{kind}:{value}"


def _text(value: Any) -> str:
    """Takes text that a system call takes."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{value!r} is not text")
    value.encode()  # JSON knows halves of characters
    return value
