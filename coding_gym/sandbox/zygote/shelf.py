"""Host folders that sandboxes ask for: layers, interpreters, mounts.

The server's own mount namespace holds no host files but these and the allow-list. A folder is
fetched from the namespace of the zygote's first process, which still sees the host, the first
time that it is asked for, and stays until newer ones push it out. Sandboxes hold copies of the
mounts, so what is taken off the shelf stays theirs.
"""

import os
from collections import OrderedDict
from collections.abc import Hashable, Iterable
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
        self._names: OrderedDict[Hashable, str] = OrderedDict()
        self._spent: list[Hashable] = []
        self._free: dict[bool, list[str]] = {True: [], False: []}
        self._count = 0
        os.mkdir(SHELF)

    def place(self, item: dict[str, Any]) -> str:
        """Returns the name below `SHELF` at which a host folder or file is shown.

        Args:
            item: ``path``, ``id`` (device and inode, so that a folder that was made anew is
                fetched anew), ``writable``, ``covered`` (hide third-party packages in it), ``once``
            (nobody will ask for it again).
        """
        key = self.key(item)
        if key not in self._names:
            with step(f"show {item['path']}"):
                self._names[key] = self._fetch(item)
        self._names.move_to_end(key)
        if item["once"]:
            self._spent.append(key)
        return self._names[key]

    @staticmethod
    def key(item: dict[str, Any]) -> Hashable:
        """Returns what tells an item of `place` from others."""
        return (item["path"], *item["id"], item["writable"], item["covered"])

    def keep(self, shown: Iterable[tuple[Hashable, str]]) -> bool:
        """Whether all of these are still shown, by these names; they stay longer then."""
        for key, name in shown:
            if self._names.get(key) != name:
                return False
            self._names.move_to_end(key)
        return True

    def has_surplus(self) -> bool:
        """Whether there is anything for `trim` to do."""
        return bool(self._spent) or len(self._names) > _CAPACITY

    def trim(self) -> None:
        """Takes off what is spent, and the folders that were asked for longest ago."""
        while self.has_surplus():
            key = self._spent.pop() if self._spent else next(iter(self._names))
            name = self._names.pop(key)
            sc.unmount(f"{SHELF}/{name}")
            # Not removed: that would take the mount from sandboxes that are still being set up.
            self._free[os.path.isdir(f"{SHELF}/{name}")].append(name)

    def _fetch(self, item: dict[str, Any]) -> str:
        path = item["path"]
        sc.enter_mounts(self._host_mounts)
        try:
            tree = sc.clone_tree(path)
            is_folder = os.path.isdir(path)
        finally:
            sc.enter_mounts(self._own_mounts)
        try:
            name = self._place_for(is_folder=is_folder)
            target = f"{SHELF}/{name}"
            sc.attach_tree(tree, target)
        finally:
            os.close(tree)
        if item["covered"]:
            parts.cover(target, path, self._hidden)
        flags = sc.NOSUID | sc.NODEV
        sc.restrict(target, flags if item["writable"] else flags | sc.READ_ONLY)
        return name

    def _place_for(self, *, is_folder: bool) -> str:
        """Returns the name of a folder, or of a file, on which nothing is mounted."""
        if self._free[is_folder]:
            return self._free[is_folder].pop()
        self._count += 1
        name = str(self._count)
        if is_folder:
            os.mkdir(f"{SHELF}/{name}")
        else:
            sc.write_text(f"{SHELF}/{name}", "")
        return name
