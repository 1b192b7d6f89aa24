"""Finds bug-fix commits of a repository: commits that change both code and tests."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.patch import Patch
from coding_gym.synthesis.project import is_test
from coding_gym.workspace.history import init_repository
from coding_gym.workspace.host_git import HostGitError, run_git

_log = logging.getLogger(__name__)
_MAX_CHANGED_FILES = 12


@dataclass(frozen=True, slots=True)
class FixCommit:
    """A commit that can become a task.

    Attributes:
        sha: The commit.
        parent: Its parent, the base of the task.
        date: Its date, ISO 8601.
        gold_patch: The changes of files that are not tests.
        test_patch: The changes of tests.
        test_files: The texts of the changed test files after the commit, by path.
    """

    sha: str
    parent: str
    date: str
    gold_patch: str
    test_patch: str
    test_files: dict[str, str]


class Commits:
    """The history of a repository, read in a temporary clone.

    Args:
        repository: A git repository on this machine.
        scratch: An empty folder for the clone.

    Raises:
        InvalidArgumentError: git cannot read the repository.
    """

    def __init__(self, repository: Path, scratch: Path) -> None:
        self._clone = scratch / "clone"
        self._clone.mkdir()
        init_repository(self._clone)
        fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"]
        try:
            self._run(*fetch, "--", str(repository), "+HEAD:refs/heads/history")
        except HostGitError as error:
            raise InvalidArgumentError(f"{repository} cannot be read with git: {error}") from error

    def count(self) -> int:
        """Returns the number of commits, including merges."""
        return int(self._run("rev-list", "--count", "history"))

    def fixes(self) -> Iterator[FixCommit]:
        """Yields commits that change Python code and test files, the newest first.

        It skips merges, and commits of more than 12 files.
        """
        for line in self._run("log", "--no-merges", "--format=%H %P %cI", "history").splitlines():
            sha, *parents, date = line.split()
            try:
                fix = self._fix(sha, parents[0], date) if len(parents) == 1 else None
            except (HostGitError, PatchError) as error:
                _log.info("commit %s is skipped: %s", sha, error)
                continue
            if fix is not None:
                yield fix

    def _fix(self, sha: str, parent: str, date: str) -> FixCommit | None:
        names = self._run("diff", "--name-only", "--no-renames", "-z", parent, sha).split("\0")
        paths = [name for name in names if name]
        tests = [path for path in paths if is_test(path)]
        code = [path for path in paths if path.endswith(".py") and path not in tests]
        if not code or len(paths) > _MAX_CHANGED_FILES:
            return None
        files = {path: text for path in tests if (text := self._text(sha, path))}
        if not any(path.rpartition("/")[2].startswith("test_") for path in files):
            return None
        gold = self._diff(parent, sha, [path for path in paths if path not in tests])
        test_patch = self._diff(parent, sha, tests)
        if any(change.is_binary for part in (gold, test_patch) for change in Patch(part).files):
            return None
        return FixCommit(sha, parent, date, gold, test_patch, files)

    def _text(self, sha: str, path: str) -> str:
        if not path.endswith(".py"):
            return ""
        try:
            return self._run("show", f"{sha}:{path}") + "\n"
        except HostGitError:
            return ""  # the commit deletes it

    def _diff(self, parent: str, sha: str, paths: list[str]) -> str:
        plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary"]
        text = self._run("diff", *plain, "--full-index", parent, sha, "--", *paths)
        return f"{text}\n" if text else ""

    def _run(self, *arguments: str) -> str:
        return run_git(*arguments, cwd=self._clone)
