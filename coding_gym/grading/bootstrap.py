"""The test process of a grading run. A text that runs inside the sandbox; never imported here.

It runs under the Python of the task's environment, so it keeps to Python 3.6 and pytest 4. pytest
is imported before the tree is on ``sys.path``, so that no file of the tree can take its place. It
acts only under the name ``__inside__``, which its loader gives it.
"""

import sys

if __name__ == "__inside__":
    sys.path[:] = [entry for entry in sys.path if entry]  # `-c` puts "" there: the tree

import fcntl
import json
import os
from pathlib import Path

import pytest

# Whatever a project's configuration says of these, all tests run, here, once, in order.
_NEUTRAL_OPTIONS: "dict[str, object]" = {
    "maxfail": 0,
    "continue_on_collection_errors": True,
    "numprocesses": None,
    "dist": "no",
    "tx": [],
    "usepdb": False,
    "trace": False,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "reruns": 0,
    "randomly_reorganize": False,
    "tbstyle": "native",
    "showlocals": False,
}
_MAX_MESSAGE_CHARS = 300


class Reporter:
    """Sends every outcome to the supervisor, a line of JSON after the nonce of this run."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        # Kept here because tests replace the functions of these modules while they run.
        self._write, self._getpid, self._dumps = os.write, os.getpid, json.dumps
        self._descriptor, self._nonce, self._owner = descriptor, nonce, os.getpid()
        self._folder = ""

    def send(self, *record: object) -> None:
        """Sends one record; a process that a test forked sends nothing."""
        if self._getpid() != self._owner:
            return
        data = f"{self._nonce} {self._dumps(record)}\n".encode()
        while data:
            data = data[self._write(self._descriptor, data) :]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config):  # type: ignore[no-untyped-def]  # pytest's own types
        """Overrules options that would change which tests run, or where."""
        for name, value in _NEUTRAL_OPTIONS.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        # Node ids begin at pytest's root, which is not always where it was started.
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        folder = os.path.relpath(root)
        self._folder = "" if folder == "." else f"{folder}/"
        yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):  # type: ignore[no-untyped-def]
        """Sends the outcome of one phase of one test."""
        when = "subtest" if hasattr(report, "context") else report.when
        message = _message(report) if report.outcome == "failed" else ""
        expected = hasattr(report, "wasxfail")
        self.send("test", self._name(report.nodeid), when, report.outcome, expected, message)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report):  # type: ignore[no-untyped-def]
        """Sends that a file could not be collected."""
        if report.outcome != "passed":
            self.send("collect", self._name(report.nodeid), report.outcome, _message(report))

    def _name(self, node_id: str) -> str:
        if not self._folder:
            return str(node_id)
        path, colons, rest = node_id.partition("::")
        return os.path.normpath(self._folder + path) + colons + rest


def _message(report) -> str:  # type: ignore[no-untyped-def]
    """One line that says how a report failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr).strip()
    lines = text.splitlines() or [""]
    return (lines[0] if crash is not None else lines[-1]).strip()[:_MAX_MESSAGE_CHARS]


def _silence_stdin() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _main() -> None:
    config = json.loads(sys.stdin.buffer.read().decode())
    _silence_stdin()
    # Out of the way of tests that count descriptors, and not inherited by what they start.
    descriptor = fcntl.fcntl(config["descriptor"], fcntl.F_DUPFD_CLOEXEC, config["lowest"])
    os.close(config["descriptor"])
    reporter = Reporter(descriptor, config["nonce"])
    reporter.send("ready", pytest.__version__)
    # A file that is not there would keep all others from running.
    arguments = [path for path in config["paths"] if Path(path).exists()]
    sys.argv = [str(pytest.__file__), *arguments]
    sys.path.insert(0, str(Path.cwd()))
    status = pytest.main(arguments, plugins=[reporter]) if arguments else 0
    reporter.send("end", int(status))
    # What the tree left to run at exit could only hold things up.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__inside__":
    _main()
