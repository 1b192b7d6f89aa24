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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from random import Random

from coding_gym import syntax
from coding_gym.grade import Level
from coding_gym.grading.wrong_values import (
    Edit,
    Literal,
    between,
    end_of,
    is_literal,
    literals_of,
    start_of,
    text_of,
    unlikely_value,
    wrong_literal,
)
from coding_gym.syntax import Function

_LEVELS = tuple(Level)
_MAX_OF_A_KIND = 6  # candidates of one function; each takes a run with the gold patch
_OPPOSITES = (
    *(("==", "!="), ("<", ">="), (">", "<="), ("is", "is not"), ("in", "not in")),
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
_OPPOSITE_OF = {
    **dict(_OPPOSITES),
    **{two: one for one, two in _OPPOSITES},
    "assert_called_once": "assert_not_called",
}
_OPERATOR = re.compile(r"[=!<>]=|[<>]|\bis\b(?:\s+not\b)?|\b(?:not\s+)?in\b")
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
    edits: Callable[[Random], list[Edit]]
    rest: tuple[ast.stmt, ...] = ()
    check: ast.stmt | None = None
    is_sure: bool = True
    table: ast.Call | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """How one function is negated.

    Attributes:
        number: Which of its `TestFile.candidates`.
        seeds: Of the draws with which the gold patch fails it; empty where any will do.
        digest: Of the function's syntax, for which this holds.
    """

    number: int
    seeds: tuple[int, ...] = ()
    digest: str = ""


class TestFile:
    """A test file, whose functions can be negated. It always says the same; threads may share it.

    Args:
        data: Its content.
        renames: Whether tests with parameters may get other names.

    Raises:
        SyntaxError, ValueError, LookupError, RecursionError: It cannot be read as Python.
    """

    __test__ = False  # pytest collects classes called Test*

    def __init__(self, data: bytes, *, renames: bool = False) -> None:
        self._renames = renames
        self._encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(self._encoding)
        self._has_crlf = "\r\n" in text
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            raise ValueError("a bare carriage return is a line end to the parser")
        self.tree = syntax.parse(text)
        self._lines = io.StringIO(text).readlines()  # at line feeds only, as the parser
        self._candidates: dict[str, tuple[Candidate, ...]] = {}
        self._usable: dict[str, tuple[int, ...]] = {}
        self._digests: dict[str, str] = {}

    def place(self, name: str) -> str:
        """Returns where the function of a test is defined: in its class, or in one of its bases.

        Args:
            name: Names of the classes and of the function, ``::`` between them.

        Returns:
            The place in the same form; "" where this file does not hold exactly one.
        """
        *classes, function = name.split("::")
        waiting = ["::".join(classes)]
        for owner in waiting:  # a class, and then its bases
            found = self._class(owner)
            if found and _functions(found, function):
                place = f"{owner}::{function}".removeprefix("::")
                return place if self._node(place) else ""
            bases = found.bases if isinstance(found, ast.ClassDef) else []
            names = [base.id for base in bases if isinstance(base, ast.Name)]
            waiting += [one for one in names if one not in waiting]
        return ""

    def candidates(self, place: str) -> tuple[Candidate, ...]:
        """Returns the ways to negate a function, the strongest first; none for a place of "".

        Args:
            place: From `place`.
        """
        if place not in self._candidates:
            node = self._node(place)
            found = list(self._ways(node)) if node else []
            found.sort(key=lambda w: (_LEVELS.index(w.level), not w.is_sure, bool(w.rest)))
            self._candidates[place] = tuple(found)
        return self._candidates[place]

    def usable(self, place: str) -> tuple[int, ...]:
        """Returns which of the `candidates` leave Python that differs: the first of each kind."""
        if place not in self._usable:
            node = self._node(place)
            found = enumerate(self.candidates(place))
            sound = ((n, one) for n, one in found if node and self._is_sound(node, one))
            kinds = groupby(sound, key=lambda numbered: (numbered[1].level, numbered[1].is_sure))
            firsts = (n for _, kind in kinds for n, _ in islice(kind, _MAX_OF_A_KIND))
            self._usable[place] = tuple(firsts)
        return self._usable[place]

    def digest(self, place: str) -> str:
        """Returns a digest of a function's syntax, the same in every Python; "" without one."""
        if place not in self._digests:
            node = self._node(place)
            text = repr(_shape(node)) if node else ""
            self._digests[place] = text and hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._digests[place]

    def rewritten(
        self, negations: Mapping[str, Negation], negated: Collection[str], rng: Random
    ) -> bytes:
        """Returns the file with some functions negated.

        Args:
            negations: How functions are negated, by place; all of them get that shape.
            negated: The places of those that are negated.
            rng: Decides what these ask for; no policy may foresee it.

        Raises:
            SyntaxError: The change would leave no Python, which no usable candidate does by itself.
        """
        edits: list[Edit] = []
        for place, one in negations.items():
            if node := self._node(place):
                found = self.candidates(place)[one.number]
                edits += self._edits(node, found, rng, place in negated, one.seeds)
        text = _applied(self._lines, edits)
        syntax.parse(text)
        return (text.replace("\n", "\r\n") if self._has_crlf else text).encode(self._encoding)

    def _edits(
        self,
        node: Function,
        candidate: Candidate,
        rng: Random,
        is_negated: bool,
        seeds: Sequence[int] = (),
    ) -> list[Edit]:
        """Edits of one function: those of its shape, and those that negate it."""

        def failing() -> str:
            one, two = rng.sample(range(2, 400), 2)
            return f"assert {one} == {two if is_negated else one}"

        returns = (one for one in own_nodes(node) if isinstance(one, ast.Return))
        edits = [(start_of(one), start_of(one), f"{failing()}; ") for one in returns]
        if candidate.level is Level.END:
            return edits + self._end(node, failing())
        if candidate.table is not None and not candidate.table.keywords:
            rows = candidate.table.args[1]
            names = rng.sample(range(10_000, 99_999), len(_rows(rows)))
            edits.append((end_of(rows), end_of(rows), f", ids={list(map(str, names))}"))
        if candidate.check and candidate.rest:
            edits += self._kept(candidate.check, candidate.rest)
        if is_negated:
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
        if not (hasattr(last, "body") or isinstance(last, ast.Match)):
            return [(end_of(last), end_of(last), f"; {text}")]
        end = node.end_lineno or node.lineno
        following = "".join(self._lines[end : end + 1]).rstrip("\n")
        if following.strip():
            return []
        indent = " " * node.body[0].col_offset
        return [(end_of(node), (end + 1, len(following)), f"\n{indent}{text}")]

    def _is_sound(self, node: Function, one: Candidate) -> bool:
        """Whether both versions of a function are Python, and differ.

        Only the function is parsed: a file has as many candidates as it is long.
        """
        start, end = syntax.first_line(node) - 1, node.end_lineno or node.lineno
        if not "".join(self._lines[end : end + 1]).strip():
            end += 1  # a statement may be added on the blank line below
        head = "if True:\n" if node.col_offset else ""
        texts = []
        for is_negated in (False, True):
            edits = self._edits(node, one, Random(0), is_negated)  # noqa: S311 — no secret
            changed = io.StringIO(_applied(self._lines, edits)).readlines()
            texts.append("".join(changed[start:end]))
        try:
            for text in texts:
                syntax.parse(head + text)
        except SyntaxError:
            return False
        return texts[0] != texts[1]

    def _ways(self, node: Function) -> Iterator[Candidate]:
        if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(node)):
            return
        assigned = _assigned_once(node)
        known = _assigned_once(self.tree) | assigned
        # What else than the gold patch would do with another input, only equality tells for sure.
        is_exact = all(map(_is_exact, own_nodes(node)))
        for statement, rest in _checks(node.body, (), known):
            clean_up = () if all(map(_is_check, rest)) else tuple(rest)
            if len({one.col_offset for one in clean_up}) > 1:
                continue  # it ends blocks, too
            for one in _negations(self._lines, statement, assigned):
                if is_exact or one.is_sure or one.level is not Level.VALUE:
                    yield replace(one, rest=clean_up, check=statement)
        for table, cells in _columns(node) if self._renames and is_exact else ():
            edits = partial(_all_cells, self._lines, cells)
            yield Candidate(level=Level.VALUE, edits=edits, is_sure=False, table=table)
        yield Candidate(level=Level.END, edits=lambda _: [])

    def _class(self, place: str) -> ast.Module | ast.ClassDef | None:
        """A class of the file, which is itself at ""; None where it does not hold exactly one."""
        node: ast.Module | ast.ClassDef = self.tree
        for name in filter(None, place.split("::")):
            found = [n for n in node.body if isinstance(n, ast.ClassDef) and n.name == name]
            if len(found) != 1:
                return None
            (node,) = found
        return node

    def _node(self, place: str) -> Function | None:
        owner, _, name = place.rpartition("::")
        found = self._class(owner)
        functions = _functions(found, name) if found else []
        return functions[0] if len(functions) == 1 else None


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walks what belongs to a function itself, without functions and classes defined in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from own_nodes(child)


