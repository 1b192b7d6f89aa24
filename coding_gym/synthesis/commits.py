"""Finds bug-fix commits of a repository: commits that change code and tests."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.grading.runners.patterns import COLLECTED
from coding_gym.grading.selection import path_matcher
from coding_gym.patch import Patch
from coding_gym.synthesis.project import is_test
from coding_gym.task import Task
from coding_gym.workspace.history import init_repository
from coding_gym.workspace.host_git import HostGitError, run_git

_MAX_CHANGED_FILES = 12
_is_collected = path_matcher(COLLECTED)


class Commits:
    """The history of a repository, read in a temporary clone.

    Args:
        repository: A git repository on this machine.
        scratch: An empty folder for the clone.
        project: A task with the fields that all tasks of the repository share.

    Raises:
        InvalidArgumentError: git cannot read the repository.
    """

    def __init__(self, repository: Path, scratch: Path, project: Task) -> None:
        self._clone, self._project = scratch / "clone", project
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

    def task(self, sha: str) -> Task:
        """Returns the task of a bug-fix commit; its expected tests and its issue are still missing.

        Raises:
            InvalidTaskError: The commit cannot become a task; the message has the reason.
            PatchError: The commit's diff cannot be read.
        """
        date, *parents = self._run("log", "-1", "--format=%cI %P", sha).split()
        if len(parents) != 1:
            raise InvalidTaskError(f"the commit must have one parent, got {len(parents)}")
        parent = parents[0]
        paths = self._run("diff", "--name-only", "--no-renames", "-z", parent, sha).split("\0")[:-1]
        tests = [path for path in paths if is_test(path)]
        other_paths = [path for path in paths if path not in tests]
        if not any(path.endswith(".py") for path in other_paths):
            raise InvalidTaskError("the commit changes no Python file outside the tests")
        if len(paths) > _MAX_CHANGED_FILES:
            raise InvalidTaskError(
                f"the commit changes {len(paths)} files, more than {_MAX_CHANGED_FILES}"
            )
        gold, test_patch = self._diff(parent, sha, other_paths), self._diff(parent, sha, tests)
        if not collected_files(test_patch):
            raise InvalidTaskError("the commit changes no file test_*.py or *_test.py")
        if any(change.is_binary for patch in (gold, test_patch) for change in Patch(patch).files):
            raise InvalidTaskError("the commit changes a binary file")
        return replace(
            self._project,
            task_id=f"{self._project.repo}__{sha[:12]}",
            base_commit=parent,
            created_at=date,
            gold_patch=gold,
            test_patch=test_patch,
        )

    def _diff(self, parent: str, sha: str, paths: list[str]) -> str:
        if not paths:
            return ""  # git would print all changes
        options = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary"]
        return self._run("diff", *options, "--full-index", parent, sha, "--", *paths) + "\n"

    def _run(self, *arguments: str) -> str:
        try:
            return run_git(*arguments, cwd=self._clone)
        except HostGitError as error:
            raise InvalidTaskError(str(error)) from error


def collected_files(test_patch: str) -> tuple[str, ...]:
    """Returns the changed files from which pytest collects tests by default, by their new paths."""
    paths = [change.new_path or "" for change in Patch(test_patch).files]
    return tuple(filter(_is_collected, paths))
