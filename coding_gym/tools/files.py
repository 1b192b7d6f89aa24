"""Files and folders of the workspace: resolve, read, search, replace, write, list.

All toolsets edit files with these functions. Paths are resolved inside the sandbox, links and all,
and paths outside the workspace are refused. An edit keeps everything else: bytes that are not text,
line ends, a byte order mark, the mode. Each function raises `Refusal` where a file cannot be used
as the policy asks, and `SandboxError` where the sandbox is closed or died.
"""

import codecs
import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Self

from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.text.truncate import well_formed
from coding_gym.tools.toolset import Refusal, ToolContext, name_of

MAX_FILE_BYTES = 4 << 20
MAX_LINE_CHARS = 2000
_MAX_PATH_BYTES = 4096
_MAX_SIMILAR = 3
_OWN_COMMAND_S = 30.0
_MAX_OWN_OUTPUT_BYTES = 2 << 20

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
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
# Prints which folder above a place is the workspace itself, if one is.
_SECOND_NAME = """\
above=$PLACE
while [ "$above" ]; do
    if [ "$above" -ef "$ROOT" ]; then printf %s "$above"; exit; fi
    above=${above%/*}
done"""

# Folders of tools, not of the project.
_IGNORED = (
    ".git",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".venv",
    "venv",
)
SKIP_IGNORED = "( " + " -o ".join(f"-name {name}" for name in _IGNORED) + " ) -prune -o"
SKIP_HIDDEN = "-name .* -prune -o"
# The tests of find are words of our own, split at blanks; `set -f` keeps their patterns as they
# are. A folder sorts right before its content, as slashes sort below all else.
_LIST = """\
set -f
cd -- "$BASE" || exit 3
find . -mindepth 1 $TESTS '(' -type d -printf '%P/\\0' -o -printf '%P\\0' ')' 2>/dev/null |
    tr / '\\001' | LC_ALL=C sort -z | head -z -n "$NUM" | tr '\\001' /"""


