"""What the Python and the Java programs of a QuixBugs checkout have in common."""

import ast
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from coding_gym import syntax
from coding_gym.errors import InvalidTaskError

REPO = "jkoppel/QuixBugs"


@dataclass(frozen=True, slots=True)
class Documented:
    """A Python program with its description, which QuixBugs keeps in a text at the end.

    Attributes:
        code: What stands before the description.
        text: The description.
        tail: The description as it stands in the file.
    """

    code: str
    text: str
    tail: str


def documented(text: str, path: str) -> Documented:
    """Divides a Python program.

    Raises:
        InvalidTaskError: It is not Python.
    """
    try:
        body = syntax.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise InvalidTaskError(f"{path}: not Python: {error}") from None
    last = body[-1] if body else None
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)):
        return Documented(text, "", "")
    lines = text.split("\n")
    code = "".join(f"{line}\n" for line in lines[: last.lineno - 1])
    return Documented(code, str(last.value.value), "\n".join(lines[last.lineno - 1 :]))


def repaired(wrong: str, right: str, key: Callable[[str], str]) -> str:
    """Returns the right program with as few changes of the wrong one as there can be.

    Lines that differ in nothing that matters stay as the wrong program has them: the corrected
    programs were edited by other hands.

    Args:
        wrong: The wrong program.
        right: The corrected one.
        key: Returns what of a line matters, "" for nothing.
    """
    old, tail = _blocks(wrong, key)
    new, _ = _blocks(right, key)
    matcher = difflib.SequenceMatcher(
        None, [key(line) for _, line in old], [key(line) for _, line in new], autojunk=False
    )
    result: list[str] = []
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            result += [part for block in old[start:end] for part in block]
            continue
        for before, line in new[new_start:new_end]:
            result += [line] if before.strip() else [before, line]  # no comments on the repair
    return "".join(result) + tail


def _blocks(text: str, key: Callable[[str], str]) -> tuple[list[tuple[str, str]], str]:
    """Returns each line that matters after those before it that do not, and what follows all."""
    blocks: list[tuple[str, str]] = []
    blank = ""
    for line in text.splitlines(keepends=True):
        if key(line):
            blocks.append((blank, line))
            blank = ""
        else:
            blank += line
    return blocks, blank


def by_outcome(
    ids: Sequence[str], marks: str, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Divides tests into those that the bug breaks, the others, and those that are left out.

    Raises:
        InvalidTaskError: There are more or fewer tests than marks.
    """
    if len(ids) != len(marks):
        raise InvalidTaskError(
            f"{path}: has {len(ids)} tests where QuixBugs had {len(marks)} when it was measured "
            "(August 2022, commit 4257f44); check out that commit"
        )
    broken, working, left_out = (
        tuple(test for test, mark in zip(ids, marks, strict=True) if mark == wanted)
        for wanted in "F.s"
    )
    return broken, working, left_out


def statement(name: str, path: str, text: str, example: str) -> str:
    """Returns the issue: what the program is for, and a call that goes wrong."""
    kept: list[str] = []
    for line in text.strip().splitlines():
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip())
    quoted = "\n".join(f"    {line}".rstrip() for line in kept)
    return (
        f"{name} does not do what it says\n\n"
        f"`{name}` in `{path}` gives wrong results, raises, or never ends. It is meant to be:\n\n"
        f"{quoted}\n\n{example}\n"
    )
