"""Near misses: wrong expected values that a reader of the test cannot tell from the right ones.

A near miss has the type, the format and the spelling of the right value. It changes a place where
the output of the unrepaired program (the *base*) is wrong too, and lies as far from that output as
the right value does, on the other side: an object that compares equal to everything near the base's
output passes both, and the base's output itself passes neither.
"""

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from coding_gym import syntax

_UNLIKELY = ("amber", "birch", "cedar", "denim", "ember", "fjord", "grove", "heron")
_DECIMAL = re.compile(r"\d+(\.\d+)?")
_WORD = re.compile(r"\w[\w .@/-]*")
_PLAIN_TEXT = re.compile(r"""(["'])([^\\\n"']*)\1""")
_MAX_NUMBER = 10**15
_UNKNOWN = object()

Place = tuple[int, int]  # the number of a line, and a column in bytes
Edit = tuple[Place, Place, str]
NearMiss = tuple[tuple[Edit, ...], bool]
"""The edits that write a near miss, and whether nothing tells it from the right value."""


def start_of(node: ast.expr | ast.stmt) -> Place:
    """Returns where a node begins."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Place:
    """Returns where a node ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def text_of(lines: Sequence[str], node: ast.expr) -> str:
    """Returns the source of an expression, as parsed from a file's lines."""
    return between(lines, start_of(node), end_of(node))


def between(lines: Sequence[str], start: Place, end: Place) -> str:
    """Returns the text between two places of a file, whose lines have their line ends."""
    text = "".join(lines[start[0] - 1 : end[0]]).encode()
    skipped = sum(len(line.encode()) for line in lines[start[0] - 1 : end[0] - 1])
    return text[start[1] : skipped + end[1]].decode()


def is_literal(value: ast.expr) -> bool:
    """Whether an expression is made of literals only."""
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def near_misses(
    lines: Sequence[str],
    expected: ast.expr,
    outputs: Sequence[str],
    words: Sequence[str],
    rng: Random,
) -> list[NearMiss]:
    """Returns near misses of an expected value, the best first.

    Args:
        lines: The lines of the file.
        expected: The expression.
        outputs: ``repr`` of the values that the base compares with it; empty where it has none.
        words: Texts of the test that may stand for one another.
        rng: Chooses among equals.
    """
    base = _wrong_output(expected, outputs)
    found = list(_orders(lines, expected, base))
    leaves = list(_leaves(expected, base))
    rng.shuffle(leaves)
    for leaf, output in leaves:
        is_hidden = _is_hidden(leaf.value, output, outputs)
        for text, is_alike in _others(leaf, text_of(lines, leaf), output, words, rng):
            if _is_other(text, leaf.value, output):
                edit = (start_of(leaf), end_of(leaf), text)
                found.append(((edit,), is_alike and is_hidden))
    return sorted(found, key=lambda one: not one[1])


def _wrong_output(expected: ast.expr, outputs: Sequence[str]) -> Any:
    """Returns the first of the base's values that is not the expected one, if it can be read."""
    for text in outputs:
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = syntax.literal_eval(text)
            if not is_literal(expected) or ast.literal_eval(expected) != value:
                return value
    return _UNKNOWN


def _is_hidden(value: object, output: object, outputs: Sequence[str]) -> bool:
    """Whether the base's output does not show a value at its place, or anywhere if that is open."""
    if output is not _UNKNOWN:
        return bool(output != value)
    return not any(repr(value) in text for text in outputs)


def _orders(lines: Sequence[str], expected: ast.expr, base: Any) -> Iterator[NearMiss]:
    """Yields the expected list with two neighbours exchanged, where the base has another order."""
    if not isinstance(expected, ast.List | ast.Tuple) or not is_literal(expected):
        return
    value = [*ast.literal_eval(expected)]
    if not isinstance(base, list | tuple) or sorted(map(repr, base)) != sorted(map(repr, value)):
        return
    for at, (one, two) in enumerate(zip(expected.elts, expected.elts[1:], strict=False)):
        swapped = [*value[:at], value[at + 1], value[at], *value[at + 2 :]]
        if swapped not in (value, [*base]):
            texts = text_of(lines, two), text_of(lines, one)
            pairs = zip((one, two), texts, strict=True)
            yield tuple((start_of(n), end_of(n), text) for n, text in pairs), True


def _leaves(node: ast.expr, base: Any) -> Iterator[tuple[ast.Constant, Any]]:
    """Yields the literals of an expected value, with the base's ones where they are known."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | bytes()):
            yield node, base
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
            yield number, -base if isinstance(base, int | float) else base
        case _:
            for part, value in _parts(node, base):
                yield from _leaves(part, value)


def _parts(node: ast.expr, base: Any) -> list[tuple[ast.expr, Any]]:
    """Returns what an expected value is made of, each part with the base's one."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            fits = isinstance(base, list if isinstance(node, ast.List) else tuple)
            values = base if fits and len(base) == len(parts) else [_UNKNOWN] * len(parts)
            return [*zip(parts, values, strict=True)]
        case ast.Dict(keys=keys, values=parts):
            known = base if isinstance(base, dict) else {}
            names = [key.value if isinstance(key, ast.Constant) else _UNKNOWN for key in keys]
            return [(p, known.get(key, _UNKNOWN)) for p, key in zip(parts, names, strict=True)]
        case ast.Set(elts=parts):
            return [(part, _UNKNOWN) for part in parts]
        case ast.JoinedStr() | ast.Call(func=ast.Name(id="open")):
            return []  # in another mode a file would be emptied
        case ast.Call(args=args, keywords=keywords):
            parts = [node.func, *args, *(keyword.value for keyword in keywords)]
            return [(part, _UNKNOWN) for part in parts]
    return [(n, _UNKNOWN) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]


