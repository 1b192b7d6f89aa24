"""The zygotes of this process: one per user that sandboxes run as, started when first needed."""

import atexit
import os
import threading

from coding_gym.sandbox.ownership import remove_uppers
from coding_gym.sandbox.zygote_process import Zygote


class _Registry:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.zygotes: dict[tuple[int, int], Zygote] = {}
        self.started: list[Zygote] = []

    def get(self, uid: int, gid: int) -> Zygote:
        with self.lock:
            zygote = self.zygotes.get((uid, gid))
            if zygote is not None and not zygote.alive:
                zygote.reap()
                zygote = None
            if zygote is None:
                zygote = self.zygotes[uid, gid] = Zygote(uid, gid)
                self.started.append(zygote)
            return zygote

    def stop(self) -> None:
        with self.lock:
            for zygote in self.started:
                zygote.stop()
            self.started.clear()
            self.zygotes.clear()
            remove_uppers()

    def after_fork(self) -> None:
        # Another thread of the parent may have held the lock.
        self.lock = threading.Lock()
        for zygote in self.started:
            zygote.forget()
        self.started.clear()
        self.zygotes.clear()


_registry = _Registry()
os.register_at_fork(after_in_child=_registry.after_fork)
atexit.register(_registry.stop)


def zygote(uid: int, gid: int) -> Zygote:
    """Returns this process's zygote for sandboxes of a user, starting it where there is none.

    Raises:
        SandboxUnavailableError: It cannot start; names the step, the reason and the remedy.
    """
    return _registry.get(uid, gid)


def stop_zygotes() -> None:
    """Ends this process's zygotes and all their sandboxes; the next sandbox starts anew."""
    _registry.stop()
