"""Earlier versions of edited files, for ``undo_edit``, in the episode's state.

They are kept per file and bounded in number and bytes over all files; the oldest go first, and how
many went is remembered, so that a policy can be told.
"""

import base64
import hashlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

MAX_VERSIONS = 10
MAX_BYTES = 2 << 20

_KEPT = "editor_history"
_NUM_DROPPED = "editor_history_dropped"


@dataclass(frozen=True, slots=True)
class Version:
    """What a file was before an edit.

    Attributes:
        data: Its bytes, or None where it did not exist.
        mode: Its mode as chmod takes it, or "" where it did not exist.
        after: A digest of what the edit made of it.
    """

    data: bytes | None
    mode: str
    after: str

    def is_followed_by(self, data: bytes | None, mode: str) -> bool:
        """Returns whether a file still is what the edit made of it; edits leave its mode."""
        is_same = data is not None and _digest(data) == self.after
        return is_same and self.mode in ("", mode)


def remember(
    state: MutableMapping[str, Any],
    place: str,
    *,
    before: bytes | None,
    mode: str,
    after: bytes,
) -> None:
    """Keeps what a file was before an edit, and forgets the oldest that are too much."""
    kept = state.setdefault(_KEPT, [])
    data = None if before is None else base64.b64encode(before).decode()
    kept.append({"place": place, "data": data, "mode": mode, "after": _digest(after)})
    of_this_file = [entry for entry in kept if entry["place"] == place]
    if len(of_this_file) > MAX_VERSIONS:
        _drop(state, kept.index(of_this_file[0]))
    while kept and sum(len(entry["data"] or "") for entry in kept) > MAX_BYTES // 3 * 4:
        _drop(state, 0)


def take_back(state: MutableMapping[str, Any], place: str) -> Version | None:
    """Returns what a file was before its last edit and forgets it; None where nothing is kept."""
    kept = state.get(_KEPT, [])
    for i in range(len(kept) - 1, -1, -1):
        if kept[i]["place"] == place:
            entry = kept.pop(i)
            data = entry["data"]
            before = None if data is None else base64.b64decode(data)
            return Version(before, entry["mode"], entry["after"])
    return None


def put_back(state: MutableMapping[str, Any], place: str, version: Version) -> None:
    """Keeps again what `take_back` gave, where it could not be used."""
    data = None if version.data is None else base64.b64encode(version.data).decode()
    entry = {"place": place, "data": data, "mode": version.mode, "after": version.after}
    state.setdefault(_KEPT, []).append(entry)


def num_dropped(state: MutableMapping[str, Any], place: str) -> int:
    """Returns how many versions of a file were forgotten."""
    return int(state.get(_NUM_DROPPED, {}).get(place, 0))


def _drop(state: MutableMapping[str, Any], index: int) -> None:
    place = state[_KEPT].pop(index)["place"]
    dropped = state.setdefault(_NUM_DROPPED, {})
    dropped[place] = dropped.get(place, 0) + 1


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
