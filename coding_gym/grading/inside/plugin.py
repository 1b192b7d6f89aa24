"""One run of pytest with a plugin that selects tests and reports their outcomes."""

import builtins
import importlib
import linecache
import os
import sys
import unittest
import unittest.case
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest import config as pytest_config

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

# pytest would import its plug-ins only after the process has received its settings.
for plugin in getattr(pytest_config, "default_plugins", ()):
    importlib.import_module(f"_pytest.{plugin}")

_MAX_MESSAGE_CHARS = 300
_NO_TESTS = 5  # pytest's exit code
_MAX_VALUES, _MAX_VALUE_CHARS = 4, 4000
_MAX_DEPTH = 6  # nested containers in a message
_PLAIN = {
    *(f"builtins.{name}" for name in ("bool", "int", "float", "complex", "str", "bytes")),
    *("builtins.NoneType", "builtins.range", "builtins.type"),
    *(f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta")),
    *("decimal.Decimal", "fractions.Fraction", "uuid.UUID"),
    *("pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib._local.PosixPath"),
}
# Exceptions that end a test early without a failed assertion.
_NO_FAILURES = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)


class _Check:
    """A check: counts passes and failures of an assertion, and lets the test continue."""

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
        """Records a value that the assertion compares, and returns it."""
        if len(self.values) < _MAX_VALUES:
            self.values.append(_text(value))
        return value


class Plugin:
    """Selects tests, and reports each phase of each test.

    Args:
        reporter: Its ``send`` receives the records.
        settings: ``options`` (values of pytest's options, which override the project's
            configuration), ``tests`` (ids of the tests to run, with or without parameters; None
            for all tests), ``reverse`` (whether the tests run in the opposite order), and
            ``num_checks`` (the number of items of ``__checks__``, which record single assertions).
    """

    def __init__(self, reporter: "Any", settings: "dict[str, Any]") -> None:
        self._options = settings["options"]
        self._folder = ""
        tests = settings.get("tests")
        self._reporter, self._reverse = reporter, settings.get("reverse", False)
        self._tests = None if tests is None else set(tests)
        self._checks = [_Check() for _ in range(settings.get("num_checks", 0))]
        if self._checks:
            builtins.__checks__ = self._checks  # type: ignore[attr-defined]
            # The message of a negated assertion must not call `__repr__` of the program, which can
            # change its state: a cache that removes old entries would pass the next assertion.
            vars(unittest.case).update(
                safe_repr=_plain_repr,
                _common_shorten_repr=lambda *values: tuple(map(_plain_repr, values)),
                pprint=SimpleNamespace(pformat=_plain_repr),
            )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):  # type: ignore[no-untyped-def]
        """Removes tests that are not selected; reverses the order if ``reverse`` is true."""
        tests = self._tests
        if tests is not None:
            names = [(item, self.name(item.nodeid)) for item in items]
            items[:] = [item for item, n in names if {n, n.partition("[")[0]} & tests]
        if self._reverse:
            items.reverse()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config):  # type: ignore[no-untyped-def]  # pytest's own types
        """Overrides options of the project, and finds pytest's root."""
        for name, value in self._options.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        # Node ids are relative to pytest's root, which can differ from the working directory.
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        folder = os.path.relpath(root)
        self._folder = "" if folder == "." else f"{folder}/"
        yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):  # type: ignore[no-untyped-def]
        """Sends the outcome of one phase of one test."""
        phase = "subtest" if hasattr(report, "context") else report.when
        message = "" if report.outcome == "passed" else _message(report)
        is_xfail = hasattr(report, "wasxfail")
        name = self.name(report.nodeid)
        self._reporter.send("test", name, phase, report.outcome, is_xfail, message)
        if report.when == "teardown" and self._checks:
            self._send_checks(name)

    def _send_checks(self, name: str) -> None:
        """Sends the reports of the checks of a test, and resets the checks."""
        rows = []
        for number, check in enumerate(self._checks):
            if check.counts != [0, 0]:
                rows.append([number, *check.counts, check.message, check.values])
                self._checks[number] = _Check()
        self._reporter.send("checks", name, rows)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report):  # type: ignore[no-untyped-def]
        """Reports a file that could not be collected."""
        if report.outcome != "passed":
            name = self.name(report.nodeid)
            self._reporter.send("collect", name, report.outcome, _message(report))

    def name(self, node_id: str) -> str:
        """Returns the id relative to the workspace, for a node id relative to pytest's root."""
        if not self._folder:
            return str(node_id)
        path, colons, rest = node_id.partition("::")
        return os.path.normpath(self._folder + path) + colons + rest


def _plain_repr(value: "Any", short: bool = False) -> str:
    """Returns ``repr`` of a plain value, else the type's name; calls no code of the program."""
    del short  # an argument of unittest's `safe_repr`
    return repr(value) if _is_plain(value) else f"<{type(value).__name__}>"


def _is_plain(value: "Any", depth: int = 0) -> bool:
    kind = type(value)
    if kind in (list, tuple, set, frozenset, dict) and depth < _MAX_DEPTH:
        parts = [*value, *value.values()] if kind is dict else value
        return all(_is_plain(part, depth + 1) for part in parts)
    return f"{kind.__module__}.{kind.__qualname__}" in _PLAIN


def _text(value: "Any") -> str:
    try:
        return repr(value)[:_MAX_VALUE_CHARS]
    except Exception:  # noqa: BLE001 — code under test can raise any exception
        return ""


def _first_line(kind: type, error: object, trace: "Any") -> str:
    """Returns one line about a failed assertion: its message, or else its source."""
    try:
        text = str(error).strip() if all(map(_is_plain, getattr(error, "args", ()))) else ""
    except Exception:  # noqa: BLE001 — code under test can raise any exception
        text = ""
    if not text:
        line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        text = line.partition("]: ")[2].strip()
    line = text.splitlines()[0] if text else ""
    if not line or kind is not AssertionError:
        line = f"{kind.__name__}: {line}"
    return line[:_MAX_MESSAGE_CHARS]


def _message(report) -> str:  # type: ignore[no-untyped-def]
    """Returns the reason of a failed or skipped test in one line."""
    if isinstance(report.longrepr, tuple):  # file, line and reason of a skipped test
        return str(report.longrepr[-1]).strip()[:_MAX_MESSAGE_CHARS]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr).strip()
    lines = text.splitlines() or [""]
    return (lines[0] if crash is not None else lines[-1]).strip()[:_MAX_MESSAGE_CHARS]


def run(reporter: "Any", settings: "dict[str, Any]") -> int:
    """Runs the files of ``settings`` as ``python -m pytest`` would; returns its exit code."""
    # pytest runs no test if any of its files is missing.
    paths = [path for path in settings["paths"] if Path(path).exists()]
    if not paths:
        return 0
    status = run_pytest(paths, [Plugin(reporter, settings)])
    if status == _NO_TESTS:
        names = "python_files, python_classes and python_functions"
        text = "pytest: error: no test was collected; remedy: check the options " + names
        print(text, flush=True)  # noqa: T201 — for the detail of the grade
    return status


def run_pytest(arguments: "list[str]", plugins: "list[Any]") -> int:
    """Runs pytest as ``python -m pytest`` does; returns its exit code."""
    package = Path(str(pytest.__file__))  # a single module before pytest 5.4
    program = package.with_name("__main__.py") if package.stem == "__init__" else package
    vars(sys.modules["__main__"])["__file__"] = str(program)
    sys.argv = [str(program), *arguments]
    sys.path.insert(0, str(Path.cwd()))
    return int(pytest.main(arguments, plugins=plugins))
