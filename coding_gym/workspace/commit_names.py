"""Resolves names of commits in a repository on this machine to full shas."""

import os
import tempfile
from pathlib import Path

from coding_gym.addresses import find_repository
from coding_gym.errors import InvalidTaskError
from coding_gym.workspace.host_git import HostGitError, run_git


def full_commit(repository: Path, name: str) -> str | None:
    """Returns the full sha of a revision such as ``0123abc^{commit}``.

    Returns None if no object or several objects match. Git runs in an empty temporary repository
    with the objects of ``repository``, and never reads the configuration of ``repository`` (hooks,
    filters, helpers, remotes).

    Raises:
        InvalidTaskError: The folder is not a git repository.
        MissingDependencyError: git is not installed on this machine.
    """
    folder = find_repository(repository)
    objects = folder and _git_folder(folder) / "objects"
    if objects is None or not objects.is_dir():
        raise InvalidTaskError(f"{repository} must be a git clone, with a folder 'objects'")
    with tempfile.TemporaryDirectory(prefix="coding-gym-") as scratch:
        run_git("init", "--quiet", "--bare", "--template=", ".", cwd=Path(scratch))
        env = {"GIT_OBJECT_DIRECTORY": str(objects)}
        try:
            return run_git("rev-parse", "--verify", name, cwd=Path(scratch), env=env)
        except HostGitError:
            return None


def _git_folder(repository: Path) -> Path:
    git = repository / ".git"
    if not git.is_file():
        return git if git.is_dir() else repository
    folder = repository / _line(git).removeprefix("gitdir: ")  # the `.git` file of a worktree
    common = folder / "commondir"
    return folder / _line(common) if common.is_file() else folder


def _line(path: Path) -> str:
    return os.fsdecode(path.read_bytes()).strip()
