"""Finds bug-fix commits of a repository: commits that change code and tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, PatchError
from coding_gym.grading.runners.patterns import COLLECTED
from coding_gym.grading.selection import path_matcher
from coding_gym.patch import Patch
from coding_gym.synthesis.project import is_test
from coding_gym.workspace.history import init_repository
from coding_gym.workspace.host_git import HostGitError, run_git

_MAX_CHANGED_FILES = 12
_is_collected = path_matcher(COLLECTED)


@dataclass(frozen=True, slots=True)
class FixCommit:
    """A commit that can become a task.

    Attributes:
        sha: The full hash of the commit.
        parent: The full hash of the parent, the base of the task.
        date: The date of the commit, ISO 8601.
        gold_patch: The changes of files other than tests.
        test_patch: The changes of tests.
        test_files: The changed test files that exist after the commit.
    """

    sha: str
    parent: str
    date: str
    gold_patch: str
    test_patch: str
    test_files: tuple[str, ...]


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

    def fixes(self) -> Iterator[tuple[str, FixCommit | str]]:
        """Yields (name, fix) for each commit, the newest first.

        The name is the short hash and the subject; for a skipped commit, the fix is the reason as a
        string.
        """
        for line in self._run("log", "--format=%h %s%x00%H %cI %P", "history").split("\n"):
            name, _, rest = line.partition("\0")
            sha, date, *parents = rest.split()
            try:
                yield name, self._fix(sha, date, parents)
            except (HostGitError, PatchError) as error:
                yield name, str(error)

    def _fix(self, sha: str, date: str, parents: list[str]) -> FixCommit | str:
        if len(parents) != 1:
            return "the commit is a merge" if parents else "the commit has no parent"
        parent = parents[0]
        fields = self._run("diff", "--name-status", "--no-renames", "-z", parent, sha).split("\0")
        changes = dict(zip(fields[1::2], fields[::2], strict=False))  # status letter by path
        tests = [path for path in changes if is_test(path)]
        other_paths = [path for path in changes if path not in tests]
        files = tuple(path for path in tests if changes[path] != "D" and _is_collected(path))
        if not any(path.endswith(".py") for path in other_paths):
            return "the commit changes no Python file outside the tests"
        if not files:
            return "the commit changes no file test_*.py or *_test.py"
        if len(changes) > _MAX_CHANGED_FILES:
            return f"the commit changes {len(changes)} files, more than {_MAX_CHANGED_FILES}"
        gold, test_patch = self._diff(parent, sha, other_paths), self._diff(parent, sha, tests)
        if any(change.is_binary for patch in (gold, test_patch) for change in Patch(patch).files):
            return "the commit changes a binary file"
        return FixCommit(sha, parent, date, gold, test_patch, files)

    def _diff(self, parent: str, sha: str, paths: list[str]) -> str:
        options = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary"]
        text = self._run("diff", *options, "--full-index", parent, sha, "--", *paths)
        return f"{text}\n" if text else ""

    def _run(self, *arguments: str) -> str:
        return run_git(*arguments, cwd=self._clone)
