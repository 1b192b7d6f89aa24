"""pytest, reporting as it goes. A text that runs inside the sandbox; never imported here.

`bootstrap` runs it there, under the Python of the task's environment, so it keeps to Python 3.6 and
pytest 4.
"""

import builtins
import importlib
import linecache
import os
import sys
import unittest
from pathlib import Path

import pytest
from _pytest import config as pytest_config

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

VERSION = pytest.__version__
# As pytest does when it is called; until then there may be time.
for plugin in getattr(pytest_config, "default_plugins", ()):
    importlib.import_module(f"_pytest.{plugin}")

_MAX_MESSAGE_CHARS = 300
_MAX_VALUES, _MAX_VALUE_CHARS = 4, 4000
# What ends a test early, and is no failure of an assertion.
_NO_FAILURES = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)


class _Check:
    """One assertion: counts how often it passed and failed, and lets its test go on."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        self.message = ""
        self.values = []  # type: list[str]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace):  # type: ignore[no-untyped-def]
        if kind is None:
            self.counts[0] += 1
            return False
        if not issubclass(kind, (Exception, pytest.fail.Exception)):
            return False
        if issubclass(kind, _NO_FAILURES):
            return False
        self.counts[1] += 1
        if not self.message:
            self.message = _first_line(kind, error, trace)
        return True

    def see(self, value: "Any") -> "Any":
        """Notes a value that an assertion compares."""
        if len(self.values) < _MAX_VALUES:
            self.values.append(_text(value))
        return value


class _Plugin:
    """Tells the reporter what pytest says of each phase of each test."""

    def __init__(self, reporter: "Any", settings: "dict[str, Any]") -> None:
        self._reporter, self._options = reporter, settings["options"]
        self._only = set(settings.get("only", ()))
        self._folder = ""
        self._checks = [_Check() for _ in range(settings.get("num_checks", 0))]
        if self._checks:
            builtins.__checks__ = self._checks  # type: ignore[attr-defined]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):  # type: ignore[no-untyped-def]
        """Leaves the functions that are asked for, if any are."""
        if self._only:
            items[:] = [i for i in items if self._name(i.nodeid).partition("[")[0] in self._only]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config):  # type: ignore[no-untyped-def]  # pytest's own types
        """Overrules options that would change which tests run, or where."""
        for name, value in self._options.items():
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
        name = self._name(report.nodeid)
        self._reporter.send("test", name, when, report.outcome, expected, message)
        if report.when == "teardown" and self._checks:
            self._send_checks(name)

    def _send_checks(self, name: str) -> None:
        """Sends what the assertions of a test recorded, and forgets it."""
        rows = []
        for number, check in enumerate(self._checks):
            if check.counts != [0, 0]:
                rows.append([number, *check.counts, check.message, check.values])
                self._checks[number] = _Check()
        self._reporter.send("checks", name, rows)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report):  # type: ignore[no-untyped-def]
        """Sends that a file could not be collected."""
        if report.outcome != "passed":
            name = self._name(report.nodeid)
            self._reporter.send("collect", name, report.outcome, _message(report))

    def _name(self, node_id: str) -> str:
        if not self._folder:
            return str(node_id)
        path, colons, rest = node_id.partition("::")
        return os.path.normpath(self._folder + path) + colons + rest


def _text(value: "Any") -> str:
    try:
        return repr(value)[:_MAX_VALUE_CHARS]
    except Exception:  # noqa: BLE001 — the code under test wrote it
        return ""


def _first_line(kind: type, error: object, trace: "Any") -> str:
    """One line that says how an assertion failed; its source where the error does not say it."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 — the code under test wrote it
        text = ""
    if not text:
        source = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        text = source.partition("]: ")[2].strip()
    name = "" if kind is AssertionError and text else kind.__name__ + ": "
    return (name + text.splitlines()[0] if text else name)[:_MAX_MESSAGE_CHARS]


def _message(report) -> str:  # type: ignore[no-untyped-def]
    """One line that says how a report failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr).strip()
    lines = text.splitlines() or [""]
    return (lines[0] if crash is not None else lines[-1]).strip()[:_MAX_MESSAGE_CHARS]


def run(reporter: "Any", settings: "dict[str, Any]") -> int:
    """Runs the files of ``settings`` as ``python -m pytest`` would; returns its exit code."""
    # A file that is not there would keep all others from running.
    arguments = [path for path in settings["paths"] if Path(path).exists()]
    package = Path(str(pytest.__file__))  # a module of its own before pytest 5.4
    started = package.with_name("__main__.py") if package.stem == "__init__" else package
    vars(sys.modules["__main__"])["__file__"] = str(started)
    sys.argv = [str(started), *arguments]
    sys.path.insert(0, str(Path.cwd()))
    return int(pytest.main(arguments, plugins=[_Plugin(reporter, settings)])) if arguments else 0
