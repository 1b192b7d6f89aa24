"""Programs that run inside the sandbox: their sources are sent there and its Python runs them.

The code that a policy wrote is parsed, imported and traced there, never in this process. `ask`
sends a program on standard input, which leaves no file behind.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from coding_gym.arguments import is_integer
from coding_gym.tools.toolset import Refusal, ToolContext

_PACKAGE = "coding_gym_inside"
_FOLDER = "coding_gym.tools.inside"
_SHARED_IMPORT = re.compile(r"\bfrom coding_gym\.(?:\w+\.)*(\w+) import ")
# The tree may hold a json.py: its folder leaves the path before anything is imported.
_START = f"""\
import os; del os.environ['CODING_GYM_START']
import sys
if sys.path and sys.path[0] == "": del sys.path[0]
import importlib.abc, importlib.util, json
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
module, _, function = sent["program"].partition(".")
try: program = importlib.import_module({_PACKAGE!r} + "." + module)
except ImportError as error: reply({{"problem": "there is no " + str(error.name) + " here"}})
getattr(program, function)(sent["request"], reply)
"""
_NO_PYTHON = 127
_MAX_MESSAGE_CHARS = 400
_MAX_LINE = 1 << 53


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


def ask(
    context: ToolContext, program: str, request: Mapping[str, Any], trouble: str = "{}"
) -> Mapping[str, Any]:
    """Runs a program inside the sandbox and returns its reply.

    The tree's own code may have run beside the program and forged the reply: each value in it is
    to be checked before use.

    Args:
        context: The episode.
        program: A module of ``coding_gym.tools.inside`` and a function of it, ``module.function``.
        request: The function's request, JSON values.
        trouble: The refusal where there is no reply; `str.format` fills in why.

    Raises:
        Refusal: There is no reply.
        SandboxError: The sandbox is closed or died.
    """
    sent = {"modules": _modules(), "program": program, "request": request}
    done = context.sandbox.run(
        'PYTHONDONTWRITEBYTECODE=1 exec python -c "$CODING_GYM_START"',
        timeout_s=context.command_timeout_s,
        env={"CODING_GYM_START": _START},
        stdin=json.dumps(sent).encode("ascii"),
    )
    try:
        reply = json.loads(done.output.rpartition("\n")[2])
    except (ValueError, RecursionError):
        reply = None
    if done.timed_out:
        problem = f"it took longer than {context.command_timeout_s:g}s and was killed"
    elif done.out_of_memory:
        problem = "it was killed: it used more memory than there is"
    elif done.exit_code == _NO_PYTHON:
        problem = "there is no `python` here to do it with"
    elif not isinstance(reply, dict):
        problem = f"its process ended early (exit code {done.exit_code})"
    else:
        problem = str(reply.get("problem", ""))[:_MAX_MESSAGE_CHARS]
        if not problem:
            return reply
    raise Refusal(trouble.format(problem))


def text_of(reply: Mapping[str, Any], max_chars: int) -> str:
    """Returns at most so much of the ``text`` of a reply.

    Raises:
        Refusal: With this text, where the reply is not ``ok``.
    """
    value = reply.get("text")
    text = value[:max_chars] if isinstance(value, str) and value else "(no answer)"
    if reply.get("ok") is not True:
        raise Refusal(text)
    return text


def syntax_errors(
    context: ToolContext, texts: Sequence[str], language: str = "python"
) -> tuple[list[tuple[str, int]], str]:
    """Returns the first syntax error of each text, and why the texts could not be checked, or "".

    Args:
        context: The episode.
        texts: Contents of files.
        language: ``python`` or ``json``.

    Returns:
        By text the message, "" where there is no error, and its line, 0 where it is not known.
    """
    try:
        errors = ask(context, "syntax.check", {"texts": texts, "language": language}).get("errors")
    except Refusal as why:
        return [("", 0)] * len(texts), str(why)
    if not isinstance(errors, list) or len(errors) != len(texts):
        return [("", 0)] * len(texts), "no reply"
    return [_error(row) for row in errors], ""


def _error(row: object) -> tuple[str, int]:
    if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], str):
        return "", 0
    is_line = is_integer(row[1]) and 0 <= row[1] <= _MAX_LINE
    return row[0][:_MAX_MESSAGE_CHARS], row[1] if is_line else 0


@cache
def _modules() -> dict[str, str]:
    found = sources(_FOLDER)
    return found | {_PACKAGE: found.pop("__init__")}
