"""Negated tests: under its own name and on its own lines, a test asks for what must not be.

A correct program fails a negated test. Only statements that every path through the test executes
are changed, an early ``return`` fails as well, all lines keep their numbers, and what a test does
after its checks still happens. Whatever changes the shape of a test is written into the plain
version too, where it asks for what is right, so that the shape does not tell the two apart.
"""

import ast
import builtins
import hashlib
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from random import Random

from coding_gym import syntax
from coding_gym.grade import Level
from coding_gym.grading.wrong_values import (
    Literal,
    Place,
    between,
    end_of,
    is_literal,
    literals_of,
    start_of,
    text_of,
    wrong_expression,
    wrong_literal,
)
from coding_gym.syntax import Function

Edit = tuple[Place, Place, str]
Editing = Callable[[Random], list[Edit]]

_LEVELS = tuple(Level)
_MAX_OF_A_KIND = 6  # candidates of one function; each takes a run with the gold patch
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
_EQUALITY = re.compile(r"assert_?(?!.*(?:not|greater|less)).*equal|assert_allclose", re.IGNORECASE)
_RAISES = {"raises", "assertRaises", "assertRaisesRegex"}
_WARNS = {"warns", "assertWarns", "assertWarnsRegex"}
_ERRORS = (
    *("ValueError", "KeyError", "TypeError", "IndexError", "RuntimeError", "AttributeError"),
    *("ZeroDivisionError", "OverflowError", "PermissionError", "BufferError"),
)
_WARNINGS = ("DeprecationWarning", "FutureWarning", "RuntimeWarning", "BytesWarning")
_CHECKING = re.compile(r"assert|check|verif|expect|same|equal", re.IGNORECASE)
_SPARING = re.compile(r"suppress|raises|warns", re.IGNORECASE)
_ATOMS = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way to negate a test.

    Attributes:
        level: How strong it is.
        edits: Gives the edits that make the test fail, by a source of draws.
        rest: Statements after the check, which must still be executed.
        check: The check that is changed; None where a failing statement is added.
        is_sure: Whether it fails with every draw; if not, the gold patch shows with which.
        table: The decorator whose parameters are changed. Its tests get other names, which do not
            say what the parameters were.
    """

    level: Level
    edits: Editing
    rest: tuple[ast.stmt, ...] = ()
    check: ast.stmt | None = None
    is_sure: bool = True
    table: ast.Call | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What is done to one function of a test file.

    Attributes:
        number: Which of its candidates.
        is_negated: Whether it is negated; if not, only its shape is that of the negated one.
        seeds: Of the draws with which it is known to fail; empty where any will do.
    """

    number: int
    is_negated: bool
    seeds: tuple[int, ...] = ()


