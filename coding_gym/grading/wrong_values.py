"""Makes near misses: wrong expected values that look like right values.

A near miss has the type and the format of the right value, and differs from it in a part that is
also wrong in the base's output. A wrong number is as far from the base's number as the right one,
on the other side, or at a similar distance on the same side. So the side does not reveal the right
number, and the distance reveals it only to a program that knows the size of the error. An object
that equals all values near the base's output passes both versions, which the grader detects. If the
base's output is a literal, this output passes neither version.
"""

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, repeat
from random import Random
from typing import Any

from coding_gym import syntax
from coding_gym.grade import Level
from coding_gym.grading.challenge import Unit
from coding_gym.grading.number_choice import Surroundings
from coding_gym.source_text import Edit, SourceText

_FORMS: dict[object, str] = {  # source of a value, by the type of a literal or of an expression
    str: '"{}"',
    bytes: 'b"{}"',
    ast.JoinedStr: '"{}"',
    ast.List: "[{}]",
    ast.ListComp: "[{}]",
    ast.Tuple: "({},)",
    ast.Dict: "{{{}: 0}}",
    ast.Set: "{{{}}}",
}
_DECIMAL = re.compile(r"\d+(\.\d+)?")
# Letters and digits outside escapes, and in f-strings also outside replacement fields.
_LETTER = re.compile(r"\\.|([^\W_])")
_LETTER_OF_FORMAT = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}|\\.|([^\W_])")
_MAX_NUMBER = 10**15
_MAX_PLACES = 3  # characters of a value to change, each in a separate near miss
_UNKNOWN = object()

Leaf = ast.Constant | ast.JoinedStr
Lines = tuple[int, int]  # the numbers of the first and the last line
Replacements = tuple[tuple[ast.expr, str], ...]  # parts of an expected value, each with new source


@dataclass(frozen=True, slots=True)
class _Part:
    """A literal of an expected value.

    Attributes:
        node: The literal.
        text: The source of the literal.
        output: The corresponding part of the base's output, or `_UNKNOWN`.
    """

    node: Leaf
    text: str
    output: Any

    @property
    def value(self) -> Any:
        """The value of the literal; `_UNKNOWN` for an f-string."""
        return self.node.value if isinstance(self.node, ast.Constant) else _UNKNOWN

    @property
    def is_wrong(self) -> bool:
        """Whether the base's output for this literal is wrong or unknown."""
        return self.output is _UNKNOWN or self.output != self.value


def is_literal(value: ast.expr) -> bool:
    """Returns whether an expression consists only of literals."""
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def near_misses(
    path: str,
    source: SourceText,
    scope: Lines,
    expected: ast.expr,
    outputs: Sequence[str],
    rng: Random,
) -> list[Unit]:
    """Returns the units that replace an expected value by a near miss, bits first.

    Args:
        path: The path of the test file.
        source: The text of the test file.
        scope: The numbers of the first and the last line of the test.
        expected: The expression.
        outputs: ``repr`` of the values that the base compares with it; empty if unknown.
        rng: Source of random choices.
    """

    def unit(replacements: Replacements, is_bit: bool = False, is_mirrored: bool = False) -> Unit:
        edits = tuple(Edit(path, *source.span(part), text) for part, text in replacements)
        return Unit(edits=edits, level=Level.VALUE, is_bit=is_bit, is_mirrored=is_mirrored)

    base = _wrong_output(expected, outputs)
    swaps = [unit(swap) for swap in _swaps(source, expected, base)]
    if swaps:  # the grader detects an object that equals any order: it passes both versions
        return rng.sample(swaps, len(swaps))
    is_base_right = ast.unparse(expected) in outputs
    # An output that is no literal may lie near the right value, unlike a near miss.
    is_readable = base is not _UNKNOWN or not outputs
    can_have_bits = is_readable and not is_base_right
    calls = [node for node in ast.walk(expected) if isinstance(node, ast.Call)]
    in_calls = {node for call in calls for node in ast.walk(call)}
    ranked: list[tuple[int, Unit]] = []  # ranks: 0 bits, 1 similar values, 2 other values
    for leaf, output in _leaves(expected, base):
        part = _Part(leaf, source.segment(leaf), output)
        surroundings = _surroundings(source, scope, leaf, outputs)
        for texts, is_mirrored in _groups(part, rng):
            text, is_as_probable = surroundings.choose(part.text, texts, rng)
            # A changed argument can be invalid, such as the day in a call of `date`.
            can_be_bit = can_have_bits and part.is_wrong and leaf not in in_calls
            is_bit = can_be_bit and is_as_probable
            if _is_wrong_value(part, text):
                near_miss = unit(((leaf, text),), is_bit, is_mirrored)
                ranked.append((0 if is_bit else 1, near_miss))
        texts = [text for text in _recognizable(part, rng) if _is_wrong_value(part, text)]
        ranked += [(2, unit(((leaf, text),))) for text in texts]
    rng.shuffle(ranked)
    ranked.sort(key=lambda pair: pair[0])
    return [near_miss for _, near_miss in ranked]


