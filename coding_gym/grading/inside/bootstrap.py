"""The test process: connects to the supervisor and starts the module that runs tests.

The started module imports pytest before the tree is on ``sys.path``, so no file of the tree can
replace pytest. This module runs only under the name ``__inside__``, which its loader sets.
"""

import sys

if __name__ == "__inside__":
    sys.path[:] = [entry for entry in sys.path if entry]  # `-c` adds "", which is the tree

import fcntl
import importlib
import json
import os
import resource

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

_PACKAGE = "_task_tests"
# A fork copies the table of all descriptors up to the highest descriptor, so this limit is small.
_MAX_FILES = 65536


class Reporter:
    """Sends records to the supervisor; each line is the nonce of this run and a record as JSON."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        # Tests can replace the functions of these modules, so the reporter keeps references.
        self._write, self._getpid, self._dumps = os.write, os.getpid, json.dumps
        self._exit, self._streams = os._exit, (sys.stdout, sys.stderr)
        self._descriptor, self._nonce, self._owner = descriptor, nonce, os.getpid()

    def send(self, *record: object) -> None:
        """Sends one record; does nothing in a process that a test forked."""
        if self._getpid() != self._owner:
            return
        data = f"{self._nonce} {self._dumps(record)}\n".encode()
        while data:
            data = data[self._write(self._descriptor, data) :]

    def finish(self, status: int) -> None:
        """Reports that the run is complete, and ends the process.

        Exit handlers of the code under test do not run, because they could delay the end.
        """
        self.send("end", status)
        for stream in self._streams:
            stream.flush()
        self._exit(0)


def _empty_stdin() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _move_above_limit(descriptor: int, lowest: int) -> int:
    """Moves a descriptor above the limit of open files; returns the new descriptor.

    Tests that count or close all descriptors up to the limit do not affect the new descriptor, and
    programs that tests start do not inherit it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _MAX_FILES:
        top = soft + lowest + 1
        if hard != resource.RLIM_INFINITY:
            top = min(hard, top)
        resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
        lowest = top - 1
        soft = min(soft, lowest)
    new_descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return new_descriptor


def _load(modules: "list[tuple[str, str]]") -> "Any":
    """Makes modules from their texts; each may import earlier modules. Returns the last module."""
    module = sys.modules[_PACKAGE] = type(sys)(_PACKAGE)
    for name, text in modules:
        module = sys.modules[f"{_PACKAGE}.{name}"] = type(sys)(f"{_PACKAGE}.{name}")
        vars(module)["__package__"] = _PACKAGE
        exec(compile(text, f"<{name}>", "exec"), vars(module))  # noqa: S102 — this package's text
    return module


def _main() -> None:
    start = json.loads(sys.stdin.buffer.readline().decode())
    program = _load(start["modules"])
    config = json.loads(sys.stdin.buffer.read().decode())
    _empty_stdin()
    importlib.invalidate_caches()  # the caches of a fork are older than the tree
    descriptor = _move_above_limit(start["descriptor"], config["lowest"])
    reporter = Reporter(descriptor, config["nonce"])
    reporter.send("ready")
    reporter.finish(program.run(reporter, config["settings"]))


if __name__ == "__inside__":
    _main()