class TestFile:
    """A test file, whose functions can be negated. It always says the same; threads may share it.

    Args:
        path: Where it lies.
        data: Its content.
        renames: Whether tests with parameters may get other names.

    Raises:
        SyntaxError, ValueError, LookupError, RecursionError: It cannot be read as Python.
    """

    __test__ = False  # pytest collects classes called Test*

    def __init__(self, path: str, data: bytes, *, renames: bool = False) -> None:
        self.path, self._renames = path, renames
        self._encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(self._encoding)
        self._has_crlf = "\r\n" in text
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            raise ValueError("a bare carriage return is a line end to the parser")
        self.tree = syntax.parse(text)
        self._lines = _split(text)
        self._candidates: dict[str, tuple[Candidate, ...]] = {}

    def place(self, name: str) -> str:
        """Returns where the function of a test is defined: in its class, or in one of its bases.

        Args:
            name: Names of the classes and of the function, ``::`` between them.

        Returns:
            The place in the same form; "" where this file does not hold exactly one.
        """
        *classes, function = name.split("::")
        body: list[ast.stmt] = self.tree.body
        for depth, class_name in enumerate(classes):
            found = [n for n in body if isinstance(n, ast.ClassDef) and n.name == class_name]
            if len(found) != 1:
                return ""
            outer = "::".join(classes[:depth])
            inherited = self._inherited(found[0], function) if depth == len(classes) - 1 else ""
            if inherited:
                return f"{outer}::{inherited}::{function}".removeprefix("::")
            body = found[0].body
        return name if len(_functions(body, function)) == 1 else ""

    def candidates(self, place: str) -> tuple[Candidate, ...]:
        """Returns the ways to negate a function, the strongest first; none for a place of "".

        Args:
            place: From `place`.
        """
        if place not in self._candidates:
            node = self._node(place)
            found = [] if node is None or _yields(node) else list(self._ways(node))
            found.sort(key=lambda w: (_LEVELS.index(w.level), not w.is_sure, bool(w.rest)))
            sound = (one for one in found if self._is_sound(place, found, one))
            kinds = groupby(sound, key=lambda one: (one.level, one.is_sure))
            self._candidates[place] = tuple(c for _, k in kinds for c in islice(k, _MAX_OF_A_KIND))
        return self._candidates[place]

    def digest(self, place: str) -> str:
        """Returns a digest of a function's syntax, the same in every Python; "" without one."""
        node = self._node(place)
        return hashlib.sha256(repr(_shape(node)).encode()).hexdigest()[:16] if node else ""

    def rewritten(self, choices: Mapping[str, Choice], rng: Random) -> bytes:
        """Returns the file with some functions negated.

        Args:
            choices: What is done, by place.
            rng: Decides what negated functions ask for; no policy may foresee it.

        Raises:
            SyntaxError: The change would leave no Python, which no candidate does by itself.
        """
        edits: list[Edit] = []
        for place, choice in choices.items():
            node = self._node(place)
            if node is not None:
                edits += self._edits(node, self.candidates(place)[choice.number], choice, rng)
        text = _applied(self._lines, edits)
        syntax.parse(text)
        return (text.replace("\n", "\r\n") if self._has_crlf else text).encode(self._encoding)

    def _edits(
        self, node: Function, candidate: Candidate, choice: Choice, rng: Random
    ) -> list[Edit]:
        """Edits of one function: those of its shape, and those that negate it."""

        def failing() -> str:
            one, two = rng.sample(range(2, 400), 2)
            return f"assert {one} == {two if choice.is_negated else one}"

        edits = [
            (start_of(one), start_of(one), f"{failing()}; ")
            for one in own_nodes(node)
            if isinstance(one, ast.Return)
        ]
        if candidate.table is not None:
            if not candidate.table.keywords:
                rows = candidate.table.args[1]
                names = rng.sample(range(10_000, 99_999), len(_rows(rows)))
                edits.append((end_of(rows), end_of(rows), f", ids={list(map(str, names))}"))
        elif candidate.check is None:
            return edits + self._end(node, failing())
        if candidate.check and candidate.rest:
            edits += self._kept(candidate.check, candidate.rest)
        if choice.is_negated:
            seeds = choice.seeds
            edits += candidate.edits(Random(rng.choice(seeds)) if seeds else rng)  # noqa: S311
        return edits

    def _kept(self, check: ast.stmt, rest: Sequence[ast.stmt]) -> list[Edit]:
        """Makes statements the clean-up of the check before them."""
        segments = "; ".join(between(self._lines, start_of(s), end_of(s)) for s in rest)
        return [
            (start_of(check), start_of(check), "try: "),
            (start_of(rest[0]), end_of(rest[-1]), f"finally: {segments}"),
        ]

    def _end(self, node: Function, text: str) -> list[Edit]:
        """Adds a statement at the end of a function; none where there is no room for it."""
        last = node.body[-1]
        while isinstance(last, ast.With | ast.AsyncWith) and not _spares(last):
            last = last.body[-1]
        if isinstance(last, ast.Return):
            return []
        if not isinstance(last, _COMPOUND):
            return [(end_of(last), end_of(last), f"; {text}")]
        line = (node.end_lineno or node.lineno) + 1
        indent = " " * node.body[0].col_offset
        if line > len(self._lines):
            place = (line - 1, len(self._lines[-1].rstrip("\n").encode()))
            return [(place, place, f"\n{indent}{text}")]
        if self._lines[line - 1].strip():
            return []
        return [((line, 0), (line, len(self._lines[line - 1].rstrip("\n"))), f"{indent}{text}")]

    def _is_sound(self, place: str, found: Sequence[Candidate], one: Candidate) -> bool:
        """Whether both versions of a function are Python, and differ."""
        node = self._node(place)
        texts = []
        for is_negated in (False, True):
            edits = self._edits(node, one, Choice(found.index(one), is_negated), Random(0))  # type: ignore[arg-type]  # noqa: S311 — no secret
            texts.append(_applied(self._lines, edits))
            try:
                syntax.parse(texts[-1])
            except SyntaxError:
                return False
        return texts[0] != texts[1]

    def _ways(self, node: Function) -> Iterator[Candidate]:
        assigned = _assigned_once(node)
        known = _assigned_once(self.tree) | assigned
        # What else than the gold patch would do with another input, only equality tells for sure.
        is_exact = all(map(_is_exact, own_nodes(node)))
        for statement, rest in _checks(node.body, (), known):
            clean_up = () if all(_is_check(s) for s in rest) else tuple(rest)
            if clean_up and (isinstance(statement, _COMPOUND) or not _are_simple(clean_up)):
                continue
            for one in _negations(self._lines, statement, assigned):
                if is_exact or one.is_sure or one.level is not Level.VALUE:
                    yield replace(one, rest=clean_up, check=statement)
        for table, cells in _columns(node) if self._renames and is_exact else ():
            edits = partial(_all_cells, self._lines, cells)
            yield Candidate(level=Level.VALUE, edits=edits, is_sure=False, table=table)
        yield Candidate(level=Level.END, edits=lambda _: [])

    def _node(self, place: str) -> Function | None:
        *classes, name = place.split("::")
        body: list[ast.stmt] = self.tree.body
        for class_name in classes:
            found = [n for n in body if isinstance(n, ast.ClassDef) and n.name == class_name]
            body = found[0].body if len(found) == 1 else []
        functions = _functions(body, name)
        return functions[0] if len(functions) == 1 else None

    def _inherited(self, owner: ast.ClassDef, function: str) -> str:
        """The base class of the file that a class has a function from; "" for its own."""
        known = {n.name: n for n in self.tree.body if isinstance(n, ast.ClassDef)}
        seen = {owner.name}
        waiting = [owner]
        while waiting:
            one = waiting.pop(0)
            if _functions(one.body, function):
                return "" if one is owner else one.name
            names = [base.id for base in one.bases if isinstance(base, ast.Name)]
            waiting += [known[name] for name in names if name in known and name not in seen]
            seen.update(names)
        return ""


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walks what belongs to a function itself, without functions and classes defined in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from own_nodes(child)


