"""The commands that start unittest: what they mean, so that a program of ours can do the same."""

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_PYTHON = re.compile(r"(?:[\w./-]*/)?python[\d.]*")
_SETTING = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPTION = re.compile("-(?:(W)|[bBu]+$)")
_SHELL = frozenset({"&&", "||", ";", "|", "&", ">", "<", "2>&1"})


@dataclass(frozen=True, slots=True)
class TestCommand:
    """A command, taken apart.

    Attributes:
        script: The script that it starts, relative to the workspace; "" for a module.
        module: The module that it starts (``-m``); "" for a script.
        arguments: What follows.
        environment: The variables that it sets; Python's ``-W`` is one of them.
    """

    __test__ = False  # pytest collects classes called Test*

    script: str
    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    @classmethod
    def parse(cls, command: str) -> Self | None:
        """Reads ``[NAME=value …] [python] (-m MODULE | SCRIPT) …``; None for anything else."""
        try:
            words = shlex.split(command)
        except ValueError:
            return None
        if _SHELL & set(words) or any(word.endswith(";") for word in words):
            return None
        environment = {}
        while words and (setting := _SETTING.fullmatch(words[0])):
            environment[setting[1]] = setting[2]
            words.pop(0)
        has_python = bool(words) and _PYTHON.fullmatch(words[0]) is not None
        if has_python:
            words = _without_options(words[1:], environment)
            if len(words) > 1 and words[0] == "-m":
                return cls("", words[1], tuple(words[2:]), environment)
        script = posixpath.normpath(words[0]) if words and words[0].endswith(".py") else ""
        if not script or script.startswith(("/", "..")):
            return None
        return cls(script, "", tuple(words[1:]), environment)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the names of test modules begin in; "" is the root of the tree."""
        if self.script:
            return tuple(dict.fromkeys([posixpath.dirname(self.script), ""]))
        if self.arguments[:1] != ("discover",):
            return ("",)
        positional = [a for a in self.arguments[1:2] if not a.startswith("-")]
        start = self._option("-s", "--start-directory") or "".join(positional)
        top = self._option("-t", "--top-level-directory") or start
        root = posixpath.normpath(top or ".")
        return ("" if root == "." else root,)

    @property
    def collects(self) -> bool:
        """Whether it looks for test modules by their names."""
        has_names = any(not word.startswith("-") for word in self.arguments)
        return bool(self.script) or "discover" in self.arguments or not has_names

    def _option(self, short: str, long: str) -> str:
        """The last value of an option, written in any of the ways that argparse knows; or ""."""
        value = ""
        for word, following in zip(self.arguments, (*self.arguments[1:], ""), strict=True):
            if word in (short, long):
                value = following
            elif word.startswith(f"{long}="):
                value = word.partition("=")[2]
            elif word.startswith(short) and not word.startswith("--"):
                value = word.removeprefix(short)
        return value


def _without_options(words: list[str], environment: dict[str, str]) -> list[str]:
    """Takes the interpreter's own options off, of which only ``-W`` means something here."""
    filters = []
    while words and (option := _OPTION.match(words[0])):
        word, *words = words
        if option[1] == "W":
            value = word[2:] or "".join(words[:1])
            filters.append(value)
            words = words if word[2:] else words[1:]
    if filters:
        environment["PYTHONWARNINGS"] = ",".join(filters)
    return words
