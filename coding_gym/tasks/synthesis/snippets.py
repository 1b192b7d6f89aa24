"""What a user typed to meet a failure: the failing call of a test, without the test around it."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coding_gym.grading.canary_source import Function
from coding_gym.tasks.synthesis.hiding import find_function
from coding_gym.tasks.synthesis.snippet_context import needed_of, num_missing, prelude

_MAX_LINES = 24
_RAISES = {"raises", "assertRaises", "assertRaisesRegex"}
_EQUAL = {
    "assertEqual",
    "assertEquals",
    "assertListEqual",
    "assertDictEqual",
    "assertSequenceEqual",
}
_OPERATORS = {
    "assertIn": "{} in {}",
    "assertNotIn": "{} not in {}",
    "assertIs": "{} is {}",
    "assertIsNot": "{} is not {}",
    "assertNotEqual": "{} != {}",
    "assertLess": "{} < {}",
    "assertLessEqual": "{} <= {}",
    "assertGreater": "{} > {}",
    "assertGreaterEqual": "{} >= {}",
    "assertIsInstance": "isinstance({}, {})",
    "assertTrue": "{}",
    "assertFalse": "not {}",
    "assertIsNone": "{} is None",
    "assertIsNotNone": "{} is not None",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """A failing call.

    Attributes:
        code: Python text; the failing call or expression is at its end.
        callee: Name of the function that is called there; "" where there is none.
        expected: What should come of it, as Python text; "" where it just should not fail.
        raises: The exception that should be raised, as Python text; "" for none.
        num_missing: How many names the code uses without saying what they are.
    """

    code: str
    callee: str
    expected: str = ""
    raises: str = ""
    num_missing: int = 0

    @property
    def rank(self) -> tuple[int, int, str]:
        """Sorts first what says most in the fewest words."""
        return self.num_missing, len(self.code), self.code


def find_snippet(text: str, line: int, failure: Mapping[str, Any], path: str) -> Snippet | None:
    """Returns the failing call of a test; None where it cannot be told from the test around it.

    Args:
        text: The test file.
        line: Where the test's function begins.
        failure: What was seen; see ``inside/seen.py``.
        path: The test file's path, as in the failure's frames.
    """
    tree = ast.parse(text)
    function = find_function(tree, line)
    failing = _failing_line(function, failure, path)
    if function is None or failing is None or failure["when"] != "call":
        return None
    before, statement = _around(function.body, failing)
    if statement is None:
        return None
    owner = failure["owner"]
    shown = [_plain(one, owner) for one in before if not _is_check(one)]
    made = _of_statement(_plain(statement, owner))
    if not _is_action(ast.parse(made.code)):
        return None
    needed = needed_of(shown, made.code)
    lines = [*prelude(tree, failure["values"], [*needed, made.code]), *needed, made.code]
    code = "\n".join(lines).strip()
    if code.count("\n") > _MAX_LINES:
        return None
    return Snippet(code, made.callee, made.expected, made.raises, num_missing(code))


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
        if isinstance(statement, ast.With) and statement.body[0].lineno <= line:
            inner, found = _around(statement.body, line)
            return before + inner, found
        return before, statement if statement.lineno <= line else None
    return before, None


def _is_check(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return True
    if isinstance(statement, ast.With):
        return any(_name(item.context_expr) in _RAISES for item in statement.items)
    value = statement.value if isinstance(statement, ast.Expr) else None
    is_text = isinstance(value, ast.Constant)
    return is_text or (isinstance(value, ast.Call) and _name(value).startswith("assert"))


class _WithoutSelf(ast.NodeTransformer):
    def __init__(self, owner: Mapping[str, str]) -> None:
        self._owner = owner

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            if node.attr.startswith("assert"):
                return node
            return ast.Name(self._owner.get(node.attr, node.attr), node.ctx)
        return node


def _plain(statement: ast.stmt, owner: Mapping[str, str]) -> ast.stmt:
    """A statement as it would stand outside of a test class."""
    fresh = ast.parse(ast.unparse(statement)).body[0]
    made: ast.stmt = ast.fix_missing_locations(_WithoutSelf(owner).visit(fresh))
    return made


def _of_statement(statement: ast.stmt) -> Snippet:
    if isinstance(statement, ast.Assert):
        return _of_assertion(statement.test)
    if isinstance(statement, ast.With) and _name(statement.items[0].context_expr) in _RAISES:
        call = statement.items[0].context_expr
        raised = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
        code = "\n".join(ast.unparse(one) for one in statement.body)
        return Snippet(code, _callee(statement.body[-1]), raises=raised)
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call) and (made := _of_call(_name(value), value.args)):
        return made
    return Snippet(ast.unparse(statement), _callee(statement))


def _of_assertion(test: ast.expr) -> Snippet:
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return Snippet(
            ast.unparse(test.left), _callee(test), expected=ast.unparse(test.comparators[0])
        )
    return Snippet(ast.unparse(test), _callee(test), expected="True")


def _of_call(name: str, args: list[ast.expr]) -> Snippet | None:
    """The snippet of one of unittest's checks."""
    if name in _RAISES and len(args) > 1:
        call = ast.Call(args[1], args[2:], [])
        return Snippet(ast.unparse(call), _callee(call), raises=ast.unparse(args[0]))
    if name in _EQUAL and len(args) >= 2:
        # Projects write the two in either order; the expected one is that without a call.
        got, wanted = sorted(args[:2], key=_is_action, reverse=True)
        return Snippet(ast.unparse(got), _callee(got), expected=ast.unparse(wanted))
    form = _OPERATORS.get(name)
    if form is not None and len(args) >= form.count("{}"):
        texts = [ast.unparse(arg) for arg in args[: form.count("{}")]]
        return Snippet(form.format(*texts), _callee(args[0]), expected="True")
    return None


def _is_action(node: ast.AST) -> bool:
    """Whether anything is done there, be it a call, a look-up or a comparison."""
    acting = (ast.Call, ast.Subscript, ast.Compare, ast.BinOp, ast.Attribute)
    return any(isinstance(n, acting) for n in ast.walk(node))


def _callee(node: ast.AST) -> str:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    names = [name for call in calls if (name := _name(call)) and not name.startswith("assert")]
    return names[0] if names else ""


def _name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""
