"""How a policy looks around in a terminal, by CodeRepairRL's two rewards."""

import re
from collections.abc import Sequence
from itertools import pairwise

from coding_gym.rewards.commands import Command, paths_in, shell_commands
from coding_gym.trajectory import Turn

_LIST = re.compile(r"\bls\b")
_SEARCH = re.compile(r"\b(?:rg|grep|find)\b")
_SLICE = re.compile(r"\b(?:sed|head|tail)\b")
_PRECISE = re.compile(r"\b(?:sed\s+-n\s+'?\d+\s*,\s*\d+\s*p|(?:head|tail)\s+-n\s+\d)")
_SCOPE = re.compile(r"(?:^|\s)(?:-n\b|--type=\w)")
_MAX_CHARS = 10_000
_EARLY = 10
_MAX_PENALTY = 0.20


def terminal_habits(turns: Sequence[Turn]) -> float:
    """Returns what three habits are worth, from 0 to 1.

    0.3 for a successful ``ls`` among the first two shell commands, 0.4 for a successful ``rg``,
    ``grep`` or ``find`` among the first ten, and 0.3 for a successful ``sed``, ``head`` or ``tail``
    from the third on.

    Source: ``terminal_debugging_habits_reward_func`` in ``src/rewards/terminal.py`` of
    CodeRepairRL. There as here the words may stand anywhere in a command.

    Args:
        turns: The episode's turns.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> def run(cmd, output="", ok=True):
    ...     call, result = ToolCall("shell", {"cmd": cmd}), ToolResult(output, ok=ok)
    ...     return Turn(action="", calls=(call,), results=(result,))
    >>> terminal_habits([run("ls"), run("rg -l x"), run("sed -n '1,2p' x.py")])
    1.0
    >>> terminal_habits([run("pwd"), run("grep x y", ok=False), run("ls")])
    0.0
    """
    commands = shell_commands(turns)
    return (
        0.3 * _any(_LIST, commands[:2])
        + 0.4 * _any(_SEARCH, commands[:_EARLY])
        + 0.3 * _any(_SLICE, commands[2:])
    )


def exploration_depth(turns: Sequence[Turn]) -> float:
    """Returns what exploring to some purpose is worth, from 0 to 1.

    0.25 where a path that the first successful search (``rg``, ``grep``, ``find``, among the first
    ten commands) shows is in a successful ``sed``, ``head`` or ``tail`` later. 0.20 times the share
    of the first six commands that succeeded, if there are six. Without the first: 0.20 for a
    precise read (``sed -n a,bp``, ``head -n``, ``tail -n``), and 0.15 for a scoped search among the
    first ten (``-n``, ``--type=``, a slash, or a path in what it shows). Less, at most 0.20 in all
    and each once, within the first ten commands: 0.07 for a command that was run before, 0.07 for
    one that fails twice running, and 0.10 where output was cut off and no precise read came before.
    The sum is never below 0.

    Source: ``terminal_exploration_depth_reward_func`` in ``src/rewards/terminal.py`` of
    CodeRepairRL. Mended: a path must be in the later command as a whole (there its ending is
    enough), and a precise read spares the last fine also where the first bonus takes its place.

    Args:
        turns: The episode's turns.

    >>> from coding_gym.calls import ToolCall, ToolResult
    >>> def run(cmd, output="", ok=True):
    ...     call, result = ToolCall("shell", {"cmd": cmd}), ToolResult(output, ok=ok)
    ...     return Turn(action="", calls=(call,), results=(result,))
    >>> exploration_depth([run("rg -l Reader", "src/a.py"), run("sed 5q src/a.py")])
    0.25
    >>> exploration_depth([run("sed -n '10,20p' src/a.py")]), exploration_depth([run("rg x src/")])
    (0.2, 0.15)
    >>> round(exploration_depth([run("rg -n x"), run("cat y", "... output truncated")]), 3)
    0.05
    """
    commands = shell_commands(turns)
    first_ok = [command.ok for command in commands[:6]]
    score = 0.20 * sum(first_ok) / 6 if len(first_ok) == 6 else 0.0
    if _is_followed_up(commands):
        score += 0.25
    else:
        score += 0.20 * _any(_PRECISE, commands)
        score += 0.15 * any(_is_scoped(command) for command in commands[:_EARLY])
    return max(0.0, score - min(_penalty(commands[:_EARLY]), _MAX_PENALTY))


def _any(pattern: re.Pattern[str], commands: Sequence[Command]) -> bool:
    return any(_matches(pattern, command) for command in commands)


def _matches(pattern: re.Pattern[str], command: Command) -> bool:
    return command.ok and pattern.search(command.text[:_MAX_CHARS]) is not None


def _is_followed_up(commands: Sequence[Command]) -> bool:
    searches = (n for n, c in enumerate(commands[:_EARLY]) if _matches(_SEARCH, c))
    first = next(searches, None)
    if first is None:
        return False
    shown = paths_in(commands[first].output)
    later = commands[first + 1 :]
    return any(_matches(_SLICE, c) and not shown.isdisjoint(paths_in(c.text)) for c in later)


def _is_scoped(command: Command) -> bool:
    if not _matches(_SEARCH, command):
        return False
    text = command.text[:_MAX_CHARS]
    return "/" in text or _SCOPE.search(text) is not None or bool(paths_in(command.output))


def _penalty(early: Sequence[Command]) -> float:
    texts = [command.text for command in early]
    fails_again = any(not a.ok and not b.ok and a.text == b.text for a, b in pairwise(early))
    cut = next((n for n, c in enumerate(early) if "truncated" in c.output.lower()), None)
    return (
        0.07 * (len(set(texts)) < len(texts))
        + 0.07 * fails_again
        + 0.10 * (cut is not None and not _any(_PRECISE, early[:cut]))
    )
