"""The text of a file as it is, line ends and all."""

from pathlib import Path


def read_text(path: Path) -> str:
    """Returns a file's text; bytes that are not UTF-8 come as surrogate escapes.

    Raises:
        OSError: It cannot be read.
    """
    return path.read_bytes().decode("utf-8", "surrogateescape")
