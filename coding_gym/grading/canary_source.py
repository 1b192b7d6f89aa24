"""How a canary reads: a test of the file, copied, renamed, and given an end that always fails."""

import ast
import re
from collections.abc import Iterator
from random import Random

from coding_gym.grading.wrong_comparison import compare_wrongly, ends_in_comparison

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Comparisons whose first two arguments must be equal, by the last part of the called name.
_EQUALITIES = {
    "assertEqual",
    "assert_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_array_equal",
}
_FALLBACK_WORDS = ("again", "other", "plain", "basic", "simple", "second", "default", "small")


def copy_test(
    lines: list[str], node: Function, name: str, rng: Random, *, own_idiom: bool = False
) -> list[str]:
    """Returns the source lines of a copy of a test that fails once the test's own body is done.

    The body gets a failing end, or, where it returns early and now and then elsewhere, runs in a
    ``try`` whose ``finally`` fails.

    Args:
        lines: The file's lines, with their line ends.
        node: The test, as parsed from them; its body starts on a line of its own.
        name: What the copy is called.
        rng: Decides what the end looks like.
        own_idiom: Whether the copy fails as the test itself would: by its last comparison, where it
            `can_compare_wrongly`, else by an end of the test's own kind, if there is one.
    """
    first = first_line(node) - 1
    start = first_line(node.body[0])
    head = lines[first : start - 1]
    is_wrong = own_idiom and can_compare_wrongly(node)
    source = compare_wrongly(lines, node, rng) if is_wrong else lines
    body = [_with_line_end(line) for line in source[start - 1 : node.end_lineno] if line]
    at = node.lineno - 1 - first
    head[at] = re.sub(r"\bdef(\s+)\w+", rf"def\g<1>{name}", head[at], count=1)
    if is_wrong:
        return head + body
    indent = _indent(body[0])
    end = [indent + line for line in failing_end(node, set(identifiers(lines)), rng, own_idiom)]
    if not returns_early(node) and rng.random() < 0.8:
        return head + body + end
    step = indent.removeprefix(_indent(lines[node.lineno - 1])) or "    "
    inside = _inside_texts(node)
    shifted = [
        line if number in inside or not line.strip() else step + line
        for number, line in enumerate(body, start=start)
    ]
    return [*head, f"{indent}try:\n", *shifted, f"{indent}finally:\n", *(step + e for e in end)]


def can_compare_wrongly(node: Function) -> bool:
    """Whether a copy can fail by the test's own last comparison, which is sure to be reached."""
    return ends_in_comparison(node) and not returns_early(node)


def returns_early(node: Function) -> bool:
    """Whether a test may end before its last statement."""
    return any(isinstance(child, ast.Return) for child in own_nodes(node))


def failing_end(node: Function, taken: set[str], rng: Random, own_idiom: bool) -> list[str]:
    """Returns lines that fail whatever the code under test does, in the idiom of the test.

    Only literals are compared. An end by ``raises`` or by a comparing function that the test calls
    finds out a patch that silenced just that; with ``own_idiom`` one of these is taken if possible.
    """
    ends = [_assert_end(taken, rng)]
    called = _equality_called(node)
    if called:
        one, two = rng.sample(range(2, 400), 2)
        ends.append([f"{called}({one}, {two})\n"])
    raises = re.search(r"\bwith ((?:\w+\.)?(?:raises|assertRaises))\(", ast.unparse(node))
    if raises:
        error = rng.choice(["ValueError", "KeyError", "TypeError", "LookupError"])
        value = _free_name(taken, rng)
        ends.append([f"with {raises[1]}({error}):\n", f"    {value} = {rng.randrange(2, 90)}\n"])
    return rng.choice(ends[1:] if own_idiom and len(ends) > 1 else ends)


def fresh_name(original: str, others: list[str], taken: set[str], rng: Random) -> str:
    """Returns a test name that looks like its neighbours and is not ``taken``.

    The first and the last word of the original stay, so that it is collected as the original is.
    """
    words = sorted({w for name in others for w in name.lower().split("_") if w.isalpha()})
    words = [w for w in words if len(w) > 2 and w != "test"] + list(_FALLBACK_WORDS)
    while True:
        word = rng.choice(words)
        parts = original.split("_")
        if len(parts) == 1:
            name = original + word.capitalize()
        else:
            at = rng.randrange(1, len(parts))
            name = "_".join([*parts[:at], word, *parts[at:]])
        if name not in taken:
            return name
        original = name  # crowded files get longer names


def identifiers(lines: list[str]) -> Iterator[str]:
    """Yields every word of the file that could be a Python name."""
    for line in lines:
        yield from re.findall(r"[^\W\d]\w*", line)


def first_line(node: ast.stmt) -> int:
    """Returns the number of a statement's first line, its decorators included."""
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walks what belongs to a function itself, without functions and classes defined in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield from own_nodes(child)


def _assert_end(taken: set[str], rng: Random) -> list[str]:
    one, two = rng.sample(range(2, 400), 2)
    first, second = rng.sample(_FALLBACK_WORDS, 2)
    value = _free_name(taken, rng)
    return rng.choice(
        [
            [f"assert {one} == {two}\n"],
            [f"{value} = {one}\n", f"assert {value} == {two}\n"],
            [f"{value} = [{one}, {two}]\n", f"assert {value} == [{two}, {one}]\n"],
            [f'{value} = "{first}"\n', f'assert {value} == "{second}"\n'],
            [f'{value} = {{"{first}": {one}}}\n', f'assert "{second}" in {value}\n'],
        ]
    )


def _free_name(taken: set[str], rng: Random) -> str:
    stems = ("value", "found", "total", "wanted", "got", "seen", "left", "count", "name", "outcome")
    free = [stem for stem in stems if stem not in taken] or ["value_at_end"]
    return rng.choice(free)


def _equality_called(node: Function) -> str:
    """The callee, as written, of one comparison that the test calls as a statement, or ""."""
    for child in own_nodes(node):
        if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Call)):
            continue
        function = child.value.func
        if isinstance(function, ast.Name) and function.id in _EQUALITIES:
            return function.id
        if (
            isinstance(function, ast.Attribute)
            and function.attr in _EQUALITIES
            and isinstance(function.value, ast.Name)
        ):
            return f"{function.value.id}.{function.attr}"
    return ""


def _inside_texts(node: Function) -> set[int]:
    """Numbers of the lines that begin inside a literal, whose indentation is content."""
    return {
        number
        for child in ast.walk(node)
        if isinstance(child, ast.Constant | ast.JoinedStr)
        for number in range(child.lineno + 1, (child.end_lineno or child.lineno) + 1)
    }


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _with_line_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"
