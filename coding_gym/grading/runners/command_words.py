"""Files of the tree that shell commands name or start, as patterns, as far as their text tells."""

import glob
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator

from coding_gym.task import Task

_VARIABLE = re.compile(r"\$\{\w+\}|\$\w+")
_WORD = re.compile(r"[\w.+@%,~/-]+")
_PARTS = re.compile(r"[;&|()\n]+")
_QUOTES = re.compile(r"[\"'`]")
_ASSIGNMENT = re.compile(r"""\b\w+=(?:'[^']*'|"[^"]*"|\S*)""")
# Options and durations, which stand in front of a program.
_PREFIX = re.compile(r"-.*|\d+[smh]?", re.DOTALL)
_MODULE = re.compile(r"\s-m\s+([\w.]+)")
# They start the program that comes behind them.
_STARTER = re.compile(
    r"(?:.*/)?(?:bash|sh|dash|zsh|env|exec|time|timeout|nice|nohup|command|source|\.|xargs|sudo"
    r"|python[\d.]*|node|perl|ruby|php|if|while|until|then|do|else|!)"
)


def named_patterns(task: Task) -> tuple[str, ...]:
    """Returns patterns of all files that a task's commands may mean, in whatever folder.

    Words in quotes count, and so do the modules that ``python -m`` starts.

    Args:
        task: Its ``test_command`` and its expected tests are shell commands.
    """
    words: list[str] = []
    for command in (task.test_command, *task.expected_tests):
        text = _VARIABLE.sub("", command)
        modules = [module.replace(".", "/") for module in _MODULE.findall(text)]
        words += [f"{m}{end}" for m in modules for end in (".py", "/__init__.py", "/__main__.py")]
        words += [*_WORD.findall(text), *_split(command)]
    return _patterns(words)


def started_patterns(command: str) -> tuple[str, ...]:
    """Returns patterns of the files that a command may start, in whatever folder.

    Args:
        command: Shell text.
    """
    text = _ASSIGNMENT.sub("", _VARIABLE.sub("", command))
    parts = (_QUOTES.sub(" ", part).split() for part in _PARTS.split(text))
    return _patterns(program for part in parts for program in _programs(part))


def _programs(words: Iterable[str]) -> Iterator[str]:
    """The first word of a command, and the first behind each starter of another program."""
    is_due = True
    for word in words:
        if _STARTER.fullmatch(word):
            is_due = True
        elif is_due and not _PREFIX.fullmatch(word):
            yield word
            is_due = False


def _patterns(words: Iterable[str]) -> tuple[str, ...]:
    paths = {posixpath.normpath(word) for word in words if word and not word.startswith("-")}
    ends = (p.rpartition("/")[2] if p.startswith(("/", "..")) else p for p in paths - {".", "/"})
    return tuple(sorted({glob.escape(f"/{end}") for end in ends}))


def _split(command: str) -> list[str]:
    """Words as the shell sees them, which may hold blanks."""
    try:
        return shlex.split(command)
    except ValueError:  # quotes that do not end, as in a here document
        return []
