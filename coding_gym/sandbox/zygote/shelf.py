"""Host folders that sandboxes ask for: layers, interpreters, mounts.

The server's own mount namespace holds no host files but these and the allow-list. A folder is
fetched from the namespace of the zygote's first process, which still sees the host, the first
time that it is asked for, and stays until newer ones push it out. Sandboxes hold copies of the
mounts, so what is taken off the shelf stays theirs.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from coding_gym.sandbox.zygote import parts
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.steps import step

SHELF = "/shown"
# Every mount here is copied at each clone, about a microsecond a piece.
_CAPACITY = 48


class Shelf:
    """Folders of the host, by name."""

    def __init__(self, host_mounts: int, own_mounts: int, hidden: Iterable[str]) -> None:
        self._host_mounts = host_mounts
        self._own_mounts = own_mounts
        self._hidden = tuple(hidden)
        self._names: OrderedDict[tuple[Any, ...], str] = OrderedDict()
        self._count = 0
        os.mkdir(SHELF)

    def place(self, item: dict[str, Any]) -> str:
        """Returns the name below `SHELF` at which a host folder or file is shown.

        Args:
            item: ``path``, ``id`` (device and inode, so that a folder that was made anew is
                fetched anew), ``writable``, ``covered`` (hide third-party packages in it).
        """
        key = (item["path"], *item["id"], item["writable"], item["covered"])
        if key not in self._names:
            with step(f"show {item['path']}"):
                self._names[key] = self._fetch(item)
        self._names.move_to_end(key)
        return self._names[key]

    def trim(self) -> None:
        """Takes the folders off that were asked for longest ago."""
        while len(self._names) > _CAPACITY:
            _, name = self._names.popitem(last=False)
            sc.unmount(f"{SHELF}/{name}")
            (os.rmdir if os.path.isdir(f"{SHELF}/{name}") else os.unlink)(f"{SHELF}/{name}")

    def _fetch(self, item: dict[str, Any]) -> str:
        path = item["path"]
        sc.enter_mounts(self._host_mounts)
        try:
            tree = sc.clone_tree(path)
            is_folder = os.path.isdir(path)
        finally:
            sc.enter_mounts(self._own_mounts)
        self._count += 1
        name = str(self._count)
        target = f"{SHELF}/{name}"
        if is_folder:
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o644))
        try:
            sc.attach_tree(tree, target)
        finally:
            os.close(tree)
        if item["covered"]:
            parts.cover(target, path, self._hidden)
        flags = sc.NOSUID | sc.NODEV
        sc.restrict(target, flags if item["writable"] else flags | sc.READ_ONLY)
        return name