_COMPOUND = (
    Function
    | ast.ClassDef
    | ast.If
    | ast.For
    | ast.AsyncFor
    | ast.While
    | ast.With
    | ast.AsyncWith
    | ast.Try
    | ast.TryStar
    | ast.Match
)


def _split(text: str) -> list[str]:
    """Splits at line feeds only, as the parser counts lines."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _functions(body: Sequence[ast.stmt], name: str) -> list[Function]:
    return [n for n in body if isinstance(n, Function) and n.name == name]


def _yields(node: Function) -> bool:
    return any(isinstance(child, ast.Yield | ast.YieldFrom) for child in own_nodes(node))


def _applied(lines: Sequence[str], edits: Sequence[Edit]) -> str:
    """Returns a text with edits, the lines after each of them under their numbers as before."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data = "".join(lines).encode()
    for start, end, text in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
        first, last = starts[start[0] - 1] + start[1], starts[end[0] - 1] + end[1]
        missing = data[first:last].count(b"\n") - text.count("\n")
        after = data[last:]
        line_end = after.find(b"\n") + 1 or len(after)
        filling = b"\n" * max(missing, 0)
        data = data[:first] + text.encode() + after[:line_end] + filling + after[line_end:]
    return data.decode()


def _checks(
    body: Sequence[ast.stmt], outer: Sequence[ast.stmt], known: Mapping[str, ast.expr]
) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """Yields the statements that are executed whenever a body is, with what comes after them.

    The last one comes first. Names that are bound once are known.
    """
    for at in reversed(range(len(body))):
        statement, rest = body[at], [*body[at + 1 :], *outer]
        yield statement, rest
        match statement:
            case ast.With(body=inner) | ast.AsyncWith(body=inner) if not _spares(statement):
                yield from _checks(inner, rest, known)
            case ast.Try(body=inner, handlers=[]):
                yield from _checks(inner, rest, known)
            case ast.For(iter=iterable, body=inner, orelse=[]) if _runs(iterable, statement, known):
                yield from _checks(inner, rest, known)


