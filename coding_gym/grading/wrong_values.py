"""Wrong values that look right: what a test that must fail asks for.

A value that stands out (a large number among small ones) would tell code under test which tests are
meant to fail. So the value asked for is the right one with one literal of it changed; only where
there is none that can be changed does it come out of nowhere.
"""

import ast
import re
import string
from collections.abc import Iterator, Sequence
from random import Random

from coding_gym import syntax

_WORDS = ("amber", "birch", "cedar", "denim", "ember", "fjord", "grove", "heron")
# Calls whose value differs wherever their arguments do.
_FAITHFUL = {"list", "tuple", "dict", "Decimal", "date", "datetime", "timedelta", "Path"}
_NUM_TRIES = 20
# What stands between the quotes of an f-string for a value.
_REPLACED = re.compile(r"^\w*|\{[^{}]*\}")

Literal = ast.Constant | ast.JoinedStr
Place = tuple[int, int]  # the number of a line, and a column in bytes
Edit = tuple[Place, Place, str]


def start_of(node: ast.expr | ast.stmt) -> Place:
    """Returns where an expression begins."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Place:
    """Returns where an expression ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def text_of(lines: Sequence[str], node: ast.expr) -> str:
    """Returns the source of an expression, as parsed from a file's lines."""
    return between(lines, start_of(node), end_of(node))


def between(lines: Sequence[str], start: Place, end: Place) -> str:
    """Returns what lies between two places of a file, whose lines have their line ends."""
    text = "".join(lines[start[0] - 1 : end[0]]).encode()
    skipped = sum(len(line.encode()) for line in lines[start[0] - 1 : end[0] - 1])
    return text[start[1] : skipped + end[1]].decode()


def wrong_literal(lines: Sequence[str], literals: Sequence[Literal], rng: Random) -> list[Edit]:
    """Returns the edit that writes another literal for one of some; none where none is found."""
    for _ in range(_NUM_TRIES if literals else 0):
        literal = rng.choice(literals)
        text = text_of(lines, literal)
        if isinstance(literal, ast.JoinedStr):
            hidden = _REPLACED.sub(lambda found: "{" * len(found[0]), text)
            changed = _with_other_letter(text, hidden, rng)
            is_other = "{{" not in text and _is_other_f_string(changed, text)
        else:
            changed = _changed(literal.value, text, rng)
            is_other = _is_other(changed, literal.value)
        if is_other:
            return [(start_of(literal), end_of(literal), changed)]
    return []


def is_literal(value: ast.expr) -> bool:
    """Whether an expression is made of literals only."""
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError):
        return False
    return True


def literals_of(expected: ast.expr) -> Iterator[ast.Constant]:
    """Yields the literals of which any change changes the value of the whole expression."""
    match expected:
        case ast.Constant(value=bool() | int() | float()):
            yield expected
        case ast.Constant(value=str() | bytes() as value):
            text = value if isinstance(value, str) else value.decode("latin1")
            if re.search(r"[a-zA-Z0-9]", text):
                yield expected
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right):
            for side in (left, right):
                if isinstance(side, ast.Constant) and type(side.value) in (int, float):
                    yield side
        case _:
            for part in _parts(expected):
                yield from literals_of(part)


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=part):
            return [part]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return parts
        case ast.Dict(values=parts):
            return parts
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _FAITHFUL:
            return [*node.args, *(keyword.value for keyword in node.keywords)]
    return []


def _changed(value: object, text: str, rng: Random) -> str:
    """The source of a value like another one; not always valid, and not always different."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int | float):
        step = rng.randint(2, max(9, int(min(abs(value), 10**6)) // 2))
        return repr(value - step if rng.random() < 0.5 and value >= step else value + step)
    return _with_other_letter(text, text, rng)


def _with_other_letter(text: str, pattern: str, rng: Random) -> str:
    """A text with another letter or digit where a pattern of it has one; escapes stay."""
    places = [found.start() for found in re.finditer(r"(?<!\\)[a-zA-Z0-9]", pattern)]
    if not places:
        return f"{text[:-1]}{rng.choice(string.ascii_lowercase)}{text[-1]}"  # between the quotes
    at = rng.choice(places)
    new = rng.choice(string.digits if text[at].isdigit() else string.ascii_lowercase)
    return text[:at] + (new.upper() if text[at].isupper() else new) + text[at + 1 :]


def _is_other(text: str, value: object) -> bool:
    """Whether a source is that of another value of the same type."""
    try:
        other = syntax.literal_eval(text)
    except (ValueError, SyntaxError):  # an escape or a prefix was hit
        return False
    if isinstance(value, str | bytes) and isinstance(other, type(value)):
        return other.lower() != value.lower()
    return type(other) is type(value) and other != value


def _is_other_f_string(text: str, before: str) -> bool:
    """Whether an f-string says something else, with the same values in the same places."""
    try:
        words, values = _f_string_parts(text)
    except SyntaxError:  # one of several parts lost its prefix
        return False
    words_before, values_before = _f_string_parts(before)
    return values == values_before and words != words_before


def _f_string_parts(text: str) -> tuple[list[str | None], list[str]]:
    """What an f-string says, with None in place of each value, and these values."""
    node = syntax.parse_expression(f"({text})")
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    words = [str(p.value).lower() if isinstance(p, ast.Constant) else None for p in parts]
    return words, [ast.dump(p) for p in parts if not isinstance(p, ast.Constant)]


def unlikely_value(expected: ast.expr, rng: Random) -> str:
    """Returns a value, of the expected type where that shows, that nothing has by accident."""
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
