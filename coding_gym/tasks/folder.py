"""Tasks that lie in folders: ``task.toml``, ``gold.patch``, ``hidden/`` and a tree.

- ``task.toml``: what `coding_gym.tasks.schema.TaskManifest` names.
- ``gold.patch``: the reference repair, a git diff from base to fixed.
- ``hidden/``: the hidden test files, at their paths in the tree.
- ``plan.json``: how the hidden tests are negated in a grade, where that is known
  (``coding-gym tasks plan``).
- ``tree/``: the program; ``tree`` in ``task.toml`` may name another folder.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

from coding_gym.errors import InvalidTaskError, PatchError
from coding_gym.patch import Patch
from coding_gym.task import FolderTree, Task
from coding_gym.tasks.usable import check_usable

MANIFEST = "task.toml"
PLAN = "plan.json"
_GOLD = "gold.patch"
_HIDDEN = "hidden"
# Content of programs, where a file named task.toml would mean something else.
_NOT_SEARCHED = {"tree", _HIDDEN, "__pycache__"}


def read_folder(folder: Path) -> Iterator[tuple[str, Task]]:
    """Yields (manifest path, task) for every task at or below ``folder``, in order of paths.

    Raises:
        InvalidTaskError: A task is not as it must be, or there is none.
    """
    found = False
    for current, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _NOT_SEARCHED and f[0] != ".")
        if MANIFEST in files:
            found = True
            folders.clear()
            yield str(Path(current, MANIFEST)), read_task(Path(current))
    if not found:
        raise InvalidTaskError(
            f"{folder} holds no {MANIFEST}, neither itself nor below; "
            "`coding-gym tasks new FOLDER` makes one to begin with"
        )


def read_task(folder: Path) -> Task:
    """Reads the task in ``folder``.

    Raises:
        InvalidTaskError: A file is missing or is not what it must be; names file and field.
    """
    from coding_gym.tasks.schema import TaskManifest, parse

    path = folder / MANIFEST
    manifest = parse(TaskManifest, _read_toml(path), str(path))
    tree = (folder / manifest.tree).resolve()
    if not tree.is_dir():
        raise InvalidTaskError(f"{path}: field 'tree' must name a folder, got {manifest.tree!r}")
    gold = _read_gold(folder, required=manifest.tree_state == "fixed")
    hidden = _read_hidden(folder / _HIDDEN)
    if manifest.runner == "pytest":  # others have ids that say nothing of files
        _check_tests(manifest.fail_to_pass + manifest.pass_to_pass, tree, hidden, path)
    plan = folder / PLAN
    before = _base_files(tree, gold, hidden, manifest.tree_state == "fixed", folder / _GOLD)
    for file in sorted({name.partition("::")[0] for name in manifest.fail_to_pass} & set(hidden)):
        if before.get(file) == hidden[file]:
            raise InvalidTaskError(
                f"{folder / _HIDDEN / file} is also in the tree, where the policy reads it; remove "
                f"{tree / file}"
            )
    values = manifest.model_dump(exclude={"id", "tree", "tree_state", "repo"})
    task = Task(
        task_id=manifest.id,
        tree=FolderTree(str(tree), gold.text if manifest.tree_state == "fixed" else ""),
        repo=manifest.repo or tree.parent.name,
        gold_patch=gold.text,
        test_patch=Patch.between({p: t for p, t in before.items() if p in hidden}, hidden).text,
        grading_plan=plan.read_text(encoding="utf-8") if plan.is_file() else "",
        **values,
    )
    check_usable(task, str(path))
    return task


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidTaskError(f"{path}: not TOML in UTF-8: {error}") from None
    except OSError as error:
        raise InvalidTaskError(f"{path}: cannot be read: {error.strerror}") from None


def _read_gold(folder: Path, *, required: bool) -> Patch:
    path = folder / _GOLD
    if not path.is_file():
        if required:
            raise InvalidTaskError(f"{path} is missing; tree_state 'fixed' needs it")
        return Patch()
    gold = Patch(path.read_bytes().decode("utf-8", "surrogateescape"))
    try:
        empty = not gold.files
    except PatchError as error:
        raise InvalidTaskError(f"{path}: {error}") from None
    if empty:
        raise InvalidTaskError(f"{path} is empty")
    return gold


def _read_hidden(folder: Path) -> dict[str, str]:
    """Returns the hidden files, text by path relative to the tree."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[path.relative_to(folder).as_posix()] = _read_text(path)
    return files


def _read_text(path: Path) -> str:
    data = path.read_bytes()
    if b"\0" in data:
        raise InvalidTaskError(f"{path} is binary; hidden tests must be text files")
    return data.decode("utf-8", "surrogateescape")


def _check_tests(names: tuple[str, ...], tree: Path, hidden: dict[str, str], path: Path) -> None:
    for name in names:
        file, separator, _ = name.partition("::")
        if not separator or file in hidden or (tree / file).is_file():
            continue
        close = difflib.get_close_matches(file, hidden, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InvalidTaskError(
            f"{path}: test {name!r} is in a file that is neither in {_HIDDEN}/ nor in the tree"
            + hint
        )


def _base_files(
    tree: Path, gold: Patch, hidden: dict[str, str], is_fixed: bool, gold_path: Path
) -> dict[str, str]:
    """Returns the base's text of every file that the gold patch or a hidden test touches.

    Raises:
        InvalidTaskError: The gold patch does not fit the tree.
    """
    if any(change.is_binary for change in gold.files):
        wanted, gold = set(hidden) - gold.paths, Patch()  # only git can apply that
    else:
        wanted = set(hidden) | gold.paths
    present = {path: tree / path for path in sorted(wanted) if (tree / path).is_file()}
    files = {path: _read_text(file) for path, file in present.items()}
    try:
        moved = gold.apply(files, reverse=is_fixed)
    except PatchError as error:
        how = "is not taken back" if is_fixed else "does not apply"
        raise InvalidTaskError(f"{gold_path} {how}: {error}") from None
    return moved if is_fixed else files