def _functions(owner: ast.Module | ast.ClassDef, name: str) -> list[Function]:
    return [n for n in owner.body if isinstance(n, Function) and n.name == name]


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
            return name not in _OPPOSITE_OF or _EQUALITY.fullmatch(name) is not None
    return True


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
            for one in (item.context_expr for item in items):
                if isinstance(one, ast.Call) and one.args and _called(one) in _RAISES | _WARNS:
                    yield from _other_errors(one)
    for literal in _constants(statement, assigned):
        yield from _other_values(lines, [literal], is_sure=False)


def _other_values(
    lines: Sequence[str], literals: Sequence[Literal], *, is_sure: bool = True
) -> Iterator[Candidate]:
    """Yields a way to ask for another value, by another literal in place of one of some."""
    if literals:
        edits = partial(wrong_literal, lines, literals)
        yield Candidate(level=Level.VALUE, edits=edits, is_sure=is_sure)


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
    return [edit for edits in found for edit in edits] if all(found) else []


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
        case ast.Call() if _called(node) == "open":
            return  # in another mode the file would be emptied
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
                yield from _other_values(lines, [*literals_of(_expected_side(left, right))])
        case ast.Compare(ops=[ast.Is()], comparators=[ast.Constant(value=bool()) as right]):
            yield from _other_values(lines, [right])


