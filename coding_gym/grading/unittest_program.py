"""unittest, reporting as it goes. A text that runs inside the sandbox; never imported here.

`bootstrap` runs it there, under the Python of the task's environment, so it keeps to the standard
library of Python 3.6. Whatever starts the tests (unittest's own command, a script of the project
such as Django's), they end up in ``unittest.TextTestRunner.run``: its first call reports.
"""

import os
import runpy
import sys
import traceback
import unittest
from pathlib import Path

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

VERSION = "unittest"
_MAX_MESSAGE_CHARS = 300
# Modules of the standard library whose test classes stand for no class of the tree.
_MAKERS = ("unittest", "doctest")


class _Names:
    """What the tests of a suite are called, looked up before any of them runs and changes things.

    A test is ``<file>::<class>::<method>``, or what it calls itself where it is of no such kind.
    """

    def __init__(self, suite: "Any") -> None:
        self._root = str(Path.cwd())
        self._paths: dict[type, str] = {}
        self._prune(suite, set())

    def _prune(self, suite: "Any", seen: "set[Any]") -> None:
        """Looks up every test, and leaves out what is there twice: imported from another module."""
        kept = []
        for test in suite:
            if isinstance(test, unittest.BaseTestSuite):
                self._prune(test, seen)
            elif test in seen:
                continue
            else:
                seen.add(test)
                self._paths.setdefault(type(test), self._path(type(test)))
            kept.append(test)
        if hasattr(suite, "_tests"):
            suite._tests = kept

    def _path(self, kind: type) -> str:
        if kind.__module__.partition(".")[0] in _MAKERS:
            return ""
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return os.path.relpath(file, self._root) if file else ""

    def name(self, test: "Any") -> str:
        """The name of a test by which the grader knows it."""
        path = self._paths.get(type(test), "")
        if not path:
            return str(test.id())
        classes = type(test).__qualname__.split(".")
        return "::".join([path, *classes, test._testMethodName])


class _Result(unittest.TextTestResult):
    """Sends the reporter what unittest says of each test, and prints as usual."""

    def __init__(self, reporter: "Any", names: _Names, *streams: "Any") -> None:
        super().__init__(*streams)
        self._send, self._names = reporter.send, names

    def startTest(self, test: "Any") -> None:  # noqa: N802 — unittest's name, as all below
        name = self._names.name(test)
        spellings = [str(test), test.shortDescription()]  # what a log in full words shows
        self._send("names", name, [str(one) for one in spellings if one])
        self._send("test", name, "setup", "passed", False, "")
        super().startTest(test)

    def addSuccess(self, test: "Any") -> None:  # noqa: N802
        self._say(test, "passed")
        super().addSuccess(test)

    def addFailure(self, test: "Any", err: "Any") -> None:  # noqa: N802
        self._say(test, "failed", _message(err))
        super().addFailure(test, err)

    def addError(self, test: "Any", err: "Any") -> None:  # noqa: N802
        self._say(test, "failed", _message(err))
        super().addError(test, err)

    def addSkip(self, test: "Any", reason: str) -> None:  # noqa: N802
        # It may be a part of a test, or what surrounds tests.
        self._say(getattr(test, "test_case", test), "skipped", str(reason)[:_MAX_MESSAGE_CHARS])
        super().addSkip(test, reason)

    def addExpectedFailure(self, test: "Any", err: "Any") -> None:  # noqa: N802
        self._say(test, "skipped", expected=True)
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test: "Any") -> None:  # noqa: N802
        self._say(test, "failed", "unexpected success")
        super().addUnexpectedSuccess(test)

    def addSubTest(self, test: "Any", subtest: "Any", err: "Any") -> None:  # noqa: N802
        if err is not None:  # parts that went well say nothing
            self._send("test", self._names.name(test), "subtest", "failed", False, _message(err))
        super().addSubTest(test, subtest, err)

    def stopTest(self, test: "Any") -> None:  # noqa: N802
        self._send("test", self._names.name(test), "teardown", "passed", False, "")
        super().stopTest(test)

    def _say(self, test: "Any", outcome: str, message: str = "", *, expected: bool = False) -> None:
        kind = type(test).__name__
        if kind == "_FailedTest":  # a module that could not be imported
            self._send("collect", str(test._testMethodName), outcome, message)
        elif kind == "_ErrorHolder":  # setUpClass, setUpModule and their like
            self._send("collect", str(test), outcome, message)
        else:
            self._send("test", self._names.name(test), "call", outcome, expected, message)


def _message(error: "Any") -> str:
    """One line that says how a test failed."""
    try:
        lines = traceback.format_exception_only(error[0], error[1])[-1].strip().splitlines()
    except Exception:  # noqa: BLE001 — an exception of the tree may not be able to say anything
        lines = [getattr(error[0], "__name__", "")]
    return lines[0][:_MAX_MESSAGE_CHARS] if lines else ""


def _report_first_run(reporter: "Any") -> None:
    """Makes the first call of unittest's runner report, and end the process when it is over."""
    runner = unittest.TextTestRunner
    original = runner.run

    def run(self: "Any", suite: "Any") -> None:
        runner.run = original  # type: ignore[method-assign]  # tests may run suites of their own
        names = _Names(suite)
        self.failfast = False
        self._makeResult = lambda: _Result(
            reporter, names, self.stream, self.descriptions, self.verbosity
        )
        original(self, suite)
        reporter.finish(0)

    runner.run = run  # type: ignore[method-assign, assignment]


def _load(reporter: "Any", modules: "list[str]", roots: "list[str]") -> unittest.TestSuite:
    """Loads the tests of modules, each from the first of the roots that has it."""
    suite = unittest.TestSuite()
    for module in modules:
        folder = _folder(module, roots)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            suite.addTests(unittest.defaultTestLoader.loadTestsFromName(module))
        except BaseException:  # noqa: BLE001 — of one module, which may do anything when imported
            error = sys.exc_info()
            reporter.send("collect", module, "failed", _message(error[:2]))
    return suite


def _folder(module: str, roots: "list[str]") -> str:
    stem = module.replace(".", "/")
    for root in roots:
        folder = Path(root).resolve()
        if any((folder / (stem + end)).is_file() for end in (".py", "/__init__.py")):
            return str(folder)
    return str(Path.cwd())


def run(reporter: "Any", settings: "dict[str, Any]") -> int:
    """Runs tests as ``settings`` say, and does not return where they did run.

    These hold a ``script`` with its ``arguments``, or ``arguments`` of ``python -m unittest``, or
    ``modules`` and the ``roots`` to look for them.
    """
    _report_first_run(reporter)
    arguments: list[str] = settings.get("arguments", [])
    if "script" in settings:
        script = Path(settings["script"]).resolve()
        sys.argv = [settings["script"], *arguments]
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")
        raise SystemExit(f"{script.name} ended without a run of unittest.TextTestRunner")
    sys.path.insert(0, str(Path.cwd()))
    if "arguments" in settings:
        sys.argv = ["python -m unittest", *arguments]
        unittest.main(module=None, argv=sys.argv)
    suite = _load(reporter, settings["modules"], settings["roots"])
    unittest.TextTestRunner(verbosity=2).run(suite)
    return 0
