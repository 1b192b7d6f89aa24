"""Resolves the paths of this machine that rows contain: folders, clones and images."""

from dataclasses import replace
from pathlib import Path

from coding_gym.addresses import is_url
from coding_gym.errors import InvalidTaskError
from coding_gym.task import FolderTree, GitTree, Task
from coding_gym.tasks.repositories import local_repository
from coding_gym.tasks.task_row import row_error

# Other schemes let git read files of this machine or use keys of its user.
_PUBLIC = ("https://", "http://")


def with_paths(task: Task, base: Path | None, label: str) -> Task:
    """Returns the task with absolute paths; its folder and its clone must exist.

    Args:
        task: The task of a row.
        base: The folder that relative paths start from. None forbids paths, for untrusted rows: a
            policy could read the named files, and install commands could send them anywhere.
        label: Names the row in errors.

    Raises:
        InvalidTaskError: A path does not exist, or is not allowed.
    """
    if base is None:
        _refuse_paths(task, label)
        return task
    image = task.image and _existing_path(base, task.image, "image", label)
    if image and "/" in task.image:  # a text without a slash is an image's name
        task = replace(task, image=str(image))
    tree = task.tree
    if isinstance(tree, FolderTree):
        folder = _existing_path(base, tree.folder, "folder", label)
        if folder is None or not folder.is_dir():
            raise _field_error(label, "folder", "must name a folder", tree.folder)
        return replace(task, tree=replace(tree, folder=str(folder)))
    if isinstance(tree, GitTree) and not is_url(tree.repository, base=base):
        path = local_repository(tree.repository, base=base, label=f"{label}: field 'repository'")
        return replace(task, tree=replace(tree, repository=path))
    return task


def _refuse_paths(task: Task, label: str) -> None:
    scope = "in rows of the hub, which must not name paths of this machine"
    if isinstance(task.tree, FolderTree):
        raise _field_error(label, "folder", f"is not allowed {scope}", task.tree.folder)
    if isinstance(task.tree, GitTree) and not task.tree.repository.startswith(_PUBLIC):
        requirement = f"must begin with {' or '.join(_PUBLIC)} {scope}"
        raise _field_error(label, "repository", requirement, task.tree.repository)
    is_path = "/" in task.image and _existing_path(Path.cwd(), task.image, "image", label)
    if is_path or task.image.startswith(("/", "~", ".")):
        raise _field_error(
            label, "image", f"must be the name of an image, not a path, {scope}", task.image
        )


def _existing_path(base: Path, name: str, field: str, label: str) -> Path | None:
    """Returns the resolved path of a name; None if it does not exist.

    Raises:
        InvalidTaskError: ``name`` is not a valid path.
    """
    try:
        path = base / Path(name).expanduser()
        return path.resolve() if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, or the home of an unknown user
        requirement = "name a folder" if field == "folder" else "be a path or the name of an image"
        raise _field_error(label, field, f"must {requirement}", name) from None


def _field_error(label: str, field: str, requirement: str, value: str) -> InvalidTaskError:
    return row_error({}, label, field, f"{requirement}, got {value!r:.80}")
