"""Asks the programs of ``inside`` something: they are sent into the sandbox and run by its Python.

What a policy wrote is parsed, imported and traced there and never by this process. The programs
arrive on standard input and leave no file behind.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from coding_gym.arguments import is_integer
from coding_gym.tools.toolset import ToolContext

_PACKAGE = "coding_gym_inside"
_SHARED_IMPORT = re.compile(r"\bfrom coding_gym\.(?:\w+\.)*(\w+) import ")
# The tree may hold a json.py: its folder leaves the path before anything is imported.
_START = f"""\
import sys
if sys.path and sys.path[0] == "": del sys.path[0]
import importlib.abc, importlib.util, json, os
sent = json.loads(sys.stdin.buffer.read().decode())
class Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {_PACKAGE!r}:
            return importlib.util.spec_from_loader(name, self, is_package=self.is_package(name))
    def is_package(self, name):
        return name == {_PACKAGE!r}
    def get_source(self, name):
        return sent["modules"][name.rpartition(".")[2]]
sys.meta_path.insert(0, Finder())
out, pid = os.dup(1), os.getpid()
null = os.open(os.devnull, os.O_RDWR)
for number in 0, 1, 2: os.dup2(null, number)
def reply(value):
    if os.getpid() != pid: os._exit(0)
    rest = b"\\n" + json.dumps(value).encode("ascii")
    while rest: rest = rest[os.write(out, rest):]
    os._exit(0)
importlib.import_module({_PACKAGE!r} + "." + sent["ask"]).answer(sent["request"], reply)
"""
_NO_PYTHON = 127
MAX_FIELD_CHARS = 400  # the programs cut their texts at less
MAX_ROWS = 60
_MAX_INT = 1 << 53


@dataclass(frozen=True, slots=True)
class Reply:
    """What a program replied.

    Attributes:
        value: Its reply. The tree's own code may have run beside it: whoever reads it checks what
            is in it, with the readers below.
        problem: Why there is none, in words for the policy; "" where there is one.
    """

    value: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def sources(folder: str, *shared: str) -> dict[str, str]:
    """Returns the sources of a package's modules, by name, as one package inside the sandbox.

    Args:
        folder: The package, such as ``coding_gym.tools.inside``.
        shared: Full names of modules of other packages that its modules import; inside they are
            modules of the same package.
    """
    found = {f.name[:-3]: f for f in files(folder).iterdir() if f.name.endswith(".py")}
    for name in shared:
        package, _, module = name.rpartition(".")
        found[module] = files(package) / f"{module}.py"
    texts = {name: found[name].read_text(encoding="utf-8") for name in sorted(found)}
    return {name: _SHARED_IMPORT.sub(r"from .\1 import ", text) for name, text in texts.items()}


def ask(context: ToolContext, program: str, request: Mapping[str, Any]) -> Reply:
    """Runs a program inside the sandbox and returns its reply.

    Args:
        context: Whose sandbox and time limit.
        program: A module of ``coding_gym.tools.inside``.
        request: What it is asked, JSON values.

    Raises:
        SandboxError: The sandbox is closed or died.
    """
    sent = {"modules": _modules(), "ask": program, "request": request}
    done = context.sandbox.run(
        'PYTHONDONTWRITEBYTECODE=1 exec python -c "$CODING_GYM_START"',
        timeout_s=context.command_timeout_s,
        env={"CODING_GYM_START": f"import os; del os.environ['CODING_GYM_START']\n{_START}"},
        stdin=json.dumps(sent).encode("ascii"),
    )
    if done.timed_out:
        return Reply(problem=f"it took longer than {context.command_timeout_s:g}s and was killed")
    if done.out_of_memory:
        return Reply(problem="it was killed: it used more memory than there is")
    if done.exit_code == _NO_PYTHON:
        return Reply(problem="there is no `python` here to do it with")
    try:
        value = json.loads(done.output.rpartition("\n")[2])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return Reply(problem=f"its process ended early (exit code {done.exit_code})")
    return Reply(value)


@cache
def _modules() -> dict[str, str]:
    found = sources("coding_gym.tools.inside")
    return found | {_PACKAGE: found.pop("__init__")}


# What a reply holds may be forged: each part is read by its type, and no more of it than there is
# room for.


def text_of(value: object, max_chars: int = MAX_FIELD_CHARS) -> str:
    """Returns a part of a reply that should be text, cut; "" where it is none."""
    return value[:max_chars] if isinstance(value, str) else ""


def int_of(value: object) -> int:
    """Returns a part of a reply that should be a whole number; 0 where it is none."""
    if not is_integer(value):
        return 0
    return value if abs(value) <= _MAX_INT else 0


def strings_of(value: object, *, max_chars: int = MAX_FIELD_CHARS) -> list[str]:
    """Returns a part of a reply that should be a list of texts, without what is none."""
    return [text_of(row, max_chars) for row in _rows(value) if isinstance(row, str)]


def ints_of(value: object) -> list[int]:
    """Returns a part of a reply that should be a list of whole numbers, without what is none."""
    return [row for row in _rows(value) if is_integer(row)]


def rows_of(value: object) -> list[dict[str, Any]]:
    """Returns a part of a reply that should be a list of objects, without what is none."""
    return [row for row in _rows(value) if isinstance(row, dict)]


def _rows(value: object) -> list[Any]:
    return value[:MAX_ROWS] if isinstance(value, list) else []