def _swaps(source: SourceText, expected: ast.expr, base: Any) -> Iterator[Replacements]:
    """Yields swaps of two neighbours of an expected list, if the base has another order."""
    if not isinstance(expected, ast.List | ast.Tuple) or not is_literal(expected):
        return
    value = [*ast.literal_eval(expected)]
    if not isinstance(base, list | tuple) or sorted(map(repr, base)) != sorted(map(repr, value)):
        return
    for index, (left, right) in enumerate(pairwise(expected.elts)):
        swapped = value.copy()
        swapped[index], swapped[index + 1] = value[index + 1], value[index]
        if swapped not in (value, [*base]):
            yield (left, source.segment(right)), (right, source.segment(left))


def _groups(part: _Part, rng: Random) -> Iterator[tuple[list[str], bool]]:
    """Yields groups of literals that a reader may take for the original, with `Unit.is_mirrored`.

    If the base's number is unknown, a group has all numbers that differ in one digit.
    """
    value, text, output = part.value, part.text, part.output
    if type(value) in (int, float) and _DECIMAL.fullmatch(text):
        decimals = len(text.partition(".")[2])
        is_known = type(output) in (int, float) and output != value
        if is_known and max(abs(value), abs(output)) < _MAX_NUMBER:
            yield [_formatted(2 * output - value, decimals)], True
            distance = round(abs(value - output) * 10**decimals)
            difference = _similar_distance(distance, rng) / 10**decimals
            number = output + difference if value > output else output - difference
            if number >= 0:
                yield [_formatted(number, decimals)], False
        else:
            digits = "0" if text == "0" else "123456789"
            places = [place for place, char in enumerate(text) if char in digits]
            yield from ((_with_other_digits(text, place), False) for place in places)


def _similar_distance(distance: int, rng: Random) -> int:
    """Returns ``distance`` with one binary digit inverted, but never the first digit.

    The relation is symmetric: A results from B as probably as B results from A.
    """
    if distance < 2:  # the only distance with so few digits
        return distance
    place = rng.randrange(distance.bit_length() - 1)
    return distance ^ (1 << place)


def _formatted(number: float, decimals: int) -> str:
    return f"{number:.{decimals}f}" if decimals else str(int(number))


def _with_other_digits(text: str, place: int) -> list[str]:
    digits = (digit for digit in "123456789" if digit != text[place])
    return [f"{text[:place]}{digit}{text[place + 1 :]}" for digit in digits]


def _recognizable(part: _Part, rng: Random) -> Iterator[str]:
    """Yields sources of wrong values that a reader may distinguish from the right value."""
    value, text = part.value, part.text
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int | float):
        is_decimal = _DECIMAL.fullmatch(text)
        places = [n for n, char in enumerate(text) if char != "."] if is_decimal else []
        texts = [new_text for place in places for new_text in _with_other_digits(text, place)]
        yield from rng.sample(texts, min(_MAX_PLACES, len(texts)))
    elif variants := _variants(part):
        yield from variants
    else:
        yield from _misspelled(part, rng)


def _variants(part: _Part) -> list[str]:
    """Returns sources of texts that differ as the base's does: in case or in blanks."""
    value, base = part.value, part.output
    if not isinstance(base, str) or part.text[1:-1] != value or value == base:
        return []
    texts: list[str] = []
    if value.lower() == base.lower():
        texts = [value.upper(), value.lower(), value.capitalize(), value.swapcase()]
    elif "".join(value.split()) == "".join(base.split()):
        texts = [value.replace(" ", "  ", 1), value.replace(" ", "", 1), f"{value} "]
    return [f"{part.text[0]}{text}{part.text[0]}" for text in texts]


