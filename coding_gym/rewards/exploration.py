"""The reward for exploration, and the shell commands and paths that this reward counts."""

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from coding_gym.patch import Patch
from coding_gym.tools.schemas import COMMANDS, SHELLS
from coding_gym.trajectory import Turn

_PATH_ARGUMENTS = ("path", "file", "file_path")
# Suffixes of source and text files, and common folders, as in CodeRepairRL.
_CODE = (".py", ".ts", ".js", ".java", ".go", ".rs")
_TEXTS = (".md", ".txt", ".json", ".yaml", ".yml", ".toml", ".ini")
_FOLDERS = ("src/", "lib/", "test/", "tests/", "docs/")
_NOT_IN_PATHS = re.compile(r"[^\w./-]+")
_MAX_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command of an episode.

    Attributes:
        text: The command without surrounding white space.
        ok: Whether the command succeeded; True if unknown.
        output: The part of the output that the policy received.
    """

    text: str
    ok: bool
    output: str


def shell_commands(turns: Iterable[Turn]) -> list[Command]:
    """Returns the shell commands of an episode, in order.

    A command without a result counts as failed: the episode ended before the command ran.

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


def exploration_efficiency(gold: str, turns: Sequence[Turn]) -> float:
    r"""Returns the share of examined files, or of calls, that hit gold files, from 0 to 1.

    Gold files are the files of the base tree that the gold patch changes. The score is the number
    of examined gold files, divided by the number of examined files or of calls, whichever is
    larger. The score is 1 if each call examined a different gold file, and 0 if no gold file was
    examined. Examined files are the files that successful calls name: the argument ``path``,
    ``file`` or ``file_path`` of a tool, and words of a shell command that look like paths. An
    absolute path that ends with a gold file's path names this file. ``submit`` does not count.

    Source: this project. CodeRepairRL evaluates exploration by the same two counts: examined files
    and commands.

    Args:
        gold: The gold patch.
        turns: The episode's turns.

    Raises:
        PatchError: The gold patch cannot be read.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> def run(cmd):
    ...     call, result = ToolCall("shell", {"cmd": cmd}), ToolResult("")
    ...     return Turn(action="", calls=(call,), results=(result,))
    >>> gold = Patch.between({"shapes.py": "1\n"}, {"shapes.py": "2\n"}).text
    >>> exploration_efficiency(gold, [run("cat shapes.py")])
    1.0
    >>> exploration_efficiency(gold, [run("ls"), run("cat shapes.py test_shapes.py")])
    0.5
    """
    gold_files = {change.old_path for change in Patch(gold).files if change.old_path}
    files = _examined_files(turns)
    num_calls = sum(call.name != "submit" for turn in turns for call in turn.calls)
    total = max(len(files), num_calls)
    examined_gold_files = {_gold_of(path, gold_files) for path in files} - {None}
    return len(examined_gold_files) / total if total else 0.0


def _examined_files(turns: Sequence[Turn]) -> set[str]:
    """Returns the files that successful calls name."""
    files: set[str] = set()
    for turn in turns:
        for call, result in zip(turn.calls, turn.results, strict=False):
            if result.ok is not False and not call.error:
                values = (call.arguments.get(name) for name in _PATH_ARGUMENTS)
                files.update(value for value in values if isinstance(value, str) and value)
    for command in shell_commands(turns):
        if command.ok:
            files |= paths_in(command.text)
    return {posixpath.normpath(path) for path in files}


def _gold_of(path: str, gold_files: Collection[str]) -> str | None:
    """Returns the gold file that a path names, or None.

    The folder of the tree differs between sandboxes, so the last components of an absolute path are
    compared; the longest equal gold path is returned.
    """
    if not path.startswith("/"):
        return path if path in gold_files else None
    matches = (gold for gold in gold_files if path.endswith(f"/{gold}"))
    return max(matches, key=len, default=None)
