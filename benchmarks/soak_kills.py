"""Kills owners, zygotes and sandboxes at random moments, and looks at what that leaves."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from figures import progress
from fixtures import children, mounts, pidfds, tree, wait_gone
from soak_owner import NUM_THREADS
from soak_state import num_files

_OWNER = Path(__file__).with_name("soak_owner.py")
_KINDS = ("owner", "outer", "server", "init")
_GONE_S = 5.0
_ERROR_S = 5.0  # how long a call may take to notice that its sandbox is dead
_PATIENCE_S = 60.0  # of a thread that is slow because the machine is busy, not because it hangs


class Owner:
    """A process whose threads work in sandboxes, and what they tell."""

    def __init__(self, layer: Path, *, on_disk: bool) -> None:
        argv = [sys.executable, str(_OWNER), str(layer), "disk" if on_disk else "auto"]
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the owner
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )
        assert self.process.stdout is not None
        self._pipe = self.process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        self._rest = b""

    def listen(self, timeout_s: float) -> list[dict[str, Any]]:
        """Returns what the threads report, waiting for it at most so long."""
        if not select.select([self._pipe], [], [], timeout_s)[0]:
            return []
        *lines, self._rest = (self._rest + os.read(self._pipe, 1 << 16)).split(b"\n")
        return [json.loads(line) for line in lines]

    def all_finish_one(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Waits until each thread has finished an episode; returns errors and problems."""
        waiting = set(range(NUM_THREADS))
        errors: list[dict[str, Any]] = []
        deadline = time.monotonic() + _PATIENCE_S
        while waiting:
            reports = self.listen(max(0.0, deadline - time.monotonic()))
            if not reports and (self.process.poll() is not None or time.monotonic() > deadline):
                return errors, [f"threads {sorted(waiting)} finish nothing more: {self._stacks()}"]
            for event in reports:
                if event["event"] == "broken":
                    return errors, [f"a thread broke: {event['why']}"]
                if event["event"] == "error":
                    errors.append(event)
                else:
                    waiting.discard(event["thread"])
        return errors, []

    def _stacks(self) -> str:
        """Returns what the owner wrote to standard error, at last where its threads are."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1.0)  # for all stacks to be written: nothing tells that they are
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def victim(self, kind: str, chance: random.Random) -> int | None:
        """Returns the pid of what is to be killed; None where there is no such process now."""
        if kind == "owner":
            return self.process.pid
        for outer in children(self.process.pid):
            servers = children(outer)
            if kind == "outer" and servers:
                return outer
            for server in servers:
                inits = children(server)
                if kind == "server":
                    return server
                if inits:
                    return chance.choice(inits)
        return None

    def stop(self) -> None:
        """Lets it end in its own time."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while self.process.poll() is None:
            self.listen(0.1)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._stderr.close()


class _Killer:
    def __init__(self, folder: Path, chance: random.Random, *, on_disk: bool) -> None:
        self.folder = folder
        self.chance = chance
        self.on_disk = on_disk
        self.killed: Counter[str] = Counter()
        self._next: list[str] = []
        self.problems: list[str] = []
        self.slowest_error_s = 0.0
        self.num_errors = 0
        self.slowest_end_ms = 0.0
        self.mounts = mounts()
        self.owner = self._start()

    def _start(self) -> Owner:
        owner = Owner(self.folder / "layer", on_disk=self.on_disk)
        self.problems += owner.all_finish_one()[1]
        return owner

    def kill(self) -> None:
        """Kills one process at a random moment and judges what follows."""
        if not self._next:
            self._next = self.chance.sample(_KINDS, len(_KINDS))
        kind = self._next.pop()
        deadline = time.monotonic() + self.chance.uniform(0.0, 0.3)
        while (left := deadline - time.monotonic()) > 0:
            self._require_no_error(self.owner.listen(left))
        pid = self.owner.victim(kind, self.chance)
        if pid is None:
            return
        self.killed[kind] += 1
        if kind == "owner":
            self._kill_owner()
            return
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # its sandbox was closed meanwhile
            return
        errors, problems = self.owner.all_finish_one()
        self.problems += [f"after the {kind}: {problem}" for problem in problems]
        self._judge(kind, errors)
        if self.owner.process.poll() is not None:
            self.owner = self._start()

    def _kill_owner(self) -> None:
        descriptors = pidfds(list(tree(self.owner.process.pid))[1:])
        began = time.monotonic()
        self.owner.process.kill()
        num_left = wait_gone(descriptors, _GONE_S)
        self.slowest_end_ms = max(self.slowest_end_ms, (time.monotonic() - began) * 1e3)
        for descriptor in descriptors:
            os.close(descriptor)
        if num_left:
            self.problems.append(f"{num_left} processes outlived their owner")
        self.owner.stop()
        self.require_nothing_left()
        self.owner = self._start()

    def _judge(self, kind: str, errors: list[dict[str, Any]]) -> None:
        threads = [event["thread"] for event in errors]
        self.num_errors += len(errors)
        self.slowest_error_s = max([self.slowest_error_s, *(event["took_s"] for event in errors)])
        if any(event["took_s"] > _ERROR_S for event in errors):
            self.problems.append(f"after the {kind}: an error took long: {errors}")
        if len(threads) > len(set(threads)):
            self.problems.append(f"after the {kind}: a thread failed twice: {errors}")
        if kind == "init" and len(threads) > 1:
            self.problems.append(f"one sandbox died and {len(threads)} threads noticed: {errors}")

    def _require_no_error(self, reports: list[dict[str, Any]]) -> None:
        if wrong := [event for event in reports if event["event"] != "done"]:
            self.problems.append(f"with nothing killed: {wrong}")

    def require_nothing_left(self) -> None:
        """Notes what dead owners left: mounts, temporary files, folders for changes."""
        if set(mounts()) - set(self.mounts):
            self.problems.append("mounts are left")
        uppers = self.folder / "cache" / "coding_gym" / "uppers"
        deadline = time.monotonic() + _GONE_S
        while (left := num_files(uppers) + num_files(self.folder / "tmp")) and (
            time.monotonic() < deadline
        ):
            select.select([], [], [], 0.05)  # the janitor has nothing to wait on
        if left:
            self.problems.append(f"{left} files are left")


def kills(folder: Path, count: int, chance: random.Random, *, on_disk: bool) -> dict[str, Any]:
    """Kills so often; returns whom, how it went, and what did not hold.

    Args:
        folder: Holds ``layer``, and temporary files and caches in ``tmp`` and ``cache``.
        count: How many processes are killed.
        chance: Says who and when.
        on_disk: Whether the sandboxes' changes go to a disk.
    """
    killer = _Killer(folder, chance, on_disk=on_disk)
    try:
        while killer.killed.total() < count and not killer.problems:
            killer.kill()
            if killer.killed.total() % 20 == 0:
                progress(f"  {killer.killed.total()} kills")
    finally:
        killer.owner.stop()
    killer.require_nothing_left()
    return {
        "count": killer.killed.total(),
        "whom": dict(killer.killed),
        "errors": killer.num_errors,
        "slowest_error_s": killer.slowest_error_s,
        "slowest_end_of_an_owner_ms": round(killer.slowest_end_ms, 1),
        "problems": killer.problems,
    }
