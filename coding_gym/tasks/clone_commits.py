"""Full names of commits that rows abbreviate, found in a clone."""

import re
from functools import lru_cache
from pathlib import Path

from coding_gym.errors import InvalidTaskError

_ABBREVIATED = re.compile(r"([0-9a-f]{7,40})(\^?)")
_SHA_CHARS = 40


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
    from coding_gym.workspace.commit_names import commit_names

    digits = commit.removesuffix("^")
    with commit_names(repository) as find:
        found = find(f"{digits}^{{commit}}")
        if found is None:
            raise LookupError("none of its commits begins so, or more than one does")
        parent = find(f"{found}^") if commit.endswith("^") else found
    if parent is None:
        raise LookupError("that commit has no parent")
    return parent
