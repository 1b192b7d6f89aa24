"""What a living process uses of a cache is known to others, and what a dead one used is not."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

import pytest

from coding_gym.sandbox.folder_cache import CacheUses, FolderCache

_SPAWN = multiprocessing.get_context("spawn")


def in_use(root: Path) -> set[str]:
    """Returns which of the entries that these tests use is in use."""
    used = set()
    for name in ("templates/a", "pytest/b", "templates/c"):
        with CacheUses(root).unused(name) as is_unused:
            used |= set() if is_unused else {name}
            # Nor does one who is about to remove it use it.
            assert CacheUses(root).is_used(name) != is_unused
    return used


def _use(root: Path, names: list[str], messages: Connection) -> None:
    uses = CacheUses(root)
    for name in names:
        uses.note(name)
    messages.send("noted")
    messages.recv()


Start = Callable[..., tuple[multiprocessing.process.BaseProcess, Connection]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Returns a function that starts a process which uses things."""

    def begin(*names: str) -> tuple[multiprocessing.process.BaseProcess, Connection]:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_use, args=(tmp_path, list(names), theirs))
        process.start()
        assert ours.recv() == "noted"
        return process, ours

    return begin


@pytest.mark.slow
def test_entries_of_other_processes_are_in_use(tmp_path: Path, start: Start) -> None:
    first, to_first = start("templates/a", "pytest/b")
    second, _ = start("templates/c")
    assert in_use(tmp_path) == {"templates/a", "pytest/b", "templates/c"}
    assert second.pid
    os.kill(second.pid, signal.SIGKILL)
    second.join()
    assert in_use(tmp_path) == {"templates/a", "pytest/b"}
    to_first.send("end")
    first.join()
    assert in_use(tmp_path) == set()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_holds_on_to_what_its_parent_used(tmp_path: Path) -> None:
    uses = CacheUses(tmp_path)
    uses.note("templates/a")
    waiting, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(waiting, 1)
        os._exit(0)
    os.close(waiting)
    del uses
    gc.collect()
    assert in_use(tmp_path) == {"templates/a"}
    os.close(go)
    os.waitpid(child, 0)
    assert in_use(tmp_path) == set()


def test_waiting_for_a_build_is_reported_once(tmp_path: Path) -> None:
    messages: list[str] = []
    started = Event()
    threads: list[Thread] = []

    def build(_: Path) -> None:  # in which a thread asks for the same key
        waiting = Thread(
            target=FolderCache(tmp_path).get,
            args=("key", lambda _: (messages.append("built twice"), started.set())),
            kwargs={"on_wait": lambda: (messages.append("waiting"), started.set())},
        )
        waiting.start()
        threads.append(waiting)
        assert started.wait(30)

    FolderCache(tmp_path).get("key", build, on_wait=lambda: messages.append("never"))
    threads[0].join()
    assert messages == ["waiting"]