def _spares(statement: ast.stmt) -> bool:
    """Whether a block may swallow a failure in it."""
    items = statement.items if isinstance(statement, ast.With | ast.AsyncWith) else []
    return any(_SPARING.search(ast.unparse(item.context_expr)) for item in items)


def _runs(iterable: ast.expr, loop: ast.For, known: Mapping[str, ast.expr]) -> bool:
    """Whether a loop surely comes to the end of its body once."""
    match iterable:
        case ast.Name(id=name) if name in known:
            return _runs(known[name], loop, {})
        case ast.Call(func=ast.Name(id="range"), args=[*limits]) if all(map(is_literal, limits)):
            is_filled = bool(range(*map(ast.literal_eval, limits)))
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            is_filled = any(not isinstance(one, ast.Starred) for one in elements)
        case _:
            is_filled = False
    jumps = (isinstance(one, ast.Break | ast.Continue) for one in own_nodes(loop))
    return is_filled and not any(jumps)


def _is_check(statement: ast.stmt) -> bool:
    """Whether nothing is missed where a statement is not executed."""
    match statement:
        case ast.Assert() | ast.Pass() | ast.Return() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return _CHECKING.search(name) is not None or name in _RAISES | _WARNS
        case ast.With(items=[ast.withitem(context_expr=ast.Call() as call)], body=body):
            return _called(call) in _RAISES | _WARNS or all(map(_is_check, body))
        case ast.For(body=body):
            return all(map(_is_check, body))
    return False


def _is_exact(node: ast.AST) -> bool:
    """Whether a statement is no check, or one that a single value passes."""
    match node:
        case ast.Assert(test=test):
            operators = [op for n in ast.walk(test) if isinstance(n, ast.Compare) for op in n.ops]
            return any(isinstance(one, ast.Eq | ast.Is) for one in operators)
        case ast.Expr(value=ast.Call() as call):
            name = _called(call)
            return name not in _OPPOSITE_CALLS or _EQUALITY.fullmatch(name) is not None
    return True


