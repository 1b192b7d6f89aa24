"""Writes files that other processes read only when they are complete."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_PARTIAL = ".partial"


def write_whole(path: Path, text: str, *, overwrite: bool = True) -> None:
    """Writes a text as UTF-8 to a file that other processes see only when it is complete."""
    with whole_file(path, overwrite=overwrite) as partial:
        partial.write_text(text, encoding="utf-8")


def write_output(path: Path, text: str) -> None:
    """Writes a text as UTF-8 to a file that the user named.

    A symbolic link is kept, and its target is written as by `write_whole`. A file that is not
    regular, such as a named pipe or ``/dev/stdout``, is written directly.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        write_whole(path.resolve(), text)


@contextmanager
def whole_file(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Yields the path of a hidden file; renames the file to ``path`` unless an exception occurs.

    Raises:
        OSError: The file cannot be renamed.
        FileExistsError: ``path`` exists and ``overwrite`` is False.
    """
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}{_PARTIAL}")
    try:
        yield partial
        if overwrite:
            partial.replace(path)
        else:
            path.hardlink_to(partial)
    finally:
        partial.unlink(missing_ok=True)


def remove_partial_files(folder: Path) -> None:
    """Removes the hidden files that killed writers left in a folder."""
    for partial in folder.glob(f".*{_PARTIAL}"):
        partial.unlink()