def run_own(
    context: ToolContext,
    command: str,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> ExecResult:
    """Runs a tool's own command, for at most as long as a command of the policy may take now.

    Text from a policy comes in ``env`` or ``stdin``, never in the command.
    """
    return context.sandbox.run(
        command,
        timeout_s=min(_OWN_COMMAND_S, context.command_timeout_s),
        max_output_bytes=_MAX_OWN_OUTPUT_BYTES,
        env=dict(env or {}),
        stdin=stdin,
    )


def resolve(context: ToolContext, file: str, *, may_be_new: bool = False) -> str | None:
    """Returns a path's real place as the sandbox sees it, or None where that is outside.

    Args:
        context: The episode.
        file: A path, relative to the workspace or absolute.
        may_be_new: Whether the file and the folders above it may be missing.

    Raises:
        FileNotFoundError: The path leads nowhere.
        TimeoutError: There was no time to find out.
        UnicodeEncodeError: No file can have this name.
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
    # An image may have the workspace at a second path, as a mount: the same folder, another name.
    second = run_own(context, _SECOND_NAME, env={"ROOT": root, "PLACE": path}).output
    return root + path.removeprefix(second) if second else None


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's content as text, and how other text is written in the same way.

    Attributes:
        text: Its text with line feeds for line ends. Bytes that are not text are lone surrogates,
            which `encode` turns into the same bytes again.
        encoding: ``utf-8``, or the encoding that the byte order mark names.
        mark: The byte order mark, or b"".
        newline: CRLF where all lines end so, else a line feed.
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


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file of the workspace that a tool has read.

    Attributes:
        path: The path in the call.
        place: Its real place, links resolved.
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
    """Turns the system's errors about a path into a `Refusal` that names it."""
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
    """Returns the real place of a path in the workspace, which may be missing if so allowed."""
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


def relative(context: ToolContext, place: str) -> str:
    """Returns a place as a path relative to the workspace."""
    return place.removeprefix(find_place(context, ".")).lstrip("/") or "."


def mode_of(context: ToolContext, place: str) -> str:
    """Returns a file's mode as chmod takes it, or "" where there is none."""
    found = run_own(context, 'stat -c %a -- "$PLACE"', env={"PLACE": place})
    return found.output.strip() if found.ok else ""


def open_file(context: ToolContext, path: str) -> OpenedFile:
    """Reads a text file."""
    place = find_place(context, path)
    with refusals(path):
        data = context.sandbox.read_file(place, max_bytes=MAX_FILE_BYTES)
    content = TextFile.decode(data)
    if content.is_binary:
        raise Refusal(f"{name_of(path)} is a binary file; use a command instead")
    return OpenedFile(path, place, data, content)


def read_if_there(context: ToolContext, path: str, place: str) -> bytes | None:
    """Returns the bytes of a file whose place is known, or None where nothing is."""
    with refusals(path):
        try:
            return context.sandbox.read_file(place, max_bytes=MAX_FILE_BYTES)
        except FileNotFoundError:
            return None


def write_bytes(context: ToolContext, path: str, place: str, data: bytes) -> None:
    """Writes a file whose place is known; where it fails, the file is what it was."""
    if len(data) > MAX_FILE_BYTES:
        raise Refusal(f"{name_of(path)} would be larger than {MAX_FILE_BYTES >> 20} MiB")
    with refusals(path):
        context.sandbox.write_file(place, data)


def put(context: ToolContext, path: str, place: str, data: bytes | None, mode: str = "") -> None:
    """Makes a place hold some bytes, with a mode unless it is "", or nothing."""
    if data is None:
        if not run_own(context, 'rm -f -- "$PLACE"', env={"PLACE": place}).ok:
            raise Refusal(f"{name_of(path)} cannot be removed")
        return
    write_bytes(context, path, place, data)
    env = {"MODE": mode, "PLACE": place}
    if mode and not run_own(context, 'chmod -- "$MODE" "$PLACE"', env=env).ok:
        raise Refusal(f"the mode of {name_of(path)} cannot be set")


def write_text(
    context: ToolContext, path: str, text: str, *, appends: bool = False
) -> tuple[str, bytes | None, bytes]:
    """Writes a whole file, or adds to its end, in the encoding and line ends that it has.

    Returns:
        Its place, its bytes before (None where it is new), and its bytes now.
    """
    place = find_place(context, path, may_be_new=True)
    before = read_if_there(context, path, place)
    old = TextFile.decode(before or b"")
    if appends and old.is_binary:
        raise Refusal(f"{name_of(path)} is a binary file; use a command instead")
    data = (TextFile() if old.is_binary else old).encode(old.text + text if appends else text)
    write_bytes(context, path, place, data)
    return place, before, data


def save(context: ToolContext, file: OpenedFile, text: str) -> bytes:
    """Writes a file's new text in the file's own way, and returns its new bytes."""
    try:
        data = file.content.encode(text)
    except UnicodeEncodeError as error:
        raise Refusal(f"{name_of(file.path)}: the text does not fit its encoding") from error
    write_bytes(context, file.path, file.place, data)
    return data


def as_written(file: OpenedFile, old: str, new: str) -> tuple[str, str]:
    r"""Returns a text to find and its replacement, with the line ends that a file has there.

    A policy sees and writes plain line feeds; in a file of mixed line ends that does not hold the
    text as written, CRLF is intended.
    """
    if file.content.newline != "\n":
        return old.replace("\r\n", "\n"), new
    if old not in file.text and "\r\n" in file.text:
        old = old.replace("\r\n", "\n").replace("\n", "\r\n")
    return old, new.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in old else new


def replace_once(
    file: OpenedFile, old: str, new: str, *, missing: str, several: str
) -> tuple[str, int, int]:
    """Returns a file's text with the only occurrence of a text replaced.

    Args:
        file: The file.
        old: The text to find.
        new: The text in its place.
        missing: The refusal where it is not there; `str.format` fills in ``name``, and ``similar``:
            lines that differ from its first one in white space, or "".
        several: The refusal where it is there more than once; `str.format` fills in ``name``,
            ``num``, and the lines of the first ten: ``lines``, or each once as ``distinct``.

    Returns:
        The new text, and where what was put in begins and ends.
    """
    old, new = as_written(file, old, new)
    name, num = name_of(file.path), file.text.count(old)
    if not num:
        raise Refusal(missing.format(name=name, similar=_similar(file, old)))
    if num > 1:
        found = islice(re.finditer(re.escape(old), file.text), 10)
        at = [line_of(file.text, match.start()) for match in found]
        lines = ", ".join(map(str, at))
        raise Refusal(several.format(name=name, num=num, lines=lines, distinct=sorted(set(at))))
    start = file.text.index(old)
    return file.text.replace(old, new), start, start + len(new)


def _similar(file: OpenedFile, wanted: str) -> str:
    first = next((line.split() for line in wanted.split("\n") if line.strip()), None)
    lines = lines_of(file.text)
    found = [(n, line) for n, line in enumerate(lines, 1) if first and line.split() == first]
    if not found:
        return ""
    view = "\n".join(numbered([line], n) for n, line in found[:_MAX_SIMILAR])
    return f"; its first line stands here, perhaps with other white space or other lines:\n{view}"


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
    r"""Returns lines with their numbers, as ``cat -n`` prints them.

    >>> numbered(["a", "b"], 9)
    '     9\ta\n    10\tb'
    """
    return "\n".join(f"{first + i:6}\t{cut_line(line)}" for i, line in enumerate(lines))


def cut_line(line: str) -> str:
    """Returns a line of at most `MAX_LINE_CHARS` characters and a notice."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]}[... {len(line) - MAX_LINE_CHARS} more characters]"


def is_a(context: ToolContext, test: str, place: str) -> bool:
    """Returns whether one of the shell's tests, such as ``-d`` for a folder, holds for a place."""
    return run_own(context, f'test {test} "$PLACE"', env={"PLACE": place}).ok


def entries(
    context: ToolContext, path: str, place: str, *, tests: str, max_entries: int
) -> tuple[list[str], bool]:
    """Returns a folder's paths, sorted, folders with a slash behind; and whether there is more.

    Args:
        context: The episode.
        path: The path in the call, for refusals.
        place: Its real place.
        tests: Tests of ``find``: `SKIP_IGNORED` or `SKIP_HIDDEN`, and others around it. Links are
            not followed.
        max_entries: The most that are returned.
    """
    env = {"BASE": place, "NUM": str(max_entries + 1), "TESTS": tests}
    result = run_own(context, _LIST, env=env)
    if not result.ok:
        why = "it took too long" if result.timed_out else "permission denied"
        raise Refusal(f"{name_of(path)} cannot be listed: {why}")
    found = [well_formed(path) for path in result.output.split("\0")[:-1]]
    return found[:max_entries], len(found) > max_entries
