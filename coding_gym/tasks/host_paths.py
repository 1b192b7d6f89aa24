"""Paths of this machine in rows: folders, clones and images."""

from dataclasses import replace
from pathlib import Path

from coding_gym.addresses import is_url
from coding_gym.errors import InvalidTaskError
from coding_gym.task import FolderTree, GitTree, Task
from coding_gym.tasks.repositories import local_repository

_MAX_VALUE_CHARS = 80
# Others have git use this machine's files or its owner's keys.
_PUBLIC = ("https://", "http://")


def with_paths(task: Task, base: Path | None, label: str) -> Task:
    """Returns a task whose paths are absolute, and checked to lead to something.

    Args:
        task: The task as its row gives it.
        base: Where relative paths start. None for rows of strangers: a policy would see the files
            that they name, and their install commands could send these anywhere.
        label: Names the row in errors.

    Raises:
        InvalidTaskError: There is nothing where a path leads, or the row may not name any.
    """
    if base is None:
        _refuse_paths(task, label)
        return task
    if task.image and (image := _existing(base, task.image, "image", label)):
        task = replace(task, image=str(image))  # else a name, of which others know
    tree = task.tree
    if isinstance(tree, FolderTree):
        folder = _existing(base, tree.folder, "folder", label)
        if folder is None or not folder.is_dir():
            raise _wrong(label, "folder", "must name a folder", tree.folder)
        return replace(task, tree=replace(tree, folder=str(folder)))
    if isinstance(tree, GitTree) and not is_url(tree.repository, base=base):
        found = local_repository(tree.repository, base=base, label=f"{label}: field 'repository'")
        return replace(task, tree=replace(tree, repository=found))
    return task


def _refuse_paths(task: Task, label: str) -> None:
    here = "in rows of the hub, which may name nothing of this machine"
    if isinstance(task.tree, FolderTree):
        raise _wrong(label, "folder", f"must not be there {here}", task.tree.folder)
    if isinstance(task.tree, GitTree) and not task.tree.repository.startswith(_PUBLIC):
        wanted = f"must begin with {' or '.join(_PUBLIC)} {here}"
        raise _wrong(label, "repository", wanted, task.tree.repository)
    place = task.image.partition("#")[0]
    leads_here = place.startswith(("/", "~", "."))
    if place and (leads_here or _existing(Path.cwd(), place, "image", label)):
        raise _wrong(
            label, "image", f"must be the name of an image, and no path, {here}", task.image
        )


def _existing(base: Path, name: str, field: str, label: str) -> Path | None:
    """Returns the real path of what a name leads to; None where there is nothing.

    Raises:
        InvalidTaskError: It is nothing that a file could be called.
    """
    try:
        path = base / Path(name).expanduser()
        return path.resolve() if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, or no such user's home
        wanted = "name a folder" if field == "folder" else "be a path or the name of an image"
        raise _wrong(label, field, f"must {wanted}", name) from None


def _wrong(label: str, field: str, wanted: str, value: str) -> InvalidTaskError:
    excerpt = repr(value if len(value) <= _MAX_VALUE_CHARS else value[:_MAX_VALUE_CHARS] + "…")
    return InvalidTaskError(f"{label}: field {field!r} {wanted}, got {excerpt}")
