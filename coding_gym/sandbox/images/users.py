"""The user that an image's commands run as, looked up in the image's own files."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import InvalidArgumentError

_MAX_BYTES = 4 << 20
# The largest uid: (uid_t) -1 means "no change".
_MAX_ID = (1 << 32) - 2


@dataclass(frozen=True, slots=True)
class ImageUser:
    """A user of an image.

    Attributes:
        uid: Number inside.
        gid: Group's number inside.
        name: Its name in the image; the number if it has none.
    """

    uid: int
    gid: int
    name: str


def find_user(wanted: str, read: Callable[[str], bytes]) -> ImageUser:
    """Returns the user that an image's configuration names.

    Args:
        wanted: ``name``, ``uid``, either with ``:group`` or ``:gid``; "" for root.
        read: Returns the file of a name in the image's ``/etc``; empty if it is missing.

    Raises:
        InvalidArgumentError: The image has no such user or group.
    """
    user, _, group = (wanted or "0").partition(":")
    uid, gid, name = _number(user), 0, user
    for row in _rows(read("passwd"), 7):
        if row[0] == user or (uid is not None and row[2] == str(uid)):
            uid, gid, name = _number(row[2]), _number(row[3]) or 0, row[0]
            break
    if group:
        rows = [row for row in _rows(read("group"), 4) if row[0] == group]
        number = _number(rows[0][2] if rows else group)
        if number is None:
            raise InvalidArgumentError(f"its user is {wanted!r}, and it has no group {group!r}")
        gid = number
    if uid is None:
        raise InvalidArgumentError(f"its user is {wanted!r}, which is not in its /etc/passwd")
    return ImageUser(uid, gid, "root" if uid == 0 else name)


def _number(text: str) -> int | None:
    if text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_ID)):
        return int(text) if int(text) <= _MAX_ID else None
    return None


def _rows(text: bytes, num_fields: int) -> list[list[str]]:
    lines = text.decode("utf-8", "replace").splitlines()
    rows = [line.split(":") for line in lines if "\0" not in line]
    return [row for row in rows if len(row) >= num_fields]


def read_etc(layers: Sequence[Path], name: str) -> bytes:
    """Returns a file of ``/etc`` of the layers' overlay; empty if it is missing.

    Symbolic links, which might lead to the host's files, are not followed. The layers are final.
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
                return file.read(_MAX_BYTES)
        if "user.overlay.opaque" in os.listxattr(etc):
            return b""
    return b""
