"""Writes a new task folder: a copy of the folder ``example``, which users then edit."""

import re
import shutil
from importlib.resources import files
from pathlib import Path

from coding_gym.errors import InvalidArgumentError
from coding_gym.tasks.folder import MANIFEST


def write_new_task(folder: Path) -> tuple[Path, ...]:
    """Writes an example task that passes validation.

    Args:
        folder: The task's folder, created if it does not exist. Its name becomes the task id.

    Returns:
        The paths of the written files, relative to ``folder``.

    Raises:
        InvalidArgumentError: The folder is not empty, or its name has no letter or digit.
        OSError: The folder cannot be written to.
    """
    folder = folder.expanduser().resolve()
    task_id = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    if not task_id:
        raise InvalidArgumentError(
            f"the name of the folder must have a letter or digit, got {str(folder)!r}"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(f"{folder} exists already; name a new or empty folder")
    ignored = shutil.ignore_patterns("__pycache__")
    example = str(files("coding_gym.tasks") / "example")
    shutil.copytree(example, folder, ignore=ignored, dirs_exist_ok=True)
    manifest = folder / MANIFEST
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('id = "example"', f'id = "{task_id}"'), encoding="utf-8")
    return tuple(path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
