"""What a user typed to meet a failure: the failing call of a test, without the test around it."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from coding_gym import syntax
from coding_gym.syntax import Function
from coding_gym.synthesis.checks import Check, is_action, name_of, read_check
from coding_gym.synthesis.hiding import find_function
from coding_gym.synthesis.own_self import set_up_of, without_self
from coding_gym.synthesis.snippet_context import (
    is_of_tests,
    missing,
    needed_of,
    prelude,
)

_MAX_LINES = 40


@dataclass(frozen=True, slots=True)
class Snippet:
    """A failing call.

    Attributes:
        code: Python text that runs as it stands; the failing call or expression is at its end.
            "" where the call needs something that only the test has.
        callee: Name of the function that is called there; "" where there is none.
        expected: What should come of it, as Python text; "" where it just should not fail.
        raises: The exception that should be raised, as Python text; "" for none.
        matching: The regular expression that its message should hold, as Python text.
        is_vague: Whether something is expected that cannot be written down.
    """

    code: str
    callee: str
    expected: str = ""
    raises: str = ""
    matching: str = ""
    is_vague: bool = False

    @property
    def rank(self) -> tuple[bool, bool, int, str]:
        """Sorts first what says most in the fewest words."""
        return not self.code, self.is_vague, len(self.code), self.code


def find_snippet(text: str, line: int, failure: Mapping[str, Any], path: str) -> Snippet | None:
    """Returns the failing call of a test; None where it cannot be told from the test around it.

    Args:
        text: The test file.
        line: Where the test's function begins.
        failure: What was seen; see ``inside/seen.py``.
        path: The test file's path, as in the failure's frames.

    Raises:
        SyntaxError, ValueError, RecursionError: What was seen is no Python.
    """
    tree = syntax.parse(text)
    function = find_function(tree, line)
    failing = _failing_line(function, failure, path)
    if function is None or failing is None or failure["when"] != "call":
        return None
    before, statement = _around(function.body, failing)
    if statement is None:
        return None
    run = [*set_up_of(tree, function), *before, statement]
    (*earlier, last), classes = without_self(run, failure["owner"])
    check = read_check(last)
    if not is_action(syntax.parse(check.code)):
        return None
    needed = needed_of(earlier, "\n".join((check.code, check.expected)))
    arguments = _arguments(function, failure["values"])
    own = [n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)]
    around = _Around(tree, classes, arguments, own)
    body = [*needed, check.code]
    context = around.of([*body, check.expected, check.raises, check.matching])
    code = "\n".join([*context, *body]).strip()
    undefined = missing([code, check.expected, check.raises, check.matching])
    if undefined or code.count("\n") > _MAX_LINES:
        return _plainer(check, around)
    return Snippet(code, check.callee, check.expected, check.raises, check.matching)


def _arguments(function: Function, values: Mapping[str, str]) -> dict[str, str]:
    """The test's arguments as texts: what they are by default, and plain ones that were seen."""
    parameters = function.args
    positional = [*parameters.posonlyargs, *parameters.args]
    first = len(positional) - len(parameters.defaults)
    pairs = [
        *zip(positional[first:], parameters.defaults, strict=True),
        *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True),
    ]
    defaults = {arg.arg: ast.unparse(value) for arg, value in pairs if value is not None}
    return defaults | dict(values)


def _failing_line(function: Function | None, failure: Mapping[str, Any], path: str) -> int | None:
    if function is None:
        return None
    lines = [n for name, n, _ in failure["frames"] if name == path]
    inside = [n for n in lines if function.lineno <= n <= (function.end_lineno or 0)]
    return inside[0] if inside else None


def _around(body: list[ast.stmt], line: int) -> tuple[list[ast.stmt], ast.stmt | None]:
    """The statements that ran before the one at a line, and that one."""
    before: list[ast.stmt] = []
    for statement in body:
        if (statement.end_lineno or 0) < line:
            before.append(statement)
            continue
        if _is_transparent(statement) and statement.body[0].lineno <= line:
            inner, found = _around(statement.body, line)
            return before + inner, found
        return before, statement if statement.lineno <= line else None
    return before, None


def _is_transparent(statement: ast.stmt) -> TypeGuard[ast.With]:
    """Whether a statement changes nothing for what is in it; any other ``with`` is shown whole."""
    return isinstance(statement, ast.With) and all(
        name_of(item.context_expr) == "subTest" for item in statement.items
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """What the code of one test can be given to stand alone."""

    tree: ast.Module
    classes: Iterable[str]
    arguments: Mapping[str, str]
    own: Iterable[str]

    def of(self, code: Iterable[str]) -> list[str]:
        wanted = missing(code)
        values = [f"{name} = {text}" for name, text in self.arguments.items() if name in wanted]
        imports = []
        for path in sorted(self.classes):
            module, _, name = path.rpartition(".")
            if name in wanted and module not in ("", "builtins") and not is_of_tests(module):
                imports.append(f"from {module} import {name}")
        classes = [path.rpartition(".")[2] for path in self.classes]
        lines = prelude(self.tree, code, [*self.own, *classes])
        # A default is told by names of the file, whatever the test's arguments are called.
        lines += [x for x in prelude(self.tree, values) if x not in lines]
        return [*imports, *lines, *values]

    def imports(self, name: str) -> bool:
        """Whether a name is a user's as well, not the test file's own."""
        return any("import" in line.split() for line in self.of([name]))

    def explains(self, text: str) -> bool:
        """Whether all names in a text can be given."""
        return not missing([*self.of([text]), text])


def _plainer(check: Check, around: _Around) -> Snippet | None:
    """The failure in words: no code, and of what is expected only what anybody understands."""
    if check.raises and not around.explains(check.raises):
        return None
    root = syntax.parse(check.code).body[-1]
    callee = _visible_callee(root, around)
    if check.raises:
        matching = "" if missing([check.matching]) else check.matching
        return Snippet("", callee, "", check.raises, matching)
    is_call = isinstance(root, ast.Expr) and isinstance(root.value, ast.Call)
    # A constant says the same wherever it stands; of a name nobody could see the value.
    expected = check.expected if is_call and not missing([check.expected]) else ""
    return Snippet("", callee, expected, is_vague=not expected)


def _visible_callee(node: ast.AST, around: _Around) -> str:
    """The called function, where users have it too: a method, or what a test file imports."""
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    for called in calls:
        text = ast.unparse(called)
        if isinstance(called, ast.Attribute) and not text.startswith("self."):
            return called.attr
        if isinstance(called, ast.Name) and around.imports(text):
            return text
    return ""