def _are_simple(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements can stand on one line, one after the other."""
    return (
        not any(isinstance(one, _COMPOUND) for one in statements)
        and len({one.col_offset for one in statements}) == 1
    )


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _negations(
    lines: Sequence[str], statement: ast.stmt, assigned: Mapping[str, ast.expr]
) -> Iterator[Candidate]:
    """Yields the ways to make a statement, or what follows from it, fail."""
    match statement:
        case ast.Assert(test=test):
            yield from _values(lines, test)
            yield Candidate(level=Level.POLARITY, edits=lambda rng: [_reversed(lines, test, rng)])
        case ast.Expr(value=(ast.Call() as call) | ast.Await(value=ast.Call() as call)):
            yield from _calls(lines, call)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for expression in (item.context_expr for item in items):
                if (
                    isinstance(expression, ast.Call)
                    and expression.args
                    and _called(expression) in _RAISES | _WARNS
                ):
                    yield from _other_errors(expression)
    for literal in _constants(statement, assigned):
        yield _value(lines, [literal], is_sure=False)


def _value(lines: Sequence[str], literals: Sequence[Literal], *, is_sure: bool = True) -> Candidate:
    """A way to ask for another value, by another literal in place of one of some."""

    def edits(rng: Random) -> list[Edit]:
        found = wrong_literal(lines, literals, rng)
        return [found] if found else []

    return Candidate(level=Level.VALUE, edits=edits, is_sure=is_sure)


def _of(lines: Sequence[str], expected: ast.expr) -> Iterator[Candidate]:
    """Yields a way to ask for another value than an expected one, where it has literals."""
    if plain := literals_of(expected):
        yield _value(lines, plain)


def _columns(node: Function) -> Iterator[tuple[ast.Call, tuple[ast.expr, ...]]]:
    """Yields the columns of a test's tables of parameters, the last one first."""
    for call in node.decorator_list:
        match call:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[names, table],
                keywords=[] | [ast.keyword(arg="ids")],
            ):
                is_single = isinstance(names, ast.Constant) and "," not in str(names.value)
                rows = [_cells(row, is_single=is_single) for row in _rows(table)]
                if len({len(row) for row in rows}) == 1:
                    yield from ((call, column) for column in [*zip(*rows, strict=True)][::-1])


def _rows(table: ast.expr) -> list[ast.expr]:
    return table.elts if isinstance(table, ast.List | ast.Tuple) else []


def _cells(row: ast.expr, *, is_single: bool) -> list[ast.expr]:
    match row:
        case ast.Call(func=ast.Attribute(attr="param"), args=cells):
            return cells
        case ast.Tuple(elts=cells) | ast.List(elts=cells) if not is_single:
            return cells
        case ast.Starred():
            return []
    return [row]


def _all_cells(lines: Sequence[str], cells: Sequence[ast.expr], rng: Random) -> list[Edit]:
    """Writes another value into every cell of a column; none where one of them has no literal."""
    found = [wrong_literal(lines, [*literals_of(c)] or [*_constants(c, {})], rng) for c in cells]
    return [one for one in found if one] if all(found) else []


