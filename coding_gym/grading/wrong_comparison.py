"""A canary's best end: the test's own last comparison, asked for a value that it cannot have.

It finds out what a failure beside the test's own code cannot: results that claim to equal
everything, or that are read from the line that compares them.
"""

import ast
from collections.abc import Sequence
from random import Random

from coding_gym.grading.wrong_values import is_literal, make_wrong


def ends_in_comparison(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the last statement compares two values in a way that can be asked for another."""
    return _last_comparison(node) is not None


def compare_wrongly(
    lines: Sequence[str], node: ast.FunctionDef | ast.AsyncFunctionDef, rng: Random
) -> list[str]:
    """Returns the file's lines, the test's last comparison asking for a value that is not right.

    Nothing that the test does is left out, as the comparison is its last statement. Lines that the
    change swallows are "", so that all others keep their numbers.

    Args:
        lines: The file's lines, with their line ends.
        node: A test for which `ends_in_comparison` holds, as parsed from them.
        rng: Decides the value.
    """
    sides = _last_comparison(node)
    if sides is None:
        raise ValueError(f"{node.name} does not end in a comparison")
    return make_wrong(lines, expected_side(*sides), rng)


def may_match_anything(left: ast.expr, right: ast.expr) -> bool:
    """Whether the side that is not expected looks like a matcher (``ANY``, ``IsInt()``)."""
    actual = right if expected_side(left, right) is left else left
    called = actual.func if isinstance(actual, ast.Call) else actual
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name[0].isupper() or name == "approx"
    return isinstance(called, ast.Starred)


def expected_side(left: ast.expr, right: ast.expr) -> ast.expr:
    """The side that is expected: the right one, unless only the left one is a literal."""
    match right:
        case ast.Call(
            func=ast.Attribute(attr="approx") | ast.Name(id="approx"), args=[value], keywords=[]
        ):
            return value  # its own way to compare stays in use
    return left if is_literal(left) and not is_literal(right) else right


def _last_comparison(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> tuple[ast.expr, ast.expr] | None:
    """Both sides of ``assert one == two`` or ``….assertEqual(one, two)`` at a test's end."""
    match node.body[-1]:
        case (
            ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]))
            | ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="assertEqual"), args=[left, right], keywords=[]
                )
            )
        ) if not (may_match_anything(left, right) or isinstance(right, ast.Starred)):
            return left, right
    return None
