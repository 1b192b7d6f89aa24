"""Task folders: ``task.toml``, ``gold.patch``, ``hidden/`` and a tree.

- ``task.toml``: the fields of `coding_gym.tasks.task_row.TaskRow`; ``tree``, the program's folder;
  and ``tree_state``, which is ``fixed`` if ``gold.patch`` must be reversed to reach the base.
- ``gold.patch``: the reference repair, a git diff from base to fixed.
- ``hidden/``: the hidden test files, at their paths in the tree.
- ``plan.json``: the stored plan of the challenge (``coding-gym tasks plan``); optional.
- ``tree/``: the program; ``tree`` in ``task.toml`` may name another folder.
"""

import os
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from coding_gym.arguments import hint
from coding_gym.errors import InvalidTaskError, PatchError
from coding_gym.patch import Patch
from coding_gym.task import Task, files_of_tests
from coding_gym.tasks.rows import read_text

MANIFEST = "task.toml"
PLAN = "plan.json"
_GOLD = "gold.patch"
_HIDDEN = "hidden"
# Folders of programs, whose files named task.toml are not manifests.
_NOT_SEARCHED = {"tree", _HIDDEN, "__pycache__"}


def manifests(folder: Path) -> Iterator[Path]:
    """Yields the manifests in a folder or below, in order of paths."""
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _NOT_SEARCHED and f[0] != ".")
        if MANIFEST in files:
            folders.clear()
            yield Path(current, MANIFEST)


def read_folder(folder: Path) -> Iterator[tuple[str, Task | InvalidTaskError]]:
    """Yields the manifest and the task of each task folder in a folder or below, sorted by path.

    For a malformed task, the second item is an InvalidTaskError.

    Raises:
        InvalidTaskError: ``folder`` and its subfolders contain no manifest.
    """
    paths = list(manifests(folder))
    if not paths:
        raise InvalidTaskError(
            f"{folder} has no {MANIFEST}, .jsonl or .parquet file; name the path of a .json file, "
            "or write an example task with: coding-gym tasks new FOLDER"
        )
    for path in paths:
        try:
            yield str(path), read_task_folder(path.parent)
        except InvalidTaskError as error:
            yield str(path), error


def read_task_folder(folder: Path) -> Task:
    """Returns the task in ``folder``.

    Raises:
        InvalidTaskError: A file is missing or malformed; the message names file, field and value.
    """
    from coding_gym.tasks.host_paths import with_paths  # imports pydantic, which is slow
    from coding_gym.tasks.task_row import read_task  # imports pydantic, which is slow

    path = folder / MANIFEST
    data = read_toml(path)
    tree_name, state = data.pop("tree", "tree"), data.pop("tree_state", "base")
    if state not in ("base", "fixed"):
        raise InvalidTaskError(f"{path}: field 'tree_state' must be base or fixed, got {state!r}")
    is_fixed = state == "fixed"
    tree = (folder / str(tree_name)).resolve()
    if data.get("id") is None:
        raise InvalidTaskError(f"{path}: field 'id' must be the id of the task, got no value")
    if not tree.is_dir():
        raise InvalidTaskError(f"{path}: field 'tree' must name a folder, got {tree_name!r}")
    gold = _read_gold(folder, required=is_fixed)
    fields = {
        "folder": str(tree),
        "reverse_patch": gold.text if is_fixed else "",
        "repo": data.get("repo") or tree.parent.name,
        "patch": gold.text,
    }
    task = read_task(data | fields, str(path), is_closed=True)
    if not task.fail_to_pass:
        raise InvalidTaskError(f"{path}: field 'fail_to_pass' must name a test, got none")
    hidden = read_hidden(folder / _HIDDEN)
    if task.runner == "pytest":  # ids of other runners do not name files
        _check_tests(task.expected_tests, tree, hidden, path)
    base_versions = _hidden_at_base(tree, gold, hidden, is_fixed, folder / _GOLD)
    _check_hidden(task, hidden, base_versions, folder, tree)
    plan = folder / PLAN
    task = replace(
        task,
        problem_statement=task.problem_statement.strip(),
        test_patch=Patch.between(base_versions, hidden).text,
        grading_plan=read_text(plan) if plan.is_file() else "",
    )
    return with_paths(task, folder, str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the content of a TOML file; raises InvalidTaskError if it cannot be read."""
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidTaskError(f"{path}: must be TOML: {error}") from None


def _read_gold(folder: Path, *, required: bool) -> Patch:
    path = folder / _GOLD
    if not path.is_file():
        if required:
            raise InvalidTaskError(f"{path} is missing; tree_state = 'fixed' requires this file")
        return Patch()
    gold = Patch(read_text(path, "surrogateescape"))
    try:
        is_empty = not gold.files
    except PatchError as error:
        raise InvalidTaskError(f"{path}: {error}") from None
    if is_empty:
        raise InvalidTaskError(f"{path} must contain a git diff, got an empty file")
    return gold


def read_hidden(folder: Path) -> dict[str, str]:
    """Returns the text of each file of hidden tests by its path relative to ``folder``.

    Files in ``__pycache__`` are skipped.

    Raises:
        InvalidTaskError: A file is binary.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in name.parts:
            files[name.as_posix()] = _read_hidden_file(path)
    return files


def _read_hidden_file(path: Path) -> str:
    text = read_text(path, "surrogateescape")
    if "\0" in text:
        raise InvalidTaskError(f"{path} is binary; hidden tests must be text files")
    return text


def _check_tests(names: tuple[str, ...], tree: Path, hidden: dict[str, str], path: Path) -> None:
    for name in names:
        file, separator, _ = name.partition("::")
        if not separator or file in hidden or (tree / file).is_file():
            continue
        raise InvalidTaskError(
            f"{path}: test {name!r} is in a file that is neither in {_HIDDEN}/ nor in the tree; "
            + hint(file, hidden)
        )


def _check_hidden(
    task: Task, hidden: dict[str, str], base_versions: dict[str, str], folder: Path, tree: Path
) -> None:
    """Raises InvalidTaskError if the tree has a copy of a fail-to-pass test's hidden file."""
    for file in sorted(hidden.keys() & files_of_tests(task.fail_to_pass)):
        if base_versions.get(file) == hidden[file]:
            raise InvalidTaskError(
                f"{folder / _HIDDEN / file} is also in the tree, where policies can read it; "
                f"remove {tree / file}"
            )


def _hidden_at_base(
    tree: Path, gold: Patch, hidden: dict[str, str], is_fixed: bool, gold_path: Path
) -> dict[str, str]:
    """Returns the base versions of the hidden files that also exist in the base.

    Raises:
        InvalidTaskError: The gold patch, whose reversal gives the base, changes a hidden file.
    """
    if is_fixed and (shared_paths := sorted(gold.paths & hidden.keys())):
        raise InvalidTaskError(
            f"{gold_path} changes {shared_paths[0]}, which is also in {_HIDDEN}/; remedy: remove "
            "the file from the patch, and from the tree if the base does not have the file"
        )
    return {path: _read_hidden_file(tree / path) for path in hidden if (tree / path).is_file()}
