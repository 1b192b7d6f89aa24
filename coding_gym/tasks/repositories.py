"""Finds the local clone of the repository of a row."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from coding_gym.addresses import find_repository, is_url
from coding_gym.errors import InvalidArgumentError, InvalidTaskError
from coding_gym.task import GitTree, Task, default_url

_ABBREVIATED = re.compile(r"[0-9a-f]{7,39}")

Repositories = str | Path | Mapping[str, str | Path]


def with_repository(task: Task, repositories: Repositories) -> Task:
    """Returns the task with its repository taken from ``repositories``.

    A task is returned unchanged if it has no repository, or if its row names the repository's
    address. Abbreviated commit ids are completed from the clone.

    Args:
        task: The task of a row.
        repositories: A folder of clones named ``<owner>__<name>``, ``<owner>/<name>`` or
            ``<name>``, each also with ``.git`` at the end; or paths and URLs by ``owner/name``.

    Raises:
        InvalidTaskError: The clone is missing, or does not have the commit; the message names the
            searched paths.
        InvalidArgumentError: ``repositories`` is neither a folder nor a mapping.
    """
    if not isinstance(task.tree, GitTree) or task.tree.repository != default_url(task.repo):
        return task
    if isinstance(repositories, Mapping):
        repository = _from_mapping(task, repositories)
    else:
        repository = _from_folder(task, repositories)
    task = replace(task, tree=replace(task.tree, repository=repository))
    return task if is_url(repository) else _with_full_commits(task, Path(repository))


def local_repository(path: str | Path, *, base: Path, label: str) -> str:
    """Returns the absolute path of a local repository.

    Args:
        path: The path of the repository.
        base: The folder that relative paths start from.
        label: Names the origin of ``path`` in the error.

    Raises:
        InvalidTaskError: The path is not a git repository.
    """
    repository = find_repository(path, base=base)
    if repository is None:
        raise InvalidTaskError(f"{label} must be a git repository or a URL, got {str(path)!r:.80}")
    return str(repository)


def _with_full_commits(task: Task, repository: Path) -> Task:
    """Returns the task with full commit ids; rows can abbreviate them."""
    commits: dict[str, Any] = {}
    for field in ("base_commit", "environment_setup_commit"):
        commit = getattr(task, field)
        if _ABBREVIATED.fullmatch(commit):
            commits[field] = _full_commit(repository, commit)
            if commits[field] is None:
                _full_commit.cache_clear()  # the commit can be fetched later
                raise InvalidTaskError(
                    f"task {task.task_id}: field {field!r} must be a prefix of one commit id of "
                    f"{repository}, got {commit!r}; fetch the commit there, or use another clone"
                )
    return replace(task, **commits)


@lru_cache(maxsize=4096)  # rows of a project often share a commit
def _full_commit(repository: Path, commit: str) -> str | None:
    from coding_gym.workspace.commit_names import full_commit  # late: imports the sandbox

    return full_commit(repository, f"{commit}^{{commit}}")


def _from_mapping(task: Task, repositories: Mapping[str, str | Path]) -> str:
    value = repositories.get(task.repo)
    if value is None:
        raise InvalidTaskError(
            f"task {task.task_id}: repositories must map {task.repo!r} to a path or URL, got only "
            f"{', '.join(sorted(repositories)) or 'an empty mapping'}"
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
        if (repository := find_repository(folder / name)) is not None:
            return str(repository)
    target = folder / names[0]
    raise InvalidTaskError(
        f"task {task.task_id}: no clone of {task.repo!r} in {folder} (looked for "
        f"{', '.join(names)}); run: git clone {default_url(task.repo)} {target}"
    )
