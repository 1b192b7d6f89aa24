"""A test turned against itself: one of its own checks asks for the opposite, or for another value.

Such a test fails exactly where the test itself passes, whatever its name, its place and the rest of
its file, so nothing but knowing the right answer tells one from the other.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from random import Random

from coding_gym.grading.source_spans import between, end_of, rewrite, start_of, text_of
from coding_gym.grading.wrong_comparison import expected_side, may_match_anything
from coding_gym.grading.wrong_values import has_literal, make_wrong

_OPPOSITE_OPERATORS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
}
_PAIRS = (
    ("assertTrue", "assertFalse"),
    ("assertIn", "assertNotIn"),
    ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"),
    ("assertIsInstance", "assertNotIsInstance"),
    ("assertGreater", "assertLessEqual"),
    ("assertLess", "assertGreaterEqual"),
    ("assertRegex", "assertNotRegex"),
    ("assertEqual", "assertNotEqual"),
    ("assertAlmostEqual", "assertNotAlmostEqual"),
    ("assert_called", "assert_not_called"),
)
_OPPOSITE_CALLS = {
    **dict(_PAIRS),
    **{two: one for one, two in _PAIRS},
    "assert_called_once": "assert_not_called",
}
_EQUALITIES = {
    *("assertEqual", "assertAlmostEqual", "assertCountEqual", "assertMultiLineEqual"),
    *("assertListEqual", "assertTupleEqual", "assertSetEqual", "assertDictEqual"),
    *("assertSequenceEqual", "assert_equal", "assert_allclose", "assert_almost_equal"),
    *("assert_array_equal", "assert_array_almost_equal"),
}
_CALLED_WITH = {"assert_called_with", "assert_called_once_with", "assert_any_call"}
_RAISES = {"raises", "assertRaises", "assertRaisesRegex"}
# Errors that few others derive from, so that none of these stands for another.
_ERRORS = ("ZeroDivisionError", "OverflowError", "RecursionError", "PermissionError", "BufferError")
_ATOMS = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant


def contradict(
    lines: Sequence[str], node: ast.FunctionDef | ast.AsyncFunctionDef, rng: Random
) -> list[str] | None:
    """Returns a file's lines with the last fitting check of a test turned round.

    Lines that the change swallows are "", so that all others keep their numbers.

    Args:
        lines: The file's lines, with their line ends.
        node: A test that does not return early, as parsed from them.
        rng: Decides what is asked for instead, where there is a choice.

    Returns:
        The lines; None where no check of the test can be turned round for sure.
    """
    return _contradict_last(lines, node.body, rng)


def _contradict_last(
    lines: Sequence[str], body: Sequence[ast.stmt], rng: Random
) -> list[str] | None:
    """Turns round the last check that is reached whenever the body is."""
    for statement in reversed(body):
        changed = None
        match statement:
            case ast.Assert(test=test):
                changed = _other_condition(lines, test, rng)
            case ast.Expr(value=ast.Call() as call):
                changed = _other_call(lines, call, rng)
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                changed = _other_block(lines, items, inner, rng)
        if changed is not None:
            return changed
    return None


def _other_condition(lines: Sequence[str], test: ast.expr, rng: Random) -> list[str]:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            expected = expected_side(left, right)
            is_equality = isinstance(operator, ast.Eq) and not may_match_anything(left, right)
            # Beside an opposite, which is as likely in a test, a wrong value finds out what claims
            # to equal everything.
            if is_equality and (has_literal(expected) or rng.random() < 0.5):
                return make_wrong(lines, expected, rng)
            pattern, opposite = _OPPOSITE_OPERATORS[type(operator)]
            start, end = end_of(left), start_of(right)
            text = re.sub(pattern, opposite, between(lines, start, end), count=1)
            return rewrite(lines, start, end, text)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            opposite = _grouped(lines, operand)
        case _:
            opposite = f"not {_grouped(lines, test)}"
    return rewrite(lines, start_of(test), end_of(test), opposite)


def _grouped(lines: Sequence[str], node: ast.expr) -> str:
    text = text_of(lines, node)
    return text if isinstance(node, _ATOMS) else f"({text})"


def _other_call(lines: Sequence[str], call: ast.Call, rng: Random) -> list[str] | None:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            pass
        case _:
            return None
    plain = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
    if name in _RAISES and len(plain) == len(call.args) > 1:
        return _other_error(lines, call.args[0], rng)
    if name in _EQUALITIES and len(plain) == len(call.args) == 2 and not call.keywords:
        return make_wrong(lines, expected_side(*call.args), rng)
    if name in _CALLED_WITH:
        values = [*plain, *(keyword.value for keyword in call.keywords)]
        fit = [value for value in values if has_literal(value)]
        return make_wrong(lines, rng.choice(fit), rng) if fit else None
    if name in _OPPOSITE_CALLS:
        line, column = end_of(call.func)
        start = (line, column - len(name))
        return rewrite(lines, start, (line, column), _OPPOSITE_CALLS[name])
    return None


def _other_block(
    lines: Sequence[str], items: Sequence[ast.withitem], body: Sequence[ast.stmt], rng: Random
) -> list[str] | None:
    """Asks a block that must raise for another error, or looks inside any other block."""
    for item in items:
        match item.context_expr:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args):
                if name in _RAISES:
                    return _other_error(lines, args[0], rng) if args and len(items) == 1 else None
                if "suppress" in name.lower():
                    return None
    return _contradict_last(lines, body, rng)


def _other_error(lines: Sequence[str], expected: ast.expr, rng: Random) -> list[str] | None:
    """Asks for an error that is none of the expected ones, and no kind of them."""
    wanted = expected.elts if isinstance(expected, ast.Tuple) else [expected]
    names = [one.id if isinstance(one, ast.Name) else "" for one in wanted]
    known = [one for name in names if isinstance(one := vars(builtins).get(name), type)]
    if len(known) < len(names):  # what a project's own error derives from cannot be read here
        return None
    others = [getattr(builtins, name) for name in _ERRORS]
    fit = [o for o in others if not any(issubclass(o, k) or issubclass(k, o) for k in known)]
    if not fit:
        return None
    return rewrite(lines, start_of(expected), end_of(expected), rng.choice(fit).__name__)