def _misspelled(part: _Part, rng: Random) -> Iterator[str]:
    """Yields sources of a text with one letter or digit changed, where the base's text differs."""
    text = part.text
    first_quote = min(text.find(quote) for quote in "\"'" if quote in text)
    pattern = _LETTER_OF_FORMAT if part.value is _UNKNOWN else _LETTER
    places = {match.start() for match in pattern.finditer(text, first_quote) if match[1]}
    if isinstance(part.output, str) and text[1:-1] == part.value:  # no escapes
        matcher = difflib.SequenceMatcher(None, text[1:-1], part.output, autojunk=False)
        starts = [(block.a + 1, block.size) for block in matcher.get_matching_blocks()]
        matching = {start + offset for start, size in starts for offset in range(size)}
        places = places - matching or places
    for place in rng.sample(sorted(places), min(_MAX_PLACES, len(places))):
        old = text[place]
        new = rng.choice("123456789" if old.isdecimal() else "aeiounrst")
        new = new.upper() if old.isupper() else new
        yield f"{text[:place]}{new}{text[place + 1 :]}"
    if not places:
        yield f"{text[:-1]}.{text[-1]}"


def _is_wrong_value(part: _Part, text: str) -> bool:
    """Returns whether a source has the right value's type, but neither its value nor the base's."""
    if part.value is _UNKNOWN:
        return text != part.text
    try:
        value = syntax.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return type(value) is type(part.value) and value not in (part.value, part.output)


def _surroundings(
    source: SourceText, scope: Lines, node: ast.expr, outputs: Sequence[str]
) -> Surroundings:
    """Returns the code around a node."""
    first, last = source.line_span(*scope)
    start, end = source.span(node)
    before, after = source.text[first:start], source.text[end:last]
    outside = source.text[:first] + source.text[last:]
    line = before.rpartition("\n")[2] + " " + after.partition("\n")[0]
    return Surroundings(before + after, before + after + outside, line, "\n".join(outputs))


def _wrong_output(expected: ast.expr, outputs: Sequence[str]) -> Any:
    """Returns the base's first value that is a literal and wrong, or `_UNKNOWN`."""
    for text in outputs:
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = syntax.literal_eval(text)
            if not is_literal(expected) or ast.literal_eval(expected) != value:
                return value
    return _UNKNOWN


def _leaves(node: ast.expr, base: Any) -> Iterator[tuple[Leaf, Any]]:
    """Yields the literals of an expected value, each with the base's value or `_UNKNOWN`."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | bytes()):
            yield node, base
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float()) as number):
            yield number, -base if isinstance(base, int | float) else base
        case ast.JoinedStr():
            yield node, _UNKNOWN
        case _:
            for part, value in _parts(node, base):
                yield from _leaves(part, value)


def _parts(node: ast.expr, base: Any) -> list[tuple[ast.expr, Any]]:
    """Returns the parts of an expected value, each with the base's value or `_UNKNOWN`."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            kind = list if isinstance(node, ast.List) else tuple
            is_parallel = isinstance(base, kind) and len(base) == len(parts)
            return [*zip(parts, base if is_parallel else repeat(_UNKNOWN), strict=False)]
        case ast.Dict(keys=keys, values=parts):
            outputs = base if isinstance(base, dict) else {}
            names = [key.value if isinstance(key, ast.Constant) else _UNKNOWN for key in keys]
            return [(p, outputs.get(key, _UNKNOWN)) for p, key in zip(parts, names, strict=True)]
    children = [n.value if isinstance(n, ast.keyword) else n for n in ast.iter_child_nodes(node)]
    return [(part, _UNKNOWN) for part in children if isinstance(part, ast.expr)]


def unlikely_value(expected: ast.expr, rng: Random) -> str:
    """Returns the source of an improbable value, of the expected type if it is in `_FORMS`."""
    kind = type(expected.value if isinstance(expected, ast.Constant) else expected)
    return _FORMS.get(kind, "{}").format(rng.randrange(10**9, 10**10))
