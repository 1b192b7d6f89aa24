"""Reads and writes base trees without history: inline files, and folders of this machine."""

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from coding_gym.errors import InvalidTaskError
from coding_gym.program_output import DISK_FULL
from coding_gym.sandbox.layer_union import copy, united
from coding_gym.task import FilesTree, FolderTree, Task
from coding_gym.workspace.host_git import HostGitError, run_git

# Nested repositories and byte code are not part of a base tree.
_SKIPPED_NAMES = frozenset({".git", "__pycache__"})


def digest_tree(task: Task, tree: FilesTree | FolderTree) -> str:
    """Returns a digest of the files of a tree, without its reverse patch.

    Raises:
        InvalidTaskError: The folder does not exist, or a text is not Unicode.
        OSError: A file or a subfolder of the folder cannot be read.
    """
    if isinstance(tree, FolderTree):
        return digest_folder(source_folder(task, tree))
    digest = hashlib.sha256()
    for name, text in sorted(tree.files.items()):
        field = f"'files', path {name!r},"
        _update(digest, encode(task, field, name), encode(task, field, text))
    return digest.hexdigest()


def digest_folder(folder: Path) -> str:
    """Returns a digest of the files that `copy_files` copies, with executable bits and links.

    Raises:
        OSError: A file or a subfolder cannot be read.
    """
    digest = hashlib.sha256()
    for name, entry in _base_files(folder):  # `Path` objects would take longer
        if entry.is_symlink():
            _update(digest, os.fsencode(name), b"link", os.fsencode(os.readlink(entry)))  # noqa: PTH115
            continue
        mode = b"x" if entry.stat().st_mode & 0o100 else b"-"
        with open(entry, "rb", buffering=0) as file:  # noqa: PTH123
            _update(digest, os.fsencode(name), mode, file.read())
    return digest.hexdigest()


def copy_files(folder: Path, into: Path) -> None:
    """Copies the files and symlinks of a folder, except nested repositories and byte code."""
    copy(dict(_base_files(folder)), into, (os.geteuid(), os.getegid()))


def write_files(task: Task, tree: FilesTree, into: Path) -> None:
    """Writes a row's files; raises InvalidTaskError if a path is invalid or leaves the tree."""
    for name, text in tree.files.items():
        label = f"task {task.task_id}: field 'files' has"
        if not _is_inside(name):
            raise InvalidTaskError(f"{label} {name!r}, which must be a relative path in the tree")
        target = into / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(encode(task, "'files'", text))
        except (OSError, RecursionError) as error:
            if getattr(error, "errno", None) in (*DISK_FULL, errno.EFBIG):
                raise
            reason = getattr(error, "strerror", None) or error
            raise InvalidTaskError(f"{label} {name[:80]!r}, which is invalid: {reason}") from error


def reverse_apply(task: Task, patch: str, tree: Path) -> None:
    """Reverses a patch in a repository; git changes nothing outside the repository.

    Raises:
        InvalidTaskError: The patch does not fit the files, or leads out of the tree.
    """
    if not patch:
        return
    with tempfile.NamedTemporaryFile(suffix=".patch") as file:
        text = patch if patch.endswith("\n") else f"{patch}\n"
        file.write(encode(task, "'reverse_patch'", text))
        file.flush()
        try:
            run_git("apply", "--reverse", "--whitespace=nowarn", file.name, cwd=tree)
        except HostGitError as error:
            raise InvalidTaskError(
                f"task {task.task_id}: field 'reverse_patch' cannot be applied in reverse: {error}"
            ) from error


def source_folder(task: Task, tree: FolderTree) -> Path:
    """Returns the folder of a tree; raises InvalidTaskError if it does not exist."""
    folder = Path(tree.folder)
    with contextlib.suppress(RuntimeError):  # a `~user` that does not exist
        folder = folder.expanduser()
    if not folder.is_dir():
        raise InvalidTaskError(
            f"task {task.task_id}: field 'folder' names {tree.folder!r}, which is not a folder"
        )
    return folder


def _base_files(folder: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yields the relative path and entry of each file and symlink that `copy_files` copies.

    The order is that of the paths, which is the same on every machine.

    Raises:
        OSError: A subfolder cannot be listed.
    """
    entries = united((folder,), lambda entry: entry.name not in _SKIPPED_NAMES)
    for name, entry in sorted(entries.items()):
        if entry.is_symlink() or entry.is_file():
            yield name, entry


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    parts = [part.lower() for part in path.parts]
    return (
        bool(parts)
        and not path.is_absolute()
        and not {"..", ".git"} & set(parts)
        and "\0" not in name
    )


def _update(digest: "hashlib._Hash", *parts: bytes) -> None:
    """Adds byte strings to a digest, each with its length, so that their boundaries count."""
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part)


def encode(task: Task, field: str, text: str) -> bytes:
    """Returns the bytes of a field's text; raises InvalidTaskError if it is not Unicode."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidTaskError(
            f"task {task.task_id}: field {field} must be Unicode: {error}"
        ) from error