def _reversed(lines: Sequence[str], test: ast.expr, rng: Random) -> Edit:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            # A value out of nowhere finds out what claims to equal everything.
            is_equality = isinstance(operator, ast.Eq) and not _may_match_anything(left, right)
            if is_equality and rng.random() < 0.5:
                expected = _expected_side(left, right)
                return start_of(expected), end_of(expected), unlikely_value(expected, rng)
            start, end = end_of(left), start_of(right)
            text = between(lines, start, end)
            return start, end, _OPERATOR.sub(_opposite, text, count=1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return start_of(test), end_of(test), _grouped(lines, operand)
    return start_of(test), end_of(test), f"not {_grouped(lines, test)}"


def _opposite(operator: re.Match[str]) -> str:
    return _OPPOSITE_OF[" ".join(operator[0].split())]


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
        yield from _other_values(lines, [*literals_of(_expected_side(*call.args[:2]))])
    if name in _OPPOSITE_OF:
        line, column = end_of(call.func)
        edit = ((line, column - len(name)), (line, column), _OPPOSITE_OF[name])
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
    kinds = {name: getattr(builtins, name) for name in pool}
    fit = [
        name
        for name, kind in kinds.items()
        if not any(issubclass(kind, one) or issubclass(one, kind) for one in known)
    ]
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
