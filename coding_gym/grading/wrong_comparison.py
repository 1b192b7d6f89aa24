"""A canary's best end: the test's own last comparison, asked for a value that it cannot have.

It finds out what a failure beside the test's own code cannot: results that claim to equal
everything, or that are read from the line that compares them.
"""

import ast
from random import Random

_WORDS = ("amber", "birch", "cedar", "denim", "ember", "fjord", "grove", "heron")


def ends_in_comparison(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the last statement compares two values in a way that can be asked for another."""
    return _last_comparison(node) is not None


def compare_wrongly(
    lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef, rng: Random
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
    place = _replaced_side(*sides)
    first, last = place.lineno, place.end_lineno or place.lineno
    # The parser counts columns in bytes.
    before = lines[first - 1].encode()[: place.col_offset].decode()
    after = lines[last - 1].encode()[place.end_col_offset or 0 :].decode()
    changed = f"{before}{_wrong_value(place, rng)}{after}"
    return [*lines[: first - 1], changed, *([""] * (last - first)), *lines[last:]]


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
        ) if not (_may_match_anything(left) or isinstance(right, ast.Starred)):
            return left, right
    return None


def _may_match_anything(left: ast.expr) -> bool:
    """Whether a left side looks like a matcher (``ANY``, ``IsInt()``) instead of a result."""
    called = left.func if isinstance(left, ast.Call) else left
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name[0].isupper() or name == "approx"
    return isinstance(called, ast.Starred)


def _replaced_side(left: ast.expr, right: ast.expr) -> ast.expr:
    """The side that is expected: the right one, unless only the left one is a literal."""
    match right:
        case ast.Call(
            func=ast.Attribute(attr="approx") | ast.Name(id="approx"), args=[value], keywords=[]
        ):
            return value  # its own way to compare stays in use
    has_call = any(isinstance(n, ast.Call) for n in ast.walk(right))
    return left if has_call and _is_literal(left) else right


def _is_literal(side: ast.expr) -> bool:
    try:
        ast.literal_eval(side)
    except (ValueError, TypeError):
        return False
    return True


def _wrong_value(expected: ast.expr, rng: Random) -> str:
    """A value of the expected type, where that can be seen, that nothing has by accident."""
    number = str(rng.randrange(10_007, 99_991))
    text = f'"{rng.choice(_WORDS)} {rng.randrange(10, 99)}"'
    match expected:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return text
        case ast.Constant(value=bytes()):
            return f"b{text}"
        case ast.List():
            return f"[{number}]"
        case ast.Tuple():
            return f"({number},)"
        case ast.Dict():
            return f"{{{number}: {text}}}"
        case ast.Set():
            return f"{{{number}}}"
    return number
