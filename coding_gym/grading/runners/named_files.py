"""Files of the tree that shell commands name, as far as their text tells."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator

from coding_gym.patch import Patch
from coding_gym.task import Task

_VARIABLE = re.compile(r"\$\{\w+\}|\$\w+")
_PATH = r"[\w.+@%,~/-]+"
_WORD = re.compile(_PATH)
_PARTS = re.compile(r"[;&|()\n]+")
_QUOTES = re.compile(r"[\"'`]")
_ASSIGNMENT = re.compile(r"""\b\w+=(?:'[^']*'|"[^"]*"|\S*)""")
# Options and durations, which stand in front of a program.
_PREFIX = re.compile(r"-.*|\d+[smh]?", re.DOTALL)
_MODULE = re.compile(r"\s-m\s+([\w.]+)")
# Commands that change to another folder, or take one.
_FOLDER = re.compile(rf"(?:\bcd|\bpushd|\s-C|\s--directory)[\s=]+({_PATH})")
_WRITTEN = re.compile(rf">[>|]?\s*({_PATH})")
# They start the program that comes behind them.
_STARTER = re.compile(
    r"(?:.*/)?(?:bash|sh|dash|zsh|env|exec|time|timeout|nice|nohup|command|source|\.|xargs|sudo"
    r"|python[\d.]*|node|perl|ruby|php|if|while|until|then|do|else|!)"
)


def named_files(task: Task) -> tuple[str, ...]:
    """Returns every path below the root that a task's commands may mean, sorted.

    Most of them do not exist. Words in quotes count, and so do the modules that ``python -m``
    starts. What a command writes by a redirection does not. An absolute path stands for each of its
    ends. What the gold patch touches is left out, as it is the policy's.

    Args:
        task: Its ``test_command`` and its expected tests are shell commands.
    """
    found: set[str] = set()
    for command in (task.test_command, *task.expected_tests):
        text = _VARIABLE.sub("", command)
        words = [*_WORD.findall(text), *_split(command)]
        modules = [module.replace(".", "/") for module in _MODULE.findall(text)]
        words += [f"{m}{end}" for m in modules for end in (".py", "/__init__.py", "/__main__.py")]
        found |= set(_paths(words, text)) - set(_paths(_WRITTEN.findall(text), text))
    return tuple(sorted(found.difference(Patch(task.gold_patch).paths)))


def started_files(task: Task, command: str) -> tuple[str, ...]:
    """Returns the paths below the root that programs which a command starts may have, sorted.

    What the gold patch touches is left out.

    Args:
        task: The task.
        command: Shell text.
    """
    text = _ASSIGNMENT.sub("", _VARIABLE.sub("", command))
    parts = (_QUOTES.sub(" ", part).split() for part in _PARTS.split(text))
    words = [program for part in parts for program in _programs(part)]
    return tuple(sorted(set(_paths(words, text)).difference(Patch(task.gold_patch).paths)))


def _programs(words: Iterable[str]) -> Iterator[str]:
    """The first word of a command, and the first behind each starter of another program."""
    is_due = True
    for word in words:
        if _STARTER.fullmatch(word):
            is_due = True
        elif is_due and not _PREFIX.fullmatch(word):
            yield word
            is_due = False


def _paths(words: Iterable[str], text: str) -> Iterator[str]:
    folders = ["", *_FOLDER.findall(text)]
    for word in words:
        if word.startswith("/"):
            parts = word.strip("/").split("/")
            yield from ("/".join(parts[start:]) for start in range(len(parts)))
        elif word and not word.startswith("-"):
            joined = (posixpath.normpath(posixpath.join(folder, word)) for folder in folders)
            yield from (path for path in joined if not path.startswith(("..", "/")) and path != ".")


def _split(command: str) -> list[str]:
    """Words as the shell sees them, which may hold blanks."""
    try:
        return shlex.split(command)
    except ValueError:  # quotes that do not end, as in a here document
        return []
