"""Selects the files of a patch that are graded."""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import basename, normpath
from types import MappingProxyType

from coding_gym.errors import PatchError
from coding_gym.grading.named_data import data_of_tests
from coding_gym.patch import FileChange, Patch
from coding_gym.task import Task

TEST_FOLDER_NAMES = frozenset({"test", "tests"})
# Python runs these modules, or reads files with these suffixes, from `sys.path` before any test.
_STARTUP_MODULES = {"sitecustomize", "usercustomize"}
_STARTUP_SUFFIXES = (".pth", ".egg-link", ".dist-info", ".egg-info", ".pyc")


@dataclass(frozen=True, slots=True)
class Selection:
    """The graded part and the dropped part of a policy's patch.

    Attributes:
        patch: The graded part.
        dropped_paths: The paths of the dropped part, sorted.
        data: The dropped paths that are data of tests, each with a test file that names it.
    """

    patch: Patch = field(default_factory=Patch)
    dropped_paths: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)


def select_graded(
    task: Task,
    patch: Patch,
    *,
    test_files: Iterable[str],
    patterns: Iterable[str],
    texts: Mapping[str, str] = MappingProxyType({}),
    is_challenged: bool = True,
) -> Selection:
    """Drops the changes of tests and of their configuration from a patch.

    Changes of these files are dropped: files that ``test_patch`` changes or that hold expected
    tests, files that match the runner's patterns of tests and their configuration, files in a test
    folder (the outermost ``test`` or ``tests`` folder above a hidden test), files that Python
    tests name as their data (see `data_of_tests`), and files that Python reads at startup.
    Changes of files that the gold patch changes are kept, except for Python files of challenged
    tests. A rename is dropped if its old path or its new path is dropped.

    Args:
        task: The task.
        patch: The policy's patch.
        test_files: The files that hold the expected tests.
        patterns: The runner's patterns for `path_matcher`.
        texts: The contents of test files at base, by path.
        is_challenged: Whether expected tests are challenged; their files must then not change.

    Raises:
        PatchError: The patch cannot be read.
    """
    test_files = {normpath(path) for path in test_files}
    gold = {normpath(path) for path in Patch(task.gold_patch).paths}
    hidden_patch = Patch(task.test_patch)
    tests = test_files | {normpath(path) for path in hidden_patch.paths}
    folders = _test_folders(tests)
    modules = {path: texts.get(path, "") for path in tests if path.endswith(".py")}
    for change in hidden_patch.files:
        if change.path in modules:
            modules[change.path] = _after(change, modules[change.path])
    changed_paths = {normpath(path) for path in patch.paths} - gold
    data = data_of_tests(changed_paths, modules, gold) if changed_paths else {}
    protected_paths = tests | data.keys()
    trusted_paths = gold - {path for path in test_files if is_challenged and path.endswith(".py")}
    matches = path_matcher(patterns)

    def is_protected(path: str) -> bool:
        if path in trusted_paths:
            return False
        is_test = path in protected_paths or path.startswith(folders) or matches(path)
        return is_test or _is_read_at_startup(path)

    graded_texts, dropped_paths = [], set()
    for change in patch.files:
        paths = {path for path in (change.old_path, change.new_path) if path}
        if any(is_protected(normpath(path)) for path in paths):
            dropped_paths |= paths
        else:
            graded_texts.append(change.text)
    dropped_data = {path: data[path] for path in dropped_paths if path in data}
    return Selection(Patch("".join(graded_texts)), tuple(sorted(dropped_paths)), dropped_data)


def _test_folders(test_files: Iterable[str]) -> tuple[str, ...]:
    """Returns the outermost test folder above each test file, with a slash at its end."""
    folders = set()
    for path in test_files:
        parts = path.split("/")[:-1]
        for depth, part in enumerate(parts, start=1):
            if part in TEST_FOLDER_NAMES:
                folders.add("/".join(parts[:depth]) + "/")
                break
    return tuple(sorted(folders))


def path_matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Returns a function that tests whether a path matches any of the patterns.

    A pattern without a slash matches file names. ``/.cargo/*`` matches in every folder,
    ``./setup.cfg`` only at the root.
    """
    patterns = list(patterns)
    matches_name = _any_of(pattern for pattern in patterns if "/" not in pattern)
    matches_path = _any_of(
        pattern[1:] if pattern.startswith("./") else f"*{pattern}"
        for pattern in patterns
        if "/" in pattern
    )
    return lambda path: matches_name(basename(path)) or matches_path(f"/{path}")


def _any_of(globs: Iterable[str]) -> Callable[[str], bool]:
    any_glob = re.compile("|".join(map(fnmatch.translate, globs)) or r"(?!)")
    return lambda text: any_glob.match(text) is not None


def _is_read_at_startup(path: str) -> bool:
    parts = path.split("/")
    return (
        any(part.partition(".")[0] in _STARTUP_MODULES for part in parts)
        or any(part.lower().endswith(_STARTUP_SUFFIXES) for part in parts)  # as importlib reads it
        or "__pycache__" in parts
    )


def _after(change: FileChange, text: str) -> str:
    """Returns a test file after a change; only the added lines if `FileChange.apply` fails."""
    try:
        return change.apply(text)
    except PatchError:
        return "\n".join(line[1:] for line in change.text.split("\n") if line.startswith("+"))
