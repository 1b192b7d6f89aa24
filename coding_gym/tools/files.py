"""Reads, changes and lists files and folders of the workspace, for tools.

A read, a write or a listing is one request to the sandbox, which resolves paths and links and
checks access. An edit keeps the file mode, line ends, and bytes that are not UTF-8. The functions
raise `Refusal` if a file cannot be used as requested, and `SandboxError` if the sandbox is closed
or died.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Self

from coding_gym.calls import ExecResult
from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox.run_arguments import check_path
from coding_gym.text.truncate import well_formed
from coding_gym.tools.toolset import Refusal, ToolContext, name_of

MAX_FILE_BYTES = 4 << 20
MAX_LINE_CHARS = 2000
_TIMEOUT_S = 30.0
_MAX_OUTPUT_BYTES = 2 << 20

# Folders that git, Python and Node tools create; they are not part of the project.
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
_MISSING, _NOT_A_FOLDER = 3, 4
# The shell splits $TESTS at blanks; `set -f` prevents the expansion of its patterns. A slash sorts
# as the character 1, so that a folder comes directly before its content.
_LIST = f"""\
set -f
[ -e "$BASE" ] || exit {_MISSING}
[ -d "$BASE" ] || exit {_NOT_A_FOLDER}
cd -- "$BASE" || exit
find . -mindepth 1 $TESTS '(' -type d -printf '%P/\\0' -o -printf '%P\\0' ')' 2>/dev/null |
    tr / '\\001' | LC_ALL=C sort -z | head -z -n "$NUM" | tr '\\001' /"""


def timeout_s(context: ToolContext) -> float:
    """Returns the time limit, in seconds, of a command that a tool runs internally."""
    return min(_TIMEOUT_S, context.command_timeout_s)


def run_script(
    context: ToolContext, script: str, *, env: Mapping[str, str], stdin: bytes = b""
) -> ExecResult:
    """Runs a tool's script; a policy's text must be in ``env`` or ``stdin``, not in the script."""
    return context.sandbox.run(
        script,
        timeout_s=timeout_s(context),
        max_output_bytes=_MAX_OUTPUT_BYTES,
        env=dict(env),
        stdin=stdin,
    )


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file of the workspace.

    Attributes:
        path: The path as written in the call.
        text: The content with line feeds as line ends. Bytes that are not UTF-8 are lone
            surrogates, which `encode` converts back.
        newline: CRLF if all lines end with CRLF, else a line feed.
    """

    path: str
    text: str = ""
    newline: str = "\n"

    @classmethod
    def decode(cls, path: str, data: bytes) -> Self:
        r"""Returns the file with these bytes, which can be invalid UTF-8.

        >>> TextFile.decode("a.txt", b"one\r\ntwo\r\n").text
        'one\ntwo\n'
        """
        text = data.decode("utf-8", "surrogateescape")
        num_crlf = text.count("\r\n")
        if num_crlf and num_crlf == text.count("\n"):
            return cls(path, text.replace("\r\n", "\n"), "\r\n")
        return cls(path, text)

    def encode(self, text: str) -> bytes:
        """Returns the bytes of another text with the line ends and encoding of this file."""
        if self.newline != "\n":
            text = text.replace("\r\n", "\n").replace("\n", self.newline)
        return text.encode("utf-8", "surrogateescape")

    @property
    def is_binary(self) -> bool:
        """Whether the content has a NUL; UTF-16 files count as binary."""
        return "\0" in self.text


@contextmanager
def refusals(path: str) -> Iterator[None]:
    """Converts OSError and InvalidArgumentError to a `Refusal` that names the path."""
    try:
        yield
    except OSError as error:
        raise Refusal(f"{name_of(path)}: {error.strerror or error}") from error
    except InvalidArgumentError as error:  # the file is too large, or the path is invalid
        raise Refusal(f"{name_of(path)}: {error}") from error


