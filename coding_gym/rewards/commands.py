"""The shell commands of an episode, and what can be read from them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from coding_gym.tools.commands import COMMANDS, SHELLS
from coding_gym.trajectory import Turn

# CodeRepairRL's: what ends like a source or text file, or begins like a usual folder.
_CODE = (".py", ".ts", ".js", ".java", ".go", ".rs")
_TEXTS = (".md", ".txt", ".json", ".yaml", ".yml", ".toml", ".ini")
_FOLDERS = ("src/", "lib/", "test/", "tests/", "docs/")
_NOT_IN_PATHS = re.compile(r"[^\w./-]+")
_MAX_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Command:
    """One command that was run in a shell.

    Attributes:
        text: The command, stripped.
        ok: Whether it succeeded.
        output: What the policy saw of it.
    """

    text: str
    ok: bool
    output: str


def shell_commands(turns: Iterable[Turn]) -> list[Command]:
    """Returns the shell commands in the order in which they were run.

    A command that has no result, since the episode ended before it, has failed.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> call, result = ToolCall("shell", {"cmd": " ls "}), ToolResult("shapes.py")
    >>> shell_commands([Turn(action="", calls=(call,), results=(result,))])
    [Command(text='ls', ok=True, output='shapes.py')]
    """
    found = []
    for turn in turns:
        for call, result in zip_longest(turn.calls, turn.results):
            if call is None or call.error or call.name not in SHELLS:
                continue
            given = (call.arguments.get(name) for name in COMMANDS)
            text = next((value for value in given if isinstance(value, str)), "")
            if text.strip():
                ok, output = (result.ok, result.content) if result else (False, "")
                found.append(Command(text.strip(), ok, output))
    return found


def paths_in(text: str) -> set[str]:
    """Returns what looks like a path of a source or text file.

    >>> sorted(paths_in("src/app.py:3: see ./docs/a b.txt, e.g. lib/core"))
    ['b.txt', 'docs/a', 'lib/core', 'src/app.py']
    """
    words = (word.strip(".") if word.endswith(".") else word for word in _words(text))
    return {word for word in words if word.endswith(_CODE + _TEXTS) or _is_in_folder(word)}


def _words(text: str) -> Iterable[str]:
    return (word.removeprefix("./") for word in _NOT_IN_PATHS.split(text[:_MAX_CHARS]))


def _is_in_folder(word: str) -> bool:
    return word.startswith(_FOLDERS) and not word.endswith("/")
