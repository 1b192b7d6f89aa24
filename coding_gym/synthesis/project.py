"""A project to make tasks from: a copy of its files, and how its tests are run."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coding_gym.addresses import find_repository
from coding_gym.errors import InvalidArgumentError
from coding_gym.task import FolderTree, Task
from coding_gym.workspace.history import checkout_commit, init_repository
from coding_gym.workspace.host_git import HostGitError, run_git

# Environments, caches and build outputs, wherever in a folder that is no git repository.
_LEFT_OUT = {".git", "__pycache__", ".tox", ".nox", ".venv", "venv", "node_modules", ".mypy_cache"}
_LEFT_OUT |= {".pytest_cache", ".ruff_cache", ".eggs"}
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project whose tests pass.

    Attributes:
        name: Its name; task ids begin with it.
        folder: Its files; they lie there as long as its tasks are used.
        install_commands: Build the environment; see `coding_gym.task.Task`. With any, they must
            install pytest too, and the project itself only as ``-e``.
        interpreter: As for `coding_gym.task.Task`.
        tests: Test files and folders; where there are none, what the project's configuration says.
    """

    name: str
    folder: Path
    install_commands: tuple[str, ...] = ()
    interpreter: str = "base"
    tests: tuple[str, ...] = ()

    def files(self) -> Iterator[Path]:
        """Yields every file, in an order that is the same everywhere."""
        for parent, folders, files in os.walk(self.folder):
            folders.sort()
            yield from (Path(parent, name) for name in sorted(files))

    def contents(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Returns the content, by path, of those of the paths that are files of the project.

        Other paths are skipped, links included: code of the project can name any path.
        """
        wanted = set(paths)
        found = {}
        for file in self.files():
            place = file.relative_to(self.folder).as_posix()
            if place in wanted and file.is_file() and not file.is_symlink():
                found[place] = file.read_bytes()
        return dict(sorted(found.items()))

    def digest(self) -> str:
        """Returns 40 hexadecimal digits that stand for the files' content."""
        whole = hashlib.sha256()
        for path in self.files():
            place = path.relative_to(self.folder).as_posix()
            content = b"" if path.is_symlink() else path.read_bytes()
            whole.update(f"{place}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
        return whole.hexdigest()[:40]

    def task(self, task_id: str = "", problem_statement: str = "") -> Task:
        """Returns a task of the project as it is, without any bug."""
        arguments = " ".join(self.tests)
        return Task(
            task_id=task_id or f"{self.name}__unbroken",
            tree=FolderTree(str(self.folder)),
            problem_statement=problem_statement or "Nothing is broken.",
            repo=self.name,
            environment_setup_commit=self.digest(),
            install_commands=self.install_commands,
            interpreter=self.interpreter,
            visible_test_command=f"python -m pytest -q {arguments}".strip(),
        )


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests: by its name, or by a folder that it is in."""
    *folders, name = path.split("/")
    is_named = name.startswith(("test_", "conftest")) or name.endswith("_test.py")
    return is_named or bool({"test", "tests"} & set(folders))


def is_program(path: str) -> bool:
    """Whether a file, relative to the tree, is Python of the project itself and no test."""
    parts = path.split("/")
    other = {"", "..", "site-packages", ".venv", "venv"} & set(parts)
    is_python = path.endswith(".py") and parts[-1] != "setup.py" and "\0" not in path
    return is_python and not other and not is_test(path)


def copy_project(source: str | Path, trees: Path, *, name: str = "") -> tuple[str, Path]:
    """Copies a project and returns its name and the folder of the copy.

    Of a git repository its last commit is copied, of another folder all but environments and
    caches. A copy from before that is the same is used again.

    Args:
        source: The project.
        trees: Where copies lie.
        name: What it is called; by default as its folder is.

    Raises:
        InvalidArgumentError: There is no such folder, or git cannot read it.
    """
    folder = Path(source).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidArgumentError(f"repo must be a folder, got {str(source)!r}")
    name = _UNFIT.sub("-", name or folder.name).strip("-.") or "project"
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "tree")
        if find_repository(folder) is not None and (folder / ".git").exists():
            _export(folder, copy)
        else:
            shutil.copytree(folder, copy, symlinks=True, ignore=_ignored)
        return name, keep_tree(copy, trees, name)


def keep_tree(tree: Path, trees: Path, name: str) -> Path:
    """Moves a tree to where tasks find it, named by its content, and returns the new place."""
    digest = Project(name=name, folder=tree).digest()[:8]
    place = trees / f"{name}-{digest}"
    if not place.exists():
        partial = trees / f".{name}-{digest}.{os.getpid()}"
        partial.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copytree(tree, partial, symlinks=True)
            partial.rename(place)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return place


def _export(repository: Path, into: Path) -> None:
    """Writes the files of a repository's last commit."""
    try:
        line = run_git("ls-remote", "--", str(repository), "HEAD", cwd=into.parent)
        commit = line.partition("\t")[0]
        if not commit:
            raise InvalidArgumentError(f"{repository} has no commit yet")
        into.mkdir()
        init_repository(into)
        checkout_commit(into, str(repository), commit, 1)
    except HostGitError as error:
        raise InvalidArgumentError(f"{repository} cannot be read with git: {error}") from error
    shutil.rmtree(into / ".git")


def _ignored(folder: str, names: Sequence[str]) -> set[str]:
    found = _LEFT_OUT.intersection(names)
    found |= {name for name in names if Path(folder, name, "pyvenv.cfg").exists()}
    return found | {name for name in names if name.endswith((".pyc", ".egg-info"))}
