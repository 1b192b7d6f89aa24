"""Full names of commits in a repository on this machine."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coding_gym.addresses import find_repository
from coding_gym.errors import InvalidTaskError
from coding_gym.workspace.host_git import HostGitError, run_git


@contextmanager
def commit_names(repository: Path) -> Iterator[Callable[[str], str | None]]:
    """Yields a function from a name, such as ``0123abc^{commit}``, to the full sha of its commit.

    That function returns None if no object or several objects match. Git runs in an empty temporary
    repository that borrows the objects of ``repository``, whose configuration (hooks, filters,
    helpers, remotes) is never read.

    Raises:
        InvalidTaskError: There is no git repository.
        MissingDependencyError: There is no git on this machine.
    """
    folder = find_repository(repository)
    objects = folder and _git_folder(folder) / "objects"
    if objects is None or not objects.is_dir():
        raise InvalidTaskError(f"{repository} is not a git repository with objects")
    with tempfile.TemporaryDirectory(prefix="coding-gym-") as scratch:
        borrowing = Path(scratch) / "repository.git"
        run_git("init", "--quiet", "--bare", "--template=", str(borrowing), cwd=Path(scratch))
        info = borrowing / "objects" / "info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "alternates").write_bytes(os.fsencode(objects) + b"\n")

        def find(name: str) -> str | None:
            try:
                return run_git("rev-parse", "--verify", name, cwd=borrowing)
            except HostGitError:
                return None

        yield find


def _git_folder(repository: Path) -> Path:
    git = repository / ".git"
    if not git.is_file():
        return git if git.is_dir() else repository
    folder = repository / _line(git).removeprefix("gitdir: ")  # a worktree names its folder
    common = folder / "commondir"
    return folder / _line(common) if common.is_file() else folder


def _line(path: Path) -> str:
    return os.fsdecode(path.read_bytes()).strip()
