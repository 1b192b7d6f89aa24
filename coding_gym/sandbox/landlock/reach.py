"""Copies of what ``landlock`` sandboxes cannot be shown where it is.

Without mounts a path is a path: an interpreter below root's home stays out of reach of commands
that run as somebody else, whatever Landlock allows. What they need of it is copied, once per
process, to a folder that goes with the process, or with the next one.
"""

import atexit
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from coding_gym.sandbox.ownership import make_folder, remove_folder
from coding_gym.sandbox.tree_copies import add_file, add_tree
from coding_gym.sandbox.zygote.host_folders import THIRD_PARTY

# Not needed to run programs, and most of the size.
_LEFT_OUT = ("*.a", "test", "idlelib", "lib2to3")
_PACKAGES = frozenset(Path(pattern).name for pattern in THIRD_PARTY)


class _Copies:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: dict[tuple[Path, int, int], Path] = {}
        self.folder: Path | None = None

    def get(
        self,
        source: Path,
        user: tuple[int, int],
        is_wanted: Callable[[Path], bool] = lambda _: True,
    ) -> Path:
        facts = source.stat()
        key = (source, facts.st_ino, facts.st_mtime_ns)
        with self.lock:
            if key not in self.made:
                self.made[key] = self._make(source, user, is_wanted)
            return self.made[key]

    def _make(self, source: Path, user: tuple[int, int], is_wanted: Callable[[Path], bool]) -> Path:
        if self.folder is None:
            self.folder = make_folder("shown")
            admit(self.folder, user)
            atexit.register(_remove, self.folder, os.getpid())
        place = Path(tempfile.mkdtemp(dir=self.folder)) / source.name
        place.parent.chmod(0o755)
        if source.is_file():
            add_file(source, place)
            return place
        place.mkdir()
        add_tree(source, place, is_wanted=is_wanted)
        return place

    def after_fork(self) -> None:
        # Another thread of the parent may have held the lock; its copies are its own to remove.
        self.lock = threading.Lock()
        self.made.clear()
        self.folder = None


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # and not a fork that ends as its parent would
        remove_folder(folder)


_copies = _Copies()
os.register_at_fork(after_in_child=_copies.after_fork)


def admit(folder: Path, user: tuple[int, int]) -> None:
    """Lets commands pass through a private folder of ours, and no other user of the machine.

    What commands make in it may be open to everybody, or run with their uid.

    Args:
        folder: Of `make_folder`.
        user: The uid and gid of commands, where they are not ours.
    """
    if user[0] != os.geteuid():
        os.chown(folder, -1, user[1])
        folder.chmod(0o710)


def reachable(path: Path, user: tuple[int, int]) -> Path:
    """Returns a path at which a user finds what is at ``path``: itself, or a copy.

    Raises:
        OSError: It cannot be copied.
    """
    real = path.resolve()
    if all(_may_pass(folder, *user) for folder in real.parents):
        return real
    return _copies.get(real, user)


def reachable_python(prefix: Path, user: tuple[int, int]) -> Path:
    """Returns an interpreter's prefix, or a copy of it without third-party packages.

    Python finds its own modules by listing their folder. Landlock cannot let somebody list that
    and not the folders in it, and there is where most installations keep other people's packages.
    """
    real = prefix.resolve()
    packages = [path for name in _PACKAGES for path in real.glob(f"lib*/py*/{name}")]
    is_mixed = any((path.parent / "os.py").exists() for path in packages)
    if not is_mixed and all(_may_pass(folder, *user) for folder in real.parents):
        return real
    return _copies.get(real, user, _is_needed)


def _may_pass(folder: Path, uid: int, gid: int) -> bool:
    facts = folder.stat()
    if facts.st_uid == uid:
        return bool(facts.st_mode & 0o100)
    return bool(facts.st_mode & (0o010 if facts.st_gid == gid else 0o001))


def _is_needed(path: Path) -> bool:
    """Whether a part of an interpreter's prefix is copied: neither packages nor tests."""
    return path.name not in _PACKAGES and not any(path.match(name) for name in _LEFT_OUT)
