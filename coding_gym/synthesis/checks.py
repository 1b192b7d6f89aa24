"""What a test's checks say in plain Python: what is run, and what should come of it."""

import ast
from dataclasses import dataclass

from coding_gym import syntax

_RAISES = {"raises", "assertRaises", "assertRaisesRegex"}
_EQUAL = {
    "assertEqual",
    "assertEquals",
    "assertListEqual",
    "assertDictEqual",
    "assertSetEqual",
    "assertTupleEqual",
    "assertSequenceEqual",
}
_OPERATORS = {
    "assertIn": "a in b",
    "assertNotIn": "a not in b",
    "assertIs": "a is b",
    "assertIsNot": "a is not b",
    "assertNotEqual": "a != b",
    "assertLess": "a < b",
    "assertLessEqual": "a <= b",
    "assertGreater": "a > b",
    "assertGreaterEqual": "a >= b",
    "assertIsInstance": "isinstance(a, b)",
    "assertTrue": "a",
    "assertFalse": "not a",
    "assertIsNone": "a is None",
    "assertIsNotNone": "a is not None",
}


@dataclass(frozen=True, slots=True)
class Check:
    """Something that is run and what should come of it, all as Python text.

    Attributes:
        code: What is run.
        callee: Name of the function that is called there; "" where there is none.
        expected: What should come of it; "" where it just should not fail.
        raises: The exception that should be raised; "" for none.
        matching: The regular expression that the exception's message should hold; "" for any.
    """

    code: str
    callee: str
    expected: str = ""
    raises: str = ""
    matching: str = ""


def read_check(statement: ast.stmt) -> Check:
    """Returns what a statement checks; one that is no check is just run."""
    if isinstance(statement, ast.Assert):
        return _of_assertion(statement.test)
    if (context := raising_context(statement)) is not None and isinstance(statement, ast.With):
        code = "\n".join(ast.unparse(one) for one in statement.body)
        callee = called_name(statement.body[-1])
        return Check(code, callee, "", *_of_raising(context, is_call=False))
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call) and (made := _of_call(value)):
        return made
    return Check(ast.unparse(statement), called_name(statement))


def raising_context(statement: ast.stmt) -> ast.Call | None:
    """The call of ``with pytest.raises(…)`` and its like; None for any other statement."""
    if isinstance(statement, ast.With) and len(statement.items) == 1:
        context = statement.items[0].context_expr
        if isinstance(context, ast.Call) and name_of(context) in _RAISES:
            return context
    return None


def is_action(node: ast.AST) -> bool:
    """Whether anything is done there, be it a call, a look-up or a comparison."""
    acting = (ast.Call, ast.Subscript, ast.Compare, ast.BinOp, ast.Attribute)
    return any(isinstance(n, acting) for n in ast.walk(node))


def is_check(statement: ast.stmt) -> bool:
    """Whether a statement looks at something, in a way that only tests do."""
    if isinstance(statement, ast.Assert) or raising_context(statement) is not None:
        return True
    value = statement.value if isinstance(statement, ast.Expr) else None
    name = name_of(value) if isinstance(value, ast.Call) else ""
    return name.startswith("assert") or name in _RAISES


def called_name(node: ast.AST) -> str:
    """The name of the outermost function that is called there, checks apart; "" for none."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    names = [name for call in calls if (name := name_of(call)) and not name.startswith("assert")]
    return names[0] if names else ""


def name_of(node: ast.expr) -> str:
    """The last part of what is called or named; "" where it has no name."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _of_assertion(test: ast.expr) -> Check:
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return _of_equality(test.left, test.comparators[0])
    return Check(ast.unparse(test), called_name(test), expected="True")


def _of_equality(got: ast.expr, wanted: ast.expr) -> Check:
    if ast.unparse(got) == ast.unparse(wanted):  # "I expect it to be what it is" says nothing
        code = ast.unparse(ast.Compare(got, [ast.Eq()], [wanted]))
        return Check(code, called_name(got), expected="True")
    return Check(ast.unparse(got), called_name(got), expected=ast.unparse(wanted))


def _of_call(check: ast.Call) -> Check | None:
    """What one of unittest's checks, or the call form of pytest's, says."""
    name, args = name_of(check), check.args
    if any(isinstance(arg, ast.Starred) for arg in args[:2]):
        return None
    first = 2 if name == "assertRaisesRegex" else 1
    if name in _RAISES and len(args) > first:
        call = ast.Call(args[first], args[first + 1 :], check.keywords)
        return Check(ast.unparse(call), called_name(call), "", *_of_raising(check, is_call=True))
    if name in _EQUAL and len(args) >= 2:
        # Projects write the two in either order; the expected one is that without a call.
        return _of_equality(*sorted(args[:2], key=is_action, reverse=True))
    form = syntax.parse_expression(_OPERATORS.get(name, "a"))
    num_wanted = len({n.id for n in ast.walk(form) if isinstance(n, ast.Name)} & {"a", "b"})
    if name not in _OPERATORS or len(args) < num_wanted:
        return None
    filled = _Filled(dict(zip("ab", args, strict=False))).visit(form)
    return Check(ast.unparse(filled), called_name(args[0]), expected="True")


def _of_raising(context: ast.Call, *, is_call: bool) -> tuple[str, str]:
    """The exception, and what its message should hold."""
    named = {} if is_call else {keyword.arg: keyword.value for keyword in context.keywords}
    args = context.args
    raised = args[0] if args else named.get("expected_exception")
    pattern = named.get("match", named.get("expected_regex"))
    if name_of(context) == "assertRaisesRegex" and len(args) > 1:
        pattern = args[1]
    return ast.unparse(raised) if raised else "", ast.unparse(pattern) if pattern else ""


class _Filled(ast.NodeTransformer):
    """Puts expressions in place of names; as a tree, so that precedence is kept."""

    def __init__(self, replacements: dict[str, ast.expr]) -> None:
        self._replacements = replacements

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._replacements.get(node.id, node)
