"""Which files of a policy's patch are graded, and which are the graders' own."""

import configparser
import fnmatch
import posixpath
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coding_gym.patch import FileChange, Patch
from coding_gym.task import Task

# Where a project may tell pytest how to run, in pytest's own order of precedence.
CONFIG_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
_RUNNER_FILES = {*CONFIG_FILES, "conftest.py", ".coveragerc"}
_DEFAULT_PATTERNS = ("test_*.py", "*_test.py")
_TEST_FOLDERS = {"test", "tests"}
# Python runs or reads these before any test, wherever they lie on its path.
_STARTUP_MODULES = {"sitecustomize", "usercustomize"}
_STARTUP_SUFFIXES = (".pth", ".egg-link", ".dist-info", ".egg-info", ".pyc")


@dataclass(frozen=True, slots=True)
class Selection:
    """A policy's patch, divided.

    Attributes:
        patch: What is graded.
        dropped_paths: Files whose changes are not, sorted.
    """

    patch: Patch
    dropped_paths: tuple[str, ...]


def select(task: Task, patch: Patch, patterns: Iterable[str] = _DEFAULT_PATTERNS) -> Selection:
    """Leaves out of a patch what belongs to the graders: tests, and how they are run.

    Left out are changes of files that ``test_patch`` touches; that match the runner's collection
    patterns; that lie in a test folder (the outermost ``test`` or ``tests`` above an expected test,
    which holds the tests' helpers and data); that configure the runner; and that Python itself
    would obey when it starts. Files that the gold patch touches are graded all the same. A rename
    is left out if either of its paths is.

    Args:
        task: The task.
        patch: The policy's patch.
        patterns: Glob patterns of test files, from `collection_patterns`.

    Raises:
        PatchError: The patch cannot be read.
    """
    gold = {_normal(path) for path in Patch(task.gold_patch).paths}
    hidden = {_normal(path) for path in Patch(task.test_patch).paths}
    folders = _test_folders(task, hidden)
    patterns = tuple(patterns)

    def belongs_to_graders(change: FileChange) -> bool:
        paths = {_normal(path) for path in (change.old_path, change.new_path) if path} - gold
        return any(
            path in hidden
            or path.startswith(folders)
            or _is_test(path, patterns)
            or _steers_the_run(path)
            for path in paths
        )

    kept, dropped = [], set()
    for change in patch.files:
        if belongs_to_graders(change):
            dropped |= {path for path in (change.old_path, change.new_path) if path}
        else:
            kept.append(change.text)
    return Selection(Patch("".join(kept)), tuple(sorted(dropped)))


def collection_patterns(configs: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the patterns of test files, by the runner's configuration as far as it can be read.

    Patterns that say nothing of tests, such as ``*.py``, are left out: with them every change
    would be a change of tests.

    Args:
        configs: Text of the files among `CONFIG_FILES` that the tree has, by name.
    """
    found: tuple[str, ...] = ()
    for name in CONFIG_FILES:
        if name in configs and not found:
            found = tuple(_python_files(name, configs[name]))
    return (*_DEFAULT_PATTERNS, *(p for p in found if "test" in p and p not in _DEFAULT_PATTERNS))


def _python_files(name: str, text: str) -> list[str]:
    try:
        if name.endswith(".toml"):
            value = _toml_value(tomllib.loads(text))
        else:
            parser = configparser.RawConfigParser(strict=False)
            parser.read_string(text)
            section = "tool:pytest" if name == "setup.cfg" else "pytest"
            value = parser.get(section, "python_files", fallback="")
        if isinstance(value, list):
            return [str(part) for part in value]
        return shlex.split(str(value))
    except (ValueError, configparser.Error):
        return []  # pytest will say what is wrong with it


def _toml_value(data: Mapping[str, object]) -> object:
    tables: list[object] = [data]
    for keys in (("tool", "pytest", "ini_options"), ("tool", "pytest"), ("pytest",)):
        table: object = data
        for key in keys:
            table = table.get(key) if isinstance(table, Mapping) else None
        tables.append(table)
    values = [t["python_files"] for t in tables if isinstance(t, Mapping) and "python_files" in t]
    return values[0] if values else ""


def _test_folders(task: Task, hidden: Iterable[str]) -> tuple[str, ...]:
    """The outermost test folder above each expected or hidden file, with a slash at its end."""
    found = set()
    for path in {*hidden, *(_normal(t.partition("::")[0]) for t in task.expected_tests)}:
        parts = path.split("/")[:-1]
        for depth, part in enumerate(parts, start=1):
            if part in _TEST_FOLDERS:
                found.add("/".join(parts[:depth]) + "/")
                break
    return tuple(sorted(found))


def _is_test(path: str, patterns: Iterable[str]) -> bool:
    name = posixpath.basename(path)
    return any(
        fnmatch.fnmatchcase(path, f"*{pattern}")
        if "/" in pattern
        else fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
    )


def _steers_the_run(path: str) -> bool:
    parts = path.split("/")
    return (
        parts[-1] in _RUNNER_FILES
        or any(part.partition(".")[0] in _STARTUP_MODULES for part in parts)
        or any(part.lower().endswith(_STARTUP_SUFFIXES) for part in parts)  # as importlib reads it
        or "__pycache__" in parts
    )


def _normal(path: str) -> str:
    return posixpath.normpath(path)
