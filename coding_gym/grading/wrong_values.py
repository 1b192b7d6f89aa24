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
_PHRASE = re.compile(r"\w[\w .@/-]*")
_WORDS = re.compile(r"\w+")
# Words of a text outside escapes; in the source of a format outside its fields, too.
_TEXT = re.compile(r"\\.|(\w+)")
_FORMAT = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}|\\.|(\w+)")
_MAX_NUMBER = 10**15
_MAX_LONGER = 2  # signs of a word that may stand for another
_LOWER = 3.0  # times as often a digit becomes a lower one: most of a test's are low
_UNKNOWN = object()

Place = tuple[int, int]  # the number of a line, and a column in bytes
Edit = tuple[Place, Place, str]
Leaf = ast.Constant | ast.JoinedStr
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
        words: Texts and numbers of the test that may stand for one another.
        rng: Chooses among equals.
    """
    base = _wrong_output(expected, outputs)
    found = list(_orders(lines, expected, base))
    is_right = ast.unparse(expected) in outputs
    leaves = list(_leaves(expected, base))
    rng.shuffle(leaves)
    for leaf, output in leaves:
        old = text_of(lines, leaf)
        for text, is_alike in _others(leaf, old, output, words, rng):
            if _is_other(leaf, text, output):
                edit = (start_of(leaf), end_of(leaf), text)
                is_hidden = not is_right and _are_alike(old, text, outputs)
                if output is not _UNKNOWN and isinstance(leaf, ast.Constant):
                    is_hidden = output != leaf.value
                found.append(((edit,), is_alike and is_hidden))
    text = "".join(lines)
    return sorted(found, key=lambda one: (not one[1], _rarity(one[0], lines, text)))


def _rarity(edits: Sequence[Edit], lines: Sequence[str], text: str) -> int:
    """Returns by how much the file repeats a value more, or less, than the one that it replaces."""
    if len(edits) > 1:
        return 0
    ((start, end, new),) = edits
    counts = (_num_uses(value, text) for value in (between(lines, start, end), new))
    return abs(next(counts) - 1 - next(counts))


def _num_uses(value: str, text: str) -> int:
    bare = re.escape(value.strip("\"'"))
    return len(re.findall(rf"(?<!\w){bare}(?!\w)", text))


def _wrong_output(expected: ast.expr, outputs: Sequence[str]) -> Any:
    """Returns the first of the base's values that is not the expected one, if it can be read."""
    for text in outputs:
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = syntax.literal_eval(text)
            if not is_literal(expected) or ast.literal_eval(expected) != value:
                return value
    return _UNKNOWN


def _are_alike(old: str, new: str, outputs: Sequence[str]) -> bool:
    """Whether the base's outputs hold what two texts differ in both times, or neither time."""
    text = "\n".join(outputs)
    pairs = zip(_WORDS.findall(old), _WORDS.findall(new), strict=False)
    one, two = next(((one, two) for one, two in pairs if one != two), (old, new))
    return bool(_num_uses(one, text)) == bool(_num_uses(two, text))


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


def _leaves(node: ast.expr, base: Any) -> Iterator[tuple[Leaf, Any]]:
    """Yields the literals of an expected value, with the base's ones where they are known."""
    match node:
        case ast.JoinedStr() | ast.Constant(value=bool() | int() | float() | str() | bytes()):
            yield node, base if isinstance(node, ast.Constant) else _UNKNOWN
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
        case ast.Call(func=ast.Name(id="open")):
            return []  # in another mode a file would be emptied
        case ast.Call(args=args, keywords=keywords):
            parts = [node.func, *args, *(keyword.value for keyword in keywords)]
            return [(part, _UNKNOWN) for part in parts]
    return [(n, _UNKNOWN) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]


def _others(
    leaf: Leaf, text: str, output: object, words: Sequence[str], rng: Random
) -> Iterator[tuple[str, bool]]:
    """Yields the sources of values like that of a literal, the best first."""
    value = leaf.value if isinstance(leaf, ast.Constant) else None
    if isinstance(value, bool):
        yield str(not value), True
    elif isinstance(value, int | float):
        yield from _numbers(text, value, output, words, rng)
    elif isinstance(value, str) and _written(value, text[0]) == text:
        base = output if isinstance(output, str) else ""
        for other, is_alike in _texts(value, base, words, rng, _TEXT):
            yield _written(other, text[0]), is_alike
    else:  # another spelling, or a format
        start = min(text.find(quote) for quote in "\"'" if quote in text) + 1
        for other, is_alike in _texts(text[start:-1], "", words, rng, _FORMAT):
            yield text[:start] + other + text[-1], is_alike


def _written(value: str, quote: str) -> str:
    """Returns the usual source of a text between given quotes."""
    escapes: dict[str, str | int | None] = {
        "\\": "\\\\",
        "\n": "\\n",
        "\t": "\\t",
        quote: f"\\{quote}",
    }
    return f"{quote}{value.translate(str.maketrans(escapes))}{quote}"


