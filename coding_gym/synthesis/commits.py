"""Finds bug-fix commits of a repository: commits that change code and tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.synthesis.project import is_test
from coding_gym.workspace.history import init_repository
from coding_gym.workspace.host_git import HostGitError, run_git

_MAX_CHANGED_FILES = 12


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
            run_git(*fetch, "--", str(repository), "+HEAD:refs/heads/history", cwd=self._clone)
        except HostGitError as error:
            raise InvalidArgumentError(f"{repository} cannot be read with git: {error}") from error

    def names(self) -> Iterator[tuple[str, str]]:
        """Yields full hash and name of each commit, including merges, the newest first.

        The name is the short hash and the subject.
        """
        for line in self._run("log", "--format=%H %h %s", "history").split("\n"):
            sha, _, name = line.partition(" ")
            yield sha, name

    def fix(self, sha: str) -> FixCommit:
        """Returns the bug fix of a commit.

        Raises:
            InvalidTaskError: The commit cannot become a task; the message has the reason.
            PatchError: The commit's diff cannot be read.
        """
        date, *parents = self._run("log", "-1", "--format=%cI %P", sha).split()
        if len(parents) != 1:
            raise InvalidTaskError(f"the commit has {len(parents)} parents; it must have one")
        parent = parents[0]
        fields = self._run("diff", "--name-status", "--no-renames", "-z", parent, sha).split("\0")
        changes = dict(zip(fields[1::2], fields[::2], strict=False))  # status letter by path
        tests = [path for path in changes if is_test(path)]
        other_paths = [path for path in changes if path not in tests]
        files = tuple(path for path in tests if changes[path] != "D" and _is_collected(path))
        if not any(path.endswith(".py") for path in other_paths):
            raise InvalidTaskError("the commit changes no Python file outside the tests")
        if not files:
            raise InvalidTaskError("the commit changes no file test_*.py or *_test.py")
        if len(changes) > _MAX_CHANGED_FILES:
            raise InvalidTaskError(
                f"the commit changes {len(changes)} files, more than {_MAX_CHANGED_FILES}"
            )
        gold, test_patch = self._diff(parent, sha, other_paths), self._diff(parent, sha, tests)
        if any(change.is_binary for patch in (gold, test_patch) for change in Patch(patch).files):
            raise InvalidTaskError("the commit changes a binary file")
        return FixCommit(sha, parent, date, gold, test_patch, files)

    def _diff(self, parent: str, sha: str, paths: list[str]) -> str:
        options = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary"]
        text = self._run("diff", *options, "--full-index", parent, sha, "--", *paths)
        return f"{text}\n" if text else ""

    def _run(self, *arguments: str) -> str:
        try:
            return run_git(*arguments, cwd=self._clone)
        except HostGitError as error:
            raise InvalidTaskError(str(error)) from error


def _is_collected(path: str) -> bool:
    """Whether pytest, by default, collects tests from a file of this name."""
    name = path.rpartition("/")[2]
    return name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py"))