def read_if_exists(context: ToolContext, path: str) -> TextFile | None:
    """Returns a file, or None if it does not exist."""
    with refusals(path):
        try:
            data = context.sandbox.read_file(path, max_bytes=MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
    return TextFile.decode(path, data)


def read_file(context: ToolContext, path: str) -> TextFile:
    """Returns an existing text file."""
    file = read_if_exists(context, path)
    if file is None:
        raise Refusal(f"{name_of(path)} does not exist")
    if file.is_binary:
        raise Refusal(f"{name_of(path)} is a binary file; use a command instead")
    return file


def write_file(context: ToolContext, file: TextFile, text: str) -> bytes:
    """Writes a file's new text and returns the written bytes; a failure changes nothing."""
    data = file.encode(text)
    if len(data) > MAX_FILE_BYTES:
        raise Refusal(f"{name_of(file.path)} would be larger than {MAX_FILE_BYTES >> 20} MiB")
    with refusals(file.path):
        context.sandbox.write_file(file.path, data)
    return data


def overwrite(
    context: ToolContext, path: str, text: str, *, appends: bool = False
) -> tuple[bool, bytes]:
    """Writes a whole file, or appends to it; keeps the line ends of an existing file.

    Returns:
        Whether the file is new, and all its bytes after the write.
    """
    original = read_if_exists(context, path)
    file = original or TextFile(path)
    if file.is_binary and appends:
        raise Refusal(f"{name_of(path)} is a binary file; use a command instead")
    if file.is_binary:
        file = TextFile(path)
    return original is None, write_file(context, file, file.text + text if appends else text)


def as_written(file: TextFile, old: str, new: str) -> tuple[str, str]:
    """Returns a text to find and its replacement, with the line ends of ``file.text``.

    Policies write line feeds. In a file with mixed line ends, if the text to find does not occur
    as written, its line feeds become CRLF.
    """
    if file.newline != "\n":
        return old.replace("\r\n", "\n"), new
    if old not in file.text and "\r\n" in file.text:
        old = old.replace("\r\n", "\n").replace("\n", "\r\n")
    if "\r\n" in old:
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    return old, new


def replace_once(
    file: TextFile,
    old: str,
    new: str,
    *,
    missing: str = "the text to find does not occur in {name}; copy it exactly",
    several: str = "the text to find occurs {num} times in {name}, at lines {lines}; add context",
) -> tuple[str, int, int]:
    """Returns a file's text with the only occurrence of a text replaced.

    Args:
        file: The file.
        old: The text to find.
        new: The replacement.
        missing: The refusal if ``old`` does not occur; `str.format` fills in ``name``.
        several: The refusal if ``old`` occurs more than once; `str.format` fills in ``name``,
            ``num``, and ``lines``, the line numbers of the first ten occurrences.

    Returns:
        The new text, and the numbers of the first and last line of the replacement.
    """
    if not old:
        raise Refusal("the text to find must not be empty")
    old, new = as_written(file, old, new)
    name, num = name_of(file.path), file.text.count(old)
    if not num:
        raise Refusal(missing.format(name=name))
    if num > 1:
        matches = islice(re.finditer(re.escape(old), file.text), 10)
        lines = sorted({line_of(file.text, match.start()) for match in matches})
        raise Refusal(several.format(name=name, num=num, lines=", ".join(map(str, lines))))
    start = file.text.index(old)
    text = file.text.replace(old, new)
    return text, line_of(text, start), line_of(text, start + len(new))


def line_of(text: str, position: int) -> int:
    """Returns the line number, from 1, of a position in a text."""
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
    return "\n".join(f"{first + i:6}\t{truncated_line(line)}" for i, line in enumerate(lines))


def truncated_line(line: str) -> str:
    """Returns a line; a line above `MAX_LINE_CHARS` characters is truncated and has a notice."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]}[... {len(line) - MAX_LINE_CHARS} more characters]"


def absolute_path(context: ToolContext, path: str) -> str:
    """Returns the absolute form of a path, without resolving links."""
    return posixpath.normpath(posixpath.join(context.sandbox.workdir, path))


def is_inside(context: ToolContext, path: str) -> bool:
    """Returns whether a path is inside the workspace, without resolving links."""
    return PurePosixPath(absolute_path(context, path)).is_relative_to(context.sandbox.workdir)


def relative_path(context: ToolContext, path: str) -> str:
    """Returns a path relative to the workspace, without resolving links."""
    return posixpath.relpath(absolute_path(context, path), context.sandbox.workdir)


def list_folder(
    context: ToolContext, path: str, *, tests: str, max_entries: int
) -> tuple[list[str], bool]:
    """Returns the sorted paths in a folder, and whether there are more; folders end with a slash.

    Args:
        context: The episode's sandbox and time limit.
        path: The folder.
        tests: Arguments of ``find``, which does not follow links: `SKIP_IGNORED` or `SKIP_HIDDEN`,
            and tests such as ``-type f``.
        max_entries: Maximum number of returned paths.
    """
    with refusals(path):
        check_path(path)
    env = {"BASE": path, "NUM": str(max_entries + 1), "TESTS": tests}
    result = run_script(context, _LIST, env=env)
    if result.exit_code == _NOT_A_FOLDER:
        raise Refusal(f"{name_of(path)} is a file, not a folder")
    if result.exit_code == _MISSING:
        raise Refusal(f"{name_of(path)} does not exist")
    if not result.ok:
        reason = "it took too long" if result.timed_out else "permission denied"
        raise Refusal(f"{name_of(path)} cannot be listed: {reason}")
    entries = [well_formed(entry) for entry in result.output.split("\0")[:-1]]
    return entries[:max_entries], len(entries) > max_entries