def _numbers(
    text: str, value: float, output: object, words: Sequence[str], rng: Random
) -> Iterator[tuple[str, bool]]:
    if not _DECIMAL.fullmatch(text):
        return
    decimals = len(text.partition(".")[2])
    is_near = type(output) in (int, float) and output != value
    if isinstance(output, int | float) and is_near and abs(output) < _MAX_NUMBER:
        mirrored = 2 * output - value
        other = f"{mirrored:.{decimals}f}" if decimals else str(int(mirrored))
        yield other, mirrored >= 0 and len(other) == len(text)
        step = 10**-decimals if output > value else -(10**-decimals)
        yield f"{value + step:.{decimals}f}" if decimals else str(int(value + step)), False
    for place in range(len(text) - 1, -1, -1):
        if text[place] in "123456789" or text == "0":
            yield from (
                (other, not is_near) for other in _with_other_digits(text, place, words, rng)
            )


def _texts(
    value: str, base: str, words: Sequence[str], rng: Random, words_of: re.Pattern[str]
) -> Iterator[tuple[str, bool]]:
    """Yields texts like another.

    Args:
        value: The text.
        base: The base's text; "" if that is not known.
        words: Words that may stand for one another.
        rng: Chooses among equals.
        words_of: Finds words that may change, as its first group.
    """
    if base and (forgiving := _lenient(value, base)):  # wrong in case, blanks or signs alone
        yield from ((other, False) for other in forgiving)
        return
    wrong = _wrong_places(value, base) if base else {*range(len(value))}
    found = [match for match in words_of.finditer(value) if match[1]]
    own = {word[0] for word in found}
    digits = [n for word in found for n in range(*word.span()) if value[n] in "123456789"]
    digits = [place for place in digits if place in wrong] or digits
    for place in rng.sample(digits, min(3, len(digits))):
        for other in _with_other_digits(value, place, words, rng):
            # Texts count from one, so that a reader prefers it.
            yield other, place in wrong and "1" not in (value[place], other[place])
    spans = [word.span() for word in found if not word[0].isdecimal()]
    spans = [span for span in spans if not wrong.isdisjoint(range(*span))]
    if _PHRASE.fullmatch(value):
        spans = [(0, len(value)), *spans]
    for start, end in rng.sample(spans, min(3, len(spans))):
        like = [word for word in words if _is_similar(word, value[start:end])]
        like = [word for word in like if word != base and word not in own]
        is_alike = words.count(value[start:end]) > 1  # elsewhere in the test, as all others
        for word in rng.sample(like, min(3, len(like))):
            yield f"{value[:start]}{word}{value[end:]}", is_alike
    letters = [n for word in found for n in (word.start(), word.end() - 1) if value[n].isalpha()]
    for place in rng.sample(letters, min(2, len(letters))):
        yield _with_other_letter(value, place, rng), False
    if not letters and not digits:
        yield f"{value}.", False


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
    """Whether two words, which differ, have the same kinds of signs and about the same length."""
    return one != two and _shape(one) == _shape(two) and abs(len(one) - len(two)) <= _MAX_LONGER


def _shape(text: str) -> str:
    text = re.sub(r"[^\W\d_]+", lambda word: "A" if word[0][0].isupper() else "a", text)
    return re.sub(r"\d+", "0", text)


def _with_other_digits(text: str, place: int, words: Sequence[str], rng: Random) -> list[str]:
    """Returns a text with other digits at a place, drawn as often as they are in some words.

    A reader cannot prefer the smaller number, or the digit that the test has elsewhere.
    """
    digits = [digit for digit in "123456789" if digit != text[place]]
    uses = [sum(word.count(digit) for word in words) + 0.3 for digit in digits]
    weights = [
        number * (_LOWER if digit < text[place] else 1)
        for number, digit in zip(uses, digits, strict=True)
    ]
    new = dict.fromkeys(rng.choices(digits, weights, k=3))
    return [f"{text[:place]}{digit}{text[place + 1 :]}" for digit in new]


def _with_other_letter(text: str, place: int, rng: Random) -> str:
    new = rng.choice("aeiounrst")
    new = new.upper() if text[place].isupper() else new
    return f"{text[:place]}{new}{text[place + 1 :]}"


def _is_other(leaf: Leaf, text: str, output: object) -> bool:
    """Whether a source is that of another value of the same type, and not of the base's output."""
    if isinstance(leaf, ast.JoinedStr):
        return _fields(text) == _fields(ast.unparse(leaf))
    try:
        other = syntax.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return type(other) is type(leaf.value) and other not in (leaf.value, output)


def _fields(text: str) -> list[str] | None:
    """Returns the fields of a format; None where it is none."""
    try:
        tree = syntax.parse_expression(text)
    except (ValueError, SyntaxError):
        return None
    return [ast.dump(n) for n in ast.walk(tree) if isinstance(n, ast.FormattedValue)]


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
