"""Finding a row's repository among local clones."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.task import GitTree, Task

Repositories = str | Path | Mapping[str, str | Path]

_URL = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)


def with_repository(task: Task, repositories: Repositories) -> Task:
    """Returns the task with its repository taken from ``repositories``.

    A task that has no repository, or whose row names one itself, is returned as it is.

    Args:
        task: A task as its row gives it.
        repositories: A folder of clones named ``<owner>__<name>``, ``<owner>/<name>`` or
            ``<name>``, each also with ``.git`` at the end; or paths and URLs by ``owner/name``.

    Raises:
        InvalidTaskError: The repository is not there; names it and the places looked at.
        InvalidArgumentError: ``repositories`` is neither a folder nor a mapping.
    """
    if not isinstance(task.tree, GitTree) or task.tree.repository != _default_url(task.repo):
        return task
    if isinstance(repositories, Mapping):
        return replace(task, tree=GitTree(_from_mapping(task, repositories)))
    return replace(task, tree=GitTree(_from_folder(task, repositories)))


def is_url(repository: str) -> bool:
    """Whether ``repository`` is a URL (also git's ``user@host:path``) and not a path."""
    return bool(_URL.match(repository))


def local_repository(path: str | Path, *, base: Path, label: str) -> str:
    """Returns the absolute path of a local repository.

    Args:
        path: Where it should be.
        base: Where relative paths start.
        label: Names the origin of ``path`` in the error.

    Raises:
        InvalidTaskError: There is no git repository.
    """
    found = (base / Path(path).expanduser()).resolve()
    if not _is_repository(found):
        raise InvalidTaskError(f"{label} must be a git repository or a URL, got {str(path)!r}")
    return str(found)


def _default_url(repo: str) -> str:
    return f"https://github.com/{repo}"


def _from_mapping(task: Task, repositories: Mapping[str, str | Path]) -> str:
    value = repositories.get(task.repo)
    if value is None:
        raise InvalidTaskError(
            f"task {task.task_id}: no repository for {task.repo!r}; the mapping has "
            f"{', '.join(sorted(repositories)) or 'no entries'}; add its path or URL"
        )
    if isinstance(value, str) and is_url(value):
        return value
    return local_repository(value, base=Path.cwd(), label=f"repositories[{task.repo!r}]")


def _from_folder(task: Task, repositories: str | Path) -> str:
    folder = Path(repositories).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidArgumentError(
            "repositories must be a folder of git clones, or a mapping from owner/name to a path "
            f"or URL, got {str(repositories)!r}"
        )
    stems = dict.fromkeys((task.repo.replace("/", "__"), task.repo, task.repo.rpartition("/")[2]))
    names = [name for stem in stems for name in (stem, f"{stem}.git")]
    for name in names:
        if _is_repository(folder / name):
            return str(folder / name)
    target = folder / names[0]
    raise InvalidTaskError(
        f"task {task.task_id}: no clone of {task.repo!r} in {folder} (looked for "
        f"{', '.join(names)}); run: git clone {_default_url(task.repo)} {target}"
    )


def _is_repository(path: Path) -> bool:
    is_bare = (path / "HEAD").is_file() and (path / "objects").is_dir()
    return is_bare or (path / ".git").exists()
