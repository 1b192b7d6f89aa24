"""Full names of commits that rows abbreviate, found in a clone by reading its files.

A user's clone may be hostile to a git that runs in it; reading it is harmless.
"""

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.tasks.git_packs import MAX_COMMIT_BYTES, PackIndex

_ABBREVIATED = re.compile(r"([0-9a-f]{7,40})(\^?)")
_SHA_CHARS = 40
_MAX_ALTERNATES = 8


def is_abbreviated(commit: str) -> bool:
    """Returns whether a name is the beginning of a commit's, or asks for the parent of one."""
    return _ABBREVIATED.fullmatch(commit) is not None and len(commit) != _SHA_CHARS


def full_commit(repository: Path, commit: str, label: str) -> str:
    """Returns the full name of a commit.

    Args:
        repository: A clone, bare or not.
        commit: At least seven digits of a name; with ``^`` behind them its first parent is meant.
        label: Names the task and its field in errors.

    Raises:
        InvalidTaskError: The clone has no such commit, or more than one.
    """
    try:
        return _found(repository, commit)
    except LookupError as error:
        raise InvalidTaskError(
            f"{label} must be a commit of {repository}, got {commit!r}; {error.args[0]}; fetch it "
            "there, or give another clone"
        ) from None


@lru_cache(maxsize=4096)  # rows of one project often share their commit; errors are not kept
def _found(repository: Path, commit: str) -> str:
    match = _ABBREVIATED.fullmatch(commit)
    digits, parent = match.groups() if match else (commit, "")
    # Trees and files have names of the same form.
    texts = {sha: _text(repository, sha) for sha in _names(repository, digits)}
    commits = {sha: text for sha, text in texts.items() if text is not None}
    if len(commits) != 1:
        raise LookupError(f"{len(commits)} of its commits begin so" if commits else "it has none")
    ((sha, text),) = commits.items()
    found = _first_parent(text) if parent else sha
    if not found:
        raise LookupError("that commit has no parent")
    return found


def _names(repository: Path, prefix: str) -> tuple[str, ...]:
    found: set[str] = set()
    for objects in _object_folders(repository):
        loose = (objects / prefix[:2]).glob(f"{prefix[2:]}*")
        found |= {prefix[:2] + path.name for path in loose}
        for index in _indexes(objects):
            found |= {sha for sha, _ in index.starting_with(prefix)}
    return tuple(sorted(found))


def _text(repository: Path, sha: str) -> bytes | None:
    """Returns the text of a commit; None where the clone has no commit of that name."""
    for objects in _object_folders(repository):
        with suppress(OSError, zlib.error):
            data = (objects / sha[:2] / sha[2:]).read_bytes()
            head, _, body = zlib.decompressobj().decompress(data, MAX_COMMIT_BYTES).partition(b"\0")
            return body if head.startswith(b"commit ") else None
        for index in _indexes(objects):
            if (text := index.commit(sha)) is not None:
                return text
    return None


def _first_parent(text: bytes) -> str:
    for line in text.partition(b"\n\n")[0].split(b"\n"):
        if line.startswith(b"parent "):
            return line[7:].decode("ascii", "replace")
    return ""


def _object_folders(repository: Path) -> Iterator[Path]:
    """Yields where objects lie: in the clone, and where ``git clone --shared`` left them."""
    waiting = [_git_folder(repository) / "objects"]
    for _ in range(_MAX_ALTERNATES):
        if not waiting:
            return
        folder = waiting.pop(0)
        yield folder
        with suppress(OSError, UnicodeDecodeError):
            lines = (folder / "info" / "alternates").read_text("utf-8").splitlines()
            waiting += [folder / line for line in lines if line and not line.startswith("#")]


def _git_folder(repository: Path) -> Path:
    git = repository / ".git"
    if git.is_dir():
        return git
    with suppress(OSError, UnicodeDecodeError):  # a worktree's file that names the folder
        folder = repository / git.read_text("utf-8").strip().removeprefix("gitdir: ")
        common = folder / "commondir"
        return folder / common.read_text("utf-8").strip() if common.is_file() else folder
    return repository


def _indexes(objects: Path) -> Iterator[PackIndex]:
    for path in sorted((objects / "pack").glob("*.idx")):
        with suppress(OSError, ValueError):  # a clone may hold what is no pack
            yield PackIndex(path)
