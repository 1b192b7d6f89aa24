"""The shell commands of an episode, and the paths in texts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from coding_gym.tools.schemas import COMMANDS, SHELLS
from coding_gym.trajectory import Turn

# Suffixes of source and text files, and common folders, as in CodeRepairRL.
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
        ok: Whether it succeeded; True if unknown.
        output: The part of its output that the policy saw.
    """

    text: str
    ok: bool
    output: str


def shell_commands(turns: Iterable[Turn]) -> list[Command]:
    """Returns the shell commands in the order in which they were run.

    A command without a result, because the episode ended before it, counts as failed.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> call, result = ToolCall("shell", {"cmd": " ls "}), ToolResult("shapes.py")
    >>> shell_commands([Turn(action="", calls=(call,), results=(result,))])
    [Command(text='ls', ok=True, output='shapes.py')]
    """
    commands = []
    for turn in turns:
        for call, result in zip_longest(turn.calls, turn.results):
            if call is None or call.error or call.name not in SHELLS:
                continue
            values = (call.arguments.get(name) for name in COMMANDS)
            text = next((value for value in values if isinstance(value, str)), "")
            if text.strip():
                ok = result is not None and result.ok is not False
                commands.append(Command(text.strip(), ok, result.content if result else ""))
    return commands


def paths_in(text: str) -> set[str]:
    """Returns the words that look like paths of source or text files.

    >>> sorted(paths_in("src/app.py:3: see ./docs/a b.txt, e.g. lib/core"))
    ['b.txt', 'docs/a', 'lib/core', 'src/app.py']
    """
    words = (word.removeprefix("./") for word in _NOT_IN_PATHS.split(text[:_MAX_CHARS]))
    words = (word.strip(".") if word.endswith(".") else word for word in words)
    return {
        word
        for word in words
        if word.endswith(_CODE + _TEXTS) or (word.startswith(_FOLDERS) and word[-1] != "/")
    }
