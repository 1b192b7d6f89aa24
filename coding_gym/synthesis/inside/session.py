"""One run of pytest in this process, and what it needs to start fast."""

# ruff: noqa: TID252 - in the sandbox this package has another name

from __future__ import annotations

import contextlib
import importlib
import io
import os
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .forking import forked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping

    from .recorder import Recorder

# Runs more of a test that draws from chance: one that passes half the time does in one of 256.
NUM_CHANCES = 8
# Where each test has a limit of its own, a run of tests that all wait for ever may last so long.
MAX_STILL_S = 60.0
_USAGE_ERROR = 4  # pytest's exit code where its arguments or a conftest.py cannot be used


def root_folder() -> str:
    """Returns the project's folder, with a slash at its end."""
    return f"{os.path.realpath(Path.cwd())}/"


class _Options:
    """A pytest plugin that overrules options that would change which tests run, or where."""

    def __init__(self, options: Mapping[str, object]) -> None:
        self._options = options

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config: Any) -> Generator[None, Any, None]:
        """Sets them, those that this pytest has."""
        for name, value in self._options.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        yield


class SharedStart:
    """A pytest plugin that does something else where tests would be collected, and ends there.

    What is done may fork, and the fork then run tests with `run`: pytest has started already.

    Args:
        work: What to do.
        changed: Files that the forks change. Where one is imported by then, a fork would run what
            it was before; nothing is done.

    Attributes:
        result: What the work returned; None where nothing was done.
    """

    def __init__(self, work: Callable[[], Any], changed: Collection[str] = ()) -> None:
        self.result: Any = None
        self._work = work
        self._changed = {os.path.realpath(name) for name in changed}
        self._session: Any = None

    def run(self, chance: int, recorder: Recorder) -> Recorder:
        """Collects and runs tests in this fork; as `run_tests` does from the beginning."""
        random.seed(chance)
        hooks = self._session.config.hook
        self._session.config.pluginmanager.register(recorder)
        with contextlib.suppress(BaseException):  # as pytest does: what was noted counts
            hooks.pytest_collection(session=self._session)
            hooks.pytest_runtestloop(session=self._session)
        return recorder

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> bool | None:
        """Does the work; forks come here again, and go on to collect."""
        if self._session is not None:
            return None
        self._session = session
        files = {str(getattr(module, "__file__", None)) for module in [*sys.modules.values()]}
        # pytest-randomly draws a seed as it starts; all forks would have the same.
        is_seeded = session.config.pluginmanager.hasplugin("randomly")
        if not is_seeded and self._changed.isdisjoint(map(os.path.realpath, files)):
            self.result = self._work()
        return True


def run_pytest(arguments: Iterable[str], options: Mapping[str, object], plugin: Any) -> object:
    """Runs pytest, its output thrown away, and returns its exit code.

    Args:
        arguments: What it is told.
        options: Values of its options, whatever the project's configuration says.
        plugin: Is registered with it.
    """
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    root = str(Path.cwd())
    if sys.path[0] != root:
        sys.path.insert(0, root)
    sys.argv = [str(pytest.__file__), *arguments]
    arguments = [*arguments, "-p", "no:cacheprovider", f"--rootdir={root}"]
    return pytest.main(arguments, plugins=[_Options(options), plugin])


def _refusal(arguments: Iterable[str], options: Mapping[str, object]) -> str:
    """Starts pytest again, and returns the reason that it prints for refusing to start."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.suppress(BaseException):
        run_pytest(arguments, options, object())
    text = said.getvalue().strip()
    of_options = re.findall(r"^\S+: error: (.*)", text, re.MULTILINE)
    return (of_options or text.split("\n"))[-1][:300]


def run_tests(
    arguments: Iterable[str], options: Mapping[str, object], chance: int, recorder: Recorder
) -> Recorder:
    """Runs tests once, and returns the recorder.

    Args:
        arguments: What pytest is told.
        options: Values of pytest's options; see `run_pytest`.
        chance: Seed of the random generator that all tests share.
        recorder: Chooses the tests, and notes how they end.
    """
    random.seed(chance)
    if run_pytest(arguments, options, recorder) == _USAGE_ERROR and not recorder.outcomes:
        recorder.collect_error = recorder.collect_error or _refusal(arguments, options)
    return recorder


def in_one_start(
    arguments: Iterable[str],
    options: Mapping[str, object],
    work: Callable[[SharedStart], Any],
    changed: Collection[str] = (),
) -> Any:
    """Starts pytest in a fork, does some work there, and returns its result.

    Args:
        arguments: What pytest is told.
        options: As for `run_pytest`.
        work: Takes what runs tests in forks of its own.
        changed: As for `SharedStart`.

    Returns:
        None where nothing was done.

    Raises:
        RuntimeError: The fork died, which code of the project must have brought about.
    """

    def run() -> list[Any]:
        shared = SharedStart(lambda: work(shared), changed)
        with contextlib.suppress(BaseException):  # raised by a plugin as the session ends
            run_pytest(arguments, options, shared)
        return [shared.result]

    done = forked(run)
    if done is None:
        raise RuntimeError("the tests ended the process that starts them")
    return done[0]


def foreign_modules(root: str) -> list[str]:
    """Returns the imported modules that are not the project's, in the order of their import."""
    return [
        name
        for name, module in list(sys.modules.items())
        if not str(getattr(module, "__file__", None) or root).startswith(root)
    ]


def preload(names: Iterable[str], root: str) -> None:
    """Imports what tests need beside the project, so that forks have it already.

    A module that would bring the project in, which is not broken yet, is forgotten again.
    """
    for name in names:
        if name in sys.modules:
            continue
        before = set(sys.modules)
        try:
            importlib.import_module(name)
        except BaseException:  # noqa: BLE001, S112 - what a test imports one way may refuse another
            continue
        new = set(sys.modules) - before
        if any(str(getattr(sys.modules[n], "__file__", "")).startswith(root) for n in new):
            for one in new:
                del sys.modules[one]
