"""Files that tools read and change: found, read, searched, written, or refused with the reason."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coding_gym.errors import InvalidArgumentError
from coding_gym.tools.answers import Refusal, name_of
from coding_gym.tools.files import TextFile, resolve
from coding_gym.tools.protocol import ToolContext

if TYPE_CHECKING:
    from coding_gym.sandbox.protocol import Sandbox

MAX_FILE_BYTES = 4 << 20
MAX_LINE_CHARS = 2000
MAX_FOUND = 1000
_MAX_PATH_BYTES = 4096

_REASONS = {
    errno.ENOENT: "{} does not exist",
    errno.EISDIR: "{} is a folder, not a file",
    errno.ENOTDIR: "{}: a part of this path is a file, not a folder",
    errno.EACCES: "{}: permission denied",
    errno.EPERM: "{}: permission denied",
    errno.EROFS: "{}: permission denied",
    errno.EFBIG: f"{{}} is larger than {MAX_FILE_BYTES >> 20} MiB; use a command instead",
    errno.EINVAL: "{} is not a regular file",
    errno.ENOSPC: "{}: no space is left",
    errno.EDQUOT: "{}: no space is left",
}


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file of the workspace that a tool has read.

    Attributes:
        path: As the policy gave it.
        place: Where it is, links resolved.
        data: Its bytes.
        content: These as text.
    """

    path: str
    place: str
    data: bytes
    content: TextFile

    @property
    def text(self) -> str:
        """Its text, with line feeds for line ends."""
        return self.content.text


@contextmanager
def refusals(path: str) -> Iterator[None]:
    """Turns what the system says against a path into a `Refusal` that names it."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"{{}}: {error.strerror or error}")
        if isinstance(error, FileNotFoundError):
            reason = _REASONS[errno.ENOENT]
        raise Refusal(reason.format(name_of(path))) from error
    except InvalidArgumentError as error:  # too much for one file, or no path at all
        raise Refusal(f"{name_of(path)}: {error}") from error


def find_place(context: ToolContext, path: str, *, may_be_new: bool = False) -> str:
    """Returns where a path of the workspace leads.

    Args:
        context: The episode, in whose sandbox it is looked for.
        path: Relative to the workspace, or absolute.
        may_be_new: Whether nothing need be there.

    Raises:
        Refusal: It is outside, leads nowhere, or is no path.
        SandboxError: The sandbox is closed or died.
    """
    if not path or "\0" in path:
        raise Refusal("a path must not be empty" if not path else "a path must not hold a NUL")
    if len(path.encode("utf-8", "surrogatepass")) > _MAX_PATH_BYTES:
        raise Refusal(f"a path of more than {_MAX_PATH_BYTES} bytes")
    try:
        with refusals(path):
            place = resolve(context, path, may_be_new=may_be_new)
    except UnicodeEncodeError as error:
        raise Refusal("a path must not hold a lone surrogate") from error
    if place is None:
        raise Refusal(
            f"{name_of(path)} is outside the repository, which is {context.sandbox.workdir}"
        )
    return place


def open_file(context: ToolContext, path: str) -> OpenedFile:
    """Reads a text file.

    Raises:
        Refusal: It is outside, missing, no file, too large, locked, or binary.
        SandboxError: The sandbox is closed or died.
    """
    place = find_place(context, path)
    data = read_bytes(context.sandbox, path, place)
    content = TextFile.decode(data)
    if content.is_binary:
        raise Refusal(f"{name_of(path)} is a binary file; use a command instead")
    return OpenedFile(path, place, data, content)


def read_bytes(sandbox: "Sandbox", path: str, place: str) -> bytes:
    """Reads a file whose place is known.

    Raises:
        Refusal: It is missing, no file, too large, or locked.
        SandboxError: The sandbox is closed or died.
    """
    with refusals(path):
        return sandbox.read_file(place, max_bytes=MAX_FILE_BYTES)


def read_if_there(sandbox: "Sandbox", path: str, place: str) -> bytes | None:
    """Reads a file whose place is known, or returns None where nothing is.

    Raises:
        Refusal: It is no file, too large, or locked.
        SandboxError: The sandbox is closed or died.
    """
    with refusals(path):
        try:
            return sandbox.read_file(place, max_bytes=MAX_FILE_BYTES)
        except FileNotFoundError:
            return None


def written_as(before: bytes | None, text: str) -> bytes:
    """Returns the bytes of a file's new text, in the way of what it held, where that was text."""
    old = TextFile.decode(before or b"")
    return (TextFile() if old.is_binary else old).encode(text)


def write_bytes(sandbox: "Sandbox", path: str, place: str, data: bytes) -> None:
    """Writes a file whose place is known; where it fails, the file is what it was.

    Raises:
        Refusal: It cannot be written.
        SandboxError: The sandbox is closed or died.
    """
    if len(data) > MAX_FILE_BYTES:
        raise Refusal(f"{name_of(path)} would be larger than {MAX_FILE_BYTES >> 20} MiB")
    with refusals(path):
        sandbox.write_file(place, data)


def save(sandbox: "Sandbox", file: OpenedFile, text: str) -> bytes:
    """Writes a file's new text in the file's own way, and returns its new bytes.

    Raises:
        Refusal: It cannot be written.
        SandboxError: The sandbox is closed or died.
    """
    try:
        data = file.content.encode(text)
    except UnicodeEncodeError as error:
        raise Refusal(f"{name_of(file.path)}: the text does not fit its encoding") from error
    write_bytes(sandbox, file.path, file.place, data)
    return data


def occurrences(file: OpenedFile, wanted: str) -> tuple[str, list[int]]:
    r"""Returns a text as it stands in a file, and the first positions where it does.

    At most `MAX_FOUND` are looked for. A policy sees and writes plain line feeds; in a file of
    mixed line ends that does not hold the text as given, CRLF is meant.
    """
    text = file.text
    if file.content.newline != "\n":
        wanted = wanted.replace("\r\n", "\n")
    elif wanted not in text and "\r\n" in text:
        wanted = wanted.replace("\r\n", "\n").replace("\n", "\r\n")
    found: list[int] = []
    position = text.find(wanted)
    while position >= 0 and len(found) < MAX_FOUND:
        found.append(position)
        position = text.find(wanted, position + len(wanted))
    return wanted, found


def in_place_of(file: OpenedFile, wanted: str, replacement: str) -> str:
    """Returns a replacement with the line ends of the text that it replaces."""
    if "\r\n" in wanted and file.content.newline == "\n":
        return replacement.replace("\r\n", "\n").replace("\n", "\r\n")
    return replacement


def line_of(text: str, position: int) -> int:
    """Returns the number of the line, from 1, that a position is on."""
    return text.count("\n", 0, position) + 1


def lines_of(text: str) -> list[str]:
    r"""Returns a text's lines without their ends.

    >>> lines_of("a\nb\n"), lines_of("")
    (['a', 'b'], [])
    """
    return text.removesuffix("\n").split("\n") if text else []


def numbered(lines: list[str], first: int) -> str:
    r"""Returns lines with their numbers, as ``cat -n`` shows them.

    >>> numbered(["a", "b"], 9)
    '     9\ta\n    10\tb'
    """
    return "\n".join(f"{first + i:6}\t{cut_line(line)}" for i, line in enumerate(lines))


def cut_line(line: str) -> str:
    """Returns a line that is not too long to show."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]}[... {len(line) - MAX_LINE_CHARS} more characters]"
