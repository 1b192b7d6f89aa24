"""An owner of sandboxes that works until its standard input closes, or until it is killed.

Its threads open, run, write, snapshot, restore and grade. Each tells what it finished, and which
call raised ``SandboxError`` after how long, as one JSON line. What else a call raises ends it.
``SIGUSR1`` makes it write where each thread is to standard error.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from coding_gym.errors import SandboxError
from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend

NUM_THREADS = 4
_SUITE = "for f in package/*.py; do grep -c NUMBER $f; done | sort | uniq -c; git --version"


class Worker:
    """One thread's work: an endless row of episodes."""

    def __init__(self, number: int, backend: NamespaceBackend, spec: SandboxSpec) -> None:
        self._number = number
        self._backend = backend
        self._spec = spec
        self._began = 0.0

    def work(self, stop: threading.Event) -> None:
        """Plays episodes until told to stop; tells of each."""
        try:
            while not stop.is_set():
                try:
                    self._episode()
                    self._tell("done")
                except SandboxError:
                    self._tell("error", took_s=round(time.monotonic() - self._began, 3))
        except BaseException as error:  # noqa: BLE001 - told, and the end of this process
            self._tell("broken", why=repr(error))
            os._exit(70)

    def _episode(self) -> None:
        self._began = time.monotonic()
        with self._backend.open(self._spec) as sandbox:
            for turn in range(3):
                self._began = time.monotonic()
                result = sandbox.run(f"echo {turn} >> package/notes; sleep 0.01; cat package/notes")
                assert result.output.endswith(f"{turn}\n"), result
            self._began = time.monotonic()
            sandbox.write_file("package/fix.py", b"fixed = True\n")
            self._began = time.monotonic()
            snapshot = sandbox.snapshot()
            self._began = time.monotonic()
            sandbox.run("rm -rf package; (setsid sleep 50 &)")
            self._began = time.monotonic()
            sandbox.restore(snapshot)
            self._began = time.monotonic()
            assert sandbox.read_file("package/fix.py") == b"fixed = True\n"
            self._grade(snapshot.data)

    def _grade(self, patch: bytes) -> None:
        self._began = time.monotonic()
        with self._backend.open(self._spec) as clean:
            self._began = time.monotonic()
            clean.write_file("/tmp/patch", patch)  # noqa: S108 - the sandbox's own
            self._began = time.monotonic()
            result = clean.run(_SUITE)
            assert result.exit_code == 0, result
        self._began = time.monotonic()

    def _tell(self, event: str, **facts: object) -> None:
        line = json.dumps({"thread": self._number, "event": event, **facts})
        os.write(1, f"{line}\n".encode())


def main(folder: str, changes: str) -> None:
    """Works on a layer until standard input closes."""
    faulthandler.register(signal.SIGUSR1)
    backend = NamespaceBackend(changes="disk" if changes == "disk" else "auto")
    spec = SandboxSpec(layers=(Path(folder),))
    stop = threading.Event()
    threads = [
        threading.Thread(target=Worker(number, backend, spec).work, args=(stop,), daemon=True)
        for number in range(NUM_THREADS)
    ]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
