"""Addresses of the repositories of tasks: URLs, or paths on this machine."""

import re
from pathlib import Path

_URL = re.compile(r"[a-z][a-z0-9+.-]*://|[^/:]+@[^/:]+:", re.IGNORECASE)
_PASSWORD = re.compile(r"(?<=://)[^/\s]*@")


def is_url(repository: str, *, base: Path | None = None) -> bool:
    """Returns whether ``repository`` is a remote address: a URL or ``user@host:path``.

    Returns False if a local path has this name.

    Args:
        repository: A URL or a path.
        base: The folder that relative paths start from; the current folder by default.
    """
    if not repository.isprintable() or not _URL.match(repository):
        return False
    try:
        return not Path(base or "", repository).exists()
    except OSError:  # the name is too long for a file
        return True


def find_repository(path: str | Path, *, base: Path | None = None) -> Path | None:
    """Returns the real path of a git repository, also if it is bare; None without a repository.

    Args:
        path: The path; ``~`` is the home folder.
        base: The folder that relative paths start from; the current folder by default.
    """
    try:
        folder = Path(base or "", Path(path).expanduser()).resolve()
        is_bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
        return folder if is_bare or (folder / ".git").exists() else None
    except (OSError, RuntimeError, ValueError):  # not a path, or the home of an unknown user
        return None


def without_password(text: str) -> str:
    """Removes the user and the password of each URL in a text, for messages."""
    return _PASSWORD.sub("", text)
