"""Files of the workspace as tools read and change them, inside the sandbox.

Paths are resolved by the sandbox itself, links and all, and what is outside the workspace is
refused. Content is kept as it is but for what a tool changes: bytes that are no text, line ends, a
byte order mark, the mode.
"""

import codecs
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self

from coding_gym.tools.own_commands import run_own
from coding_gym.tools.protocol import ToolContext

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Prints which folder above a place is the workspace itself, if one is.
_SECOND_NAME = """\
above=$PLACE
while [ "$above" ]; do
    if [ "$above" -ef "$ROOT" ]; then printf %s "$above"; exit; fi
    above=${above%/*}
done"""


def resolve(context: ToolContext, file: str, *, may_be_new: bool = False) -> str | None:
    """Returns a path's real place as the sandbox sees it, or None where that is outside.

    Args:
        context: The episode, in whose sandbox the path leads somewhere.
        file: A path, relative to the workspace or absolute.
        may_be_new: Whether nothing need be there, nor in the folders above it.

    Raises:
        FileNotFoundError: The path leads nowhere.
        TimeoutError: There was no time to find out.
        UnicodeEncodeError: It holds what no file name can.
        SandboxError: The sandbox is closed or died.
    """
    if "\0" in file or not file:
        raise FileNotFoundError(file)
    file.encode()
    option = "-m" if may_be_new else "-e"
    found = run_own(
        context,
        f'realpath -- "$ROOT" && realpath {option} -- "$FILE"',
        env={"ROOT": context.sandbox.workdir, "FILE": file},
    )
    if found.timed_out:
        raise TimeoutError("it took too long to find it")
    root, _, path = found.output.removesuffix("\n").partition("\n")
    if not found.ok or not path:
        raise FileNotFoundError(file)
    if PurePosixPath(path).is_relative_to(root):
        return path
    # An image may show the workspace at a second path, as a mount: the same folder, another name.
    second = run_own(context, _SECOND_NAME, env={"ROOT": root, "PLACE": path}).output
    return root + path.removeprefix(second) if second else None


def with_line_ends_of(data: bytes, search: bytes, replace: bytes) -> tuple[bytes, bytes]:
    """Gives what is searched for, and what replaces it, the line ends of a file.

    A policy sees and writes plain line feeds. In a file that has only CRLF, and in a mixed one that
    does not hold the text as given, it means CRLF.
    """
    num_crlf = data.count(b"\r\n")
    if not num_crlf or (num_crlf < data.count(b"\n") and search in data):
        return search, replace
    as_crlf = (text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (search, replace))
    return next(as_crlf), next(as_crlf)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's content as text, and how to write other text in its way.

    Attributes:
        text: Its text with line feeds for line ends. Bytes that are no text are lone surrogates,
            which `encode` turns into the same bytes again; see `shown` for what a policy may read.
        encoding: ``utf-8``, or what the byte order mark says.
        mark: The byte order mark, or b"".
        newline: What ends its lines: CRLF where all of them end so, else a line feed.
    """

    text: str = ""
    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"

    @classmethod
    def decode(cls, data: bytes) -> Self:
        r"""Reads any bytes.

        >>> TextFile.decode(b"one\r\ntwo\r\n").text
        'one\ntwo\n'
        """
        mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", "utf-8"))
        handler = "surrogateescape" if encoding == "utf-8" else "surrogatepass"
        try:
            text = data[len(mark) :].decode(encoding, handler)
        except UnicodeDecodeError:  # an odd number of bytes behind a mark of two-byte text
            return cls(data.decode("utf-8", "surrogateescape"))
        num_crlf = text.count("\r\n")
        if num_crlf and num_crlf == text.count("\n"):
            return cls(text.replace("\r\n", "\n"), encoding, mark, "\r\n")
        return cls(text, encoding, mark)

    def encode(self, text: str) -> bytes:
        """Returns the bytes of other text, written as this file's is."""
        if self.newline != "\n":
            text = text.replace("\r\n", "\n").replace("\n", self.newline)
        if self.mark:
            text = text.removeprefix("\ufeff")  # the mark, as a policy may write it itself
        handler = "surrogateescape" if self.encoding == "utf-8" else "surrogatepass"
        return self.mark + text.encode(self.encoding, handler)

    @property
    def is_binary(self) -> bool:
        """Whether it holds a NUL, as no text does."""
        return "\0" in self.text


def shown(text: str) -> str:
    r"""Returns text that a policy may read: U+FFFD stands for each byte that is no text.

    >>> print(ascii(shown("caf\udce9")))
    'caf\ufffd'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