def _assigned_once(node: Function | ast.Module) -> dict[str, ast.expr]:
    """The expressions that a function or a file binds to names, by name, where it does so once."""
    found: dict[str, list[ast.expr]] = {}
    for one in own_nodes(node):
        match one:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = list(zip(names, values, strict=False))
            case ast.Assign(targets=[name], value=value):
                pairs = [(name, value)]
            case _:
                continue
        for name, value in pairs:
            if isinstance(name, ast.Name):
                found.setdefault(name.id, []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _constants(node: ast.AST, assigned: Mapping[str, ast.expr]) -> Iterator[Literal]:
    """Yields the literals of a check, the last ones first, and of what its names stand for.

    Another literal in place of one of them makes the test ask for another value, or ask something
    else for the same value. Whether it fails so is for the gold patch to show.
    """
    match node:
        case ast.Constant(value=int() | float() | str() | bytes()) | ast.JoinedStr():
            yield node
        case ast.Name(id=name) if name in assigned:
            others = {key: value for key, value in assigned.items() if key != name}
            yield from _constants(assigned[name], others)
        case ast.Assert(test=test):
            yield from _constants(test, assigned)
        case ast.expr() | ast.Expr() | ast.keyword():
            for child in reversed(list(ast.iter_child_nodes(node))):
                yield from _constants(child, assigned)


def _values(lines: Sequence[str], test: ast.expr) -> Iterator[Candidate]:
    """Yields ways to ask a condition for another value, which need no gold patch to be known."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in reversed(parts):
                yield from _values(lines, part)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            if not _may_match_anything(left, right):
                yield from _of(lines, _expected_side(left, right))
        case ast.Compare(ops=[ast.Is()], comparators=[ast.Constant(value=bool()) as right]):
            yield from _of(lines, right)


def _reversed(lines: Sequence[str], test: ast.expr, rng: Random) -> Edit:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            # A value out of nowhere finds out what claims to equal everything.
            is_equality = isinstance(operator, ast.Eq) and not _may_match_anything(left, right)
            if is_equality and rng.random() < 0.5:
                return wrong_expression(_expected_side(left, right), rng)
            pattern, opposite = _OPPOSITE_OPERATORS[type(operator)]
            start, end = end_of(left), start_of(right)
            return start, end, re.sub(pattern, opposite, between(lines, start, end), count=1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return start_of(test), end_of(test), _grouped(lines, operand)
    return start_of(test), end_of(test), f"not {_grouped(lines, test)}"


def _grouped(lines: Sequence[str], node: ast.expr) -> str:
    text = text_of(lines, node)
    return text if isinstance(node, _ATOMS) and "\n" not in text else f"({text})"


def _calls(lines: Sequence[str], call: ast.Call) -> Iterator[Candidate]:
    """Yields ways to make a call fail that checks something."""
    name = _called(call)
    is_plain = len(call.args) > 1 and not any(isinstance(one, ast.Starred) for one in call.args)
    if name in _RAISES | _WARNS and is_plain:
        yield from _other_errors(call)
    if _EQUALITY.fullmatch(name) and is_plain:
        yield from _of(lines, _expected_side(*call.args[:2]))
    if name in _OPPOSITE_CALLS:
        line, column = end_of(call.func)
        edit = ((line, column - len(name)), (line, column), _OPPOSITE_CALLS[name])
        yield Candidate(level=Level.POLARITY, edits=lambda _: [edit])


def _other_errors(call: ast.Call) -> Iterator[Candidate]:
    """Asks for an error, or a warning, that is none of the expected ones, and no kind of them.

    A name that is none of Python's own may stand for any of them: which of the others it is not,
    the gold patch shows.
    """
    expected = call.args[0]
    wanted = expected.elts if isinstance(expected, ast.Tuple) else [expected]
    names = [one.id if isinstance(one, ast.Name) else "" for one in wanted]
    known = [one for name in names if isinstance(one := vars(builtins).get(name), type)]
    pool = _WARNINGS if _called(call) in _WARNS else _ERRORS
    fit = tuple(
        name
        for name in pool
        if not any(
            issubclass(getattr(builtins, name), k) or issubclass(k, getattr(builtins, name))
            for k in known
        )
    )
    if fit:
        yield Candidate(
            level=Level.ERROR,
            edits=lambda rng: [(start_of(expected), end_of(expected), rng.choice(fit))],
            is_sure=len(known) == len(names),
        )


def _may_match_anything(left: ast.expr, right: ast.expr) -> bool:
    """Whether the side that is not expected looks like a matcher (``ANY``, ``IsInt()``)."""
    actual = right if _expected_side(left, right) is left else left
    called = actual.func if isinstance(actual, ast.Call) else actual
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name[0].isupper() or name == "approx"
    return isinstance(called, ast.Starred)


def _expected_side(left: ast.expr, right: ast.expr) -> ast.expr:
    """The side that is expected: the right one, unless only the left one is a literal."""
    match right:
        case ast.Call(
            func=ast.Attribute(attr="approx") | ast.Name(id="approx"), args=[value], keywords=[]
        ):
            return value  # its own way to compare stays in use
    return left if is_literal(left) and not is_literal(right) else right


def _shape(part: object) -> object:
    """Returns a node with its fields, without empty ones: newer Pythons add some to old nodes."""
    if isinstance(part, ast.AST):
        fields = [(name, _shape(value)) for name, value in ast.iter_fields(part)]
        return type(part).__name__, [(name, value) for name, value in fields if value]
    if isinstance(part, list):
        return [_shape(each) for each in part]
    return repr(part) if part is not None else None