def _others(
    leaf: ast.Constant, text: str, output: object, words: Sequence[str], rng: Random
) -> Iterator[tuple[str, bool]]:
    """Yields the sources of values like that of a literal, the best first."""
    value = leaf.value
    if isinstance(value, bool):
        yield str(not value), True
    elif isinstance(value, int | float):
        yield from _numbers(text, value, output, rng)
    elif isinstance(value, str | bytes):
        yield from _texts(text, str(value), output, words, rng)


def _numbers(text: str, value: float, output: object, rng: Random) -> Iterator[tuple[str, bool]]:
    if not _DECIMAL.fullmatch(text):
        return
    decimals = len(text.partition(".")[2])
    is_near = type(output) in (int, float) and output != value
    if isinstance(output, int | float) and is_near and abs(output) < _MAX_NUMBER:
        mirrored = 2 * output - value
        other = f"{mirrored:.{decimals}f}" if decimals else str(int(mirrored))
        yield other, mirrored >= 0 and abs(len(other) - len(text)) <= 1
        step = 10**-decimals if output > value else -(10**-decimals)
        yield f"{value + step:.{decimals}f}" if decimals else str(int(value + step)), False
    for place in range(len(text) - 1, -1, -1):
        if text[place] in "123456789" or text == "0":
            yield _with_other_digit(text, place, rng), not is_near


def _texts(
    text: str, value: str, output: object, words: Sequence[str], rng: Random
) -> Iterator[tuple[str, bool]]:
    match = _PLAIN_TEXT.fullmatch(text)
    base = output if isinstance(output, str) else ""
    if match and base:  # the base is wrong in case, blanks or signs alone
        forgiving = _lenient(value, base)
        if forgiving:
            yield from ((f"{match[1]}{other}{match[1]}", False) for other in forgiving)
            return
    wrong = _wrong_places(value, base) if match and base else None
    digits = [found.start() for found in re.finditer(r"(?<!\\)[1-9]", text)]
    if match and wrong is not None:
        first = [place for place in digits if place - 1 in wrong]
        digits = first or digits
    for place in rng.sample(digits, min(3, len(digits))):
        is_alike = wrong is None or place - 1 in wrong
        yield _with_other_digit(text, place, rng), is_alike
    if match and _WORD.fullmatch(value):
        like = [w for w in words if _WORD.fullmatch(w) and w.isalpha() == value.isalpha()]
        like = [w for w in like if w not in (value, base) and _is_similar(w, value)]
        for other in rng.sample(like, min(3, len(like))):
            yield f"{match[1]}{other}{match[1]}", True
    letters = [found.start() for found in re.finditer(r"(?<![\\\w])[a-zA-Z]|[a-zA-Z]\b", text[1:])]
    for place in rng.sample(letters, min(2, len(letters))):
        yield _with_other_letter(text, place + 1, rng), False
    if not letters and not digits:
        yield f"{text[:-1]}.{text[-1]}", False


def _lenient(value: str, base: str) -> list[str]:
    """Returns texts that differ from another as the base's does: by case, or blanks and signs."""
    found: list[str] = []
    if value == base:
        return found
    if value.lower() == base.lower():
        found = [value.upper(), value.lower(), value.capitalize(), value.swapcase()]
    elif re.sub(r"[\s+-]", "", value) == re.sub(r"[\s+-]", "", base):
        found = [value.replace(" ", "  ", 1), value.replace(" ", "", 1), f"{value} ", f"-{value}"]
    return [one for one in found if one not in (value, base)]


def _wrong_places(value: str, base: str) -> set[int]:
    """Returns the places of a text where the base's text differs."""
    matcher = difflib.SequenceMatcher(None, value, base, autojunk=False)
    blocks = [range(m.a, m.a + m.size) for m in matcher.get_matching_blocks()]
    return set(range(len(value))).difference(*blocks)


def _is_similar(one: str, two: str) -> bool:
    return max(len(one), len(two)) <= 2 * min(len(one), len(two)) + 2 and (
        one[:1].isupper() == two[:1].isupper()
    )


def _with_other_digit(text: str, place: int, rng: Random) -> str:
    digit = int(text[place])
    new = rng.choice([one for one in (digit - 1, digit + 1) if 0 < one <= 9])
    return f"{text[:place]}{new}{text[place + 1 :]}"


def _with_other_letter(text: str, place: int, rng: Random) -> str:
    new = rng.choice("aeiounrst")
    new = new.upper() if text[place].isupper() else new
    return f"{text[:place]}{new}{text[place + 1 :]}"


def _is_other(text: str, value: object, output: object) -> bool:
    """Whether a source is that of another value of the same type, and not of the base's output."""
    try:
        other = syntax.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return type(other) is type(value) and other not in (value, output)


def unlikely_value(expected: ast.expr, rng: Random) -> str:
    """Returns a value, of the expected type where that shows, that nothing has by accident."""
    number = str(rng.randrange(10_007, 99_991))
    text = f'"{rng.choice(_UNLIKELY)} {rng.randrange(10, 99)}"'
    match expected:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return text
        case ast.Constant(value=bytes()):
            return f"b{text}"
        case ast.List() | ast.ListComp():
            return f"[{number}]"
        case ast.Tuple():
            return f"({number},)"
        case ast.Dict():
            return f"{{{number}: {text}}}"
        case ast.Set():
            return f"{{{number}}}"
    return number
