"""pytest, reporting as it goes. A text that runs inside the sandbox; never imported here.

`bootstrap` runs it there, under the Python of the task's environment, so it keeps to Python 3.6 and
pytest 4.
"""

import importlib
import os
import sys
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
_NO_TESTS = 5  # pytest's exit code


class _Plugin:
    """Tells the reporter what pytest says of each phase of each test."""

    def __init__(self, reporter: "Any", options: "dict[str, object]") -> None:
        self._reporter, self._options = reporter, options
        self._folder = ""

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
        message = "" if report.outcome == "passed" else _message(report)
        expected = hasattr(report, "wasxfail")
        name = self._name(report.nodeid)
        self._reporter.send("test", name, when, report.outcome, expected, message)

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


def _message(report) -> str:  # type: ignore[no-untyped-def]
    """One line that says why a test failed or was skipped."""
    if isinstance(report.longrepr, tuple):  # where and why a test was skipped
        return str(report.longrepr[-1]).strip()[:_MAX_MESSAGE_CHARS]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr).strip()
    lines = text.splitlines() or [""]
    return (lines[0] if crash is not None else lines[-1]).strip()[:_MAX_MESSAGE_CHARS]


def run(reporter: "Any", settings: "dict[str, Any]") -> int:
    """Runs the files of ``settings`` as ``python -m pytest`` would; returns its exit code."""
    # A file that is not there would keep all others from running.
    arguments = [path for path in settings["paths"] if Path(path).exists()]
    sys.argv = [str(pytest.__file__), *arguments]
    sys.path.insert(0, str(Path.cwd()))
    if not arguments:
        return 0
    status = int(pytest.main(arguments, plugins=[_Plugin(reporter, settings["options"])]))
    if status == _NO_TESTS:
        names = "python_files, python_classes and python_functions"
        print("pytest: error: no test was collected; compare", names)  # noqa: T201 — for people
    return status
