"""A project to make tasks from: the copy of its files and the settings of its tests."""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coding_gym.addresses import find_repository
from coding_gym.errors import InvalidArgumentError
from coding_gym.grading.runners.patterns import PYTHON, TEST_FOLDERS
from coding_gym.grading.selection import path_matcher
from coding_gym.task import FolderTree, Task
from coding_gym.workspace.history import checkout_commit, init_repository
from coding_gym.workspace.host_git import HostGitError, run_git
from coding_gym.workspace.plain_tree import digest_folder

# Environments, caches and build outputs, at any depth, if the project is not a git repository.
_NOT_COPIED = {
    *(".git", "__pycache__", ".tox", ".nox", ".venv", "venv", "node_modules", ".mypy_cache"),
    *(".pytest_cache", ".ruff_cache", ".eggs"),
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A Python project; its tasks exclude tests that do not pass in every run.

    Attributes:
        name: The name of the project, the beginning of task ids.
        folder: The folder of the files; the trees of tasks name this folder, so keep it.
        install_commands: Commands that build the environment; see `coding_gym.task.Task`. If not
            empty, they must also install pytest, and install the project itself only with ``-e``.
        interpreter: See `coding_gym.task.Task`.
        tests: Test files and folders; if empty, the project's configuration selects the tests.
    """

    name: str
    folder: Path
    install_commands: tuple[str, ...] = ()
    interpreter: str = "base"
    tests: tuple[str, ...] = ()

    def contents(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Returns the content of each path that is a file of the project, by path.

        Other paths and links are skipped, because code of the project can report any path.
        """
        requested_paths = set(paths)
        contents = {}
        for parent, _, names in os.walk(self.folder):
            for file in (Path(parent, name) for name in names):
                path = file.relative_to(self.folder).as_posix()
                if path in requested_paths and file.is_file() and not file.is_symlink():
                    contents[path] = file.read_bytes()
        return dict(sorted(contents.items()))

    def digest(self) -> str:
        """Returns a digest of all files, 40 hexadecimal digits."""
        return digest_folder(self.folder)[:40]

    def task(self, task_id: str = "", problem_statement: str = "") -> Task:
        """Returns a task whose base is the unbroken project."""
        return Task(
            task_id=task_id or f"{self.name}__unbroken",
            tree=FolderTree(str(self.folder)),
            problem_statement=problem_statement or "Nothing is broken.",
            repo=self.name,
            environment_setup_commit=self.digest(),
            install_commands=self.install_commands,
            interpreter=self.interpreter,
            visible_test_command=shlex.join(["python", "-m", "pytest", "-q", *self.tests]),
        )


is_test = path_matcher((*PYTHON, "test_*", "conftest*", *TEST_FOLDERS, "/testing/*"))
"""Whether a path is a test file, by the name of the file or of a folder above."""


def is_program(path: str) -> bool:
    """Returns whether a path relative to the tree is Python code of the project, but not a test."""
    parts = path.split("/")
    excluded = {"", "..", "site-packages", ".venv", "venv"} & set(parts)
    is_python = path.endswith(".py") and parts[-1] != "setup.py" and "\0" not in path
    return is_python and not excluded and not is_test(path)


def copy_project(source: str | Path, trees: Path, *, name: str = "") -> tuple[str, Path]:
    """Copies a project and returns its name and the folder of the copy.

    The copy of a git repository has the files of the last commit; the copy of another folder has
    all files except environments and caches. An existing equal copy is reused.

    Args:
        source: The folder of the project.
        trees: The folder of the copies.
        name: The name of the project in task ids; by default the name of its folder.

    Raises:
        InvalidArgumentError: The folder does not exist, or git cannot read it.
    """
    folder = Path(source).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidArgumentError(f"repo must be a folder, got {str(source)!r}")
    name = _NOT_IN_NAMES.sub("-", name or folder.name).strip("-.") or "project"
    trees.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=trees) as scratch:
        copy = Path(scratch, "tree")
        if find_repository(folder) is not None and (folder / ".git").exists():
            _export(folder, copy)
        else:
            shutil.copytree(folder, copy, symlinks=True, ignore=_ignored)
        return name, keep_tree(copy, trees, name)


def keep_tree(tree: Path, trees: Path, name: str) -> Path:
    """Moves a tree to the folder ``NAME-DIGEST`` if this folder is missing; returns the folder."""
    target = trees / f"{name}-{Project(name=name, folder=tree).digest()[:8]}"
    if not target.exists():
        tree.rename(target)
    return target


def _export(repository: Path, folder: Path) -> None:
    """Writes the files of a repository's last commit."""
    try:
        line = run_git("ls-remote", "--", str(repository), "HEAD", cwd=folder.parent)
        commit = line.partition("\t")[0]
        if not commit:
            raise InvalidArgumentError(f"{repository} must have a commit, got none")
        folder.mkdir()
        init_repository(folder)
        checkout_commit(folder, str(repository), commit, 1)
    except HostGitError as error:
        raise InvalidArgumentError(f"{repository} cannot be read with git: {error}") from error
    shutil.rmtree(folder / ".git")


def _ignored(folder: str, names: Sequence[str]) -> set[str]:
    ignored = _NOT_COPIED.intersection(names)
    ignored |= {name for name in names if Path(folder, name, "pyvenv.cfg").exists()}
    return ignored | {name for name in names if name.endswith((".pyc", ".egg-info"))}
