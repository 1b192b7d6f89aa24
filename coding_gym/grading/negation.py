"""Finds the checks of test functions, and the units that can negate them.

Checks are assert statements, calls of assert methods and ``with raises`` blocks, except on branches
(``if``, ``while``, ``match``, ``try`` with ``except``), because a correct program may take another
branch.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from coding_gym import syntax
from coding_gym.grade import Level
from coding_gym.grading.challenge import Unit
from coding_gym.grading.wrong_values import is_literal, near_misses, unlikely_value
from coding_gym.source_text import Edit, SourceText, apply_edits
from coding_gym.syntax import Function

RECORDER = "__checks__"
"""Name of the list of checks (context managers) in the test process, set by `inside/plugin.py`."""
_MAX_NEAR_MISSES = 5  # per expected value; each may need a run with the gold patch
_OPPOSITES = (
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
    **{right: left for left, right in _OPPOSITES},
    "assert_called_once": "assert_not_called",
}
_EQUALITY = re.compile(
    r"((assert|check|expect|verify)_?(?!.*(not|greater|less|unequal)).*)?(equals?|same)|assert_allclose",
    re.IGNORECASE,
)
_CALLED_WITH = re.compile(r"assert_(called|awaited)(_once)?_with")
_RAISES = {"raises", "assertRaises", "assertRaisesRegex", "assert_raises", "assert_raises_regex"}
_WARNS = {"warns", "assertWarns", "assertWarnsRegex", "assert_warns"}
# Names of functions that assert. Only whole words of a name match, so `checkout` does not.
_ASSERTS = re.compile(r"assert|(^|_)(check|verify|expect|same|equals?)(_|$|(?=[A-Z]))")
_SUPPRESSES = re.compile(r"suppress|raises|warns", re.IGNORECASE)
# Names of functions and methods that compare with a tolerance.
_TOLERANT = re.compile(r"almost|approx|close", re.IGNORECASE)
_TOLERANCES = {"rtol", "atol", "tol", "rel_tol", "abs_tol", "tolerance", "delta", "places"}
# Assertions that compare exactly. Other functions are not listed, as they can have a tolerance.
_EXACT = re.compile(r"assert |self\.assert(Count|Dict|List|MultiLine|Sequence|Set|Tuple)?Equals?\(")


Operands = tuple[ast.expr | None, ast.expr | None]
"""The actual and the expected value of an assertion; None for each unknown value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One assertion of a test function.

    Attributes:
        node: The statement.
        path: The path of the test file.
        offset: The offset, in characters of the file's text, at which the recorder is inserted.
        actual: The expression of the program's value; None if this expression is not known.
        expected: The expression of the expected value; None if this expression is not known.
    """

    node: ast.stmt
    path: str
    offset: int
    actual: ast.expr | None = None
    expected: ast.expr | None = None

    def recorded(self, number: int) -> Edit:
        """Returns the edit that makes an item of `RECORDER` record the outcome of the check.

        The edit is part of both versions, so it does not reveal the negation.
        """
        recorder = f"{RECORDER}[{number}]"
        text = f"{recorder}, " if isinstance(self.node, ast.With) else f"with {recorder}: "
        return Edit(self.path, self.offset, self.offset, text)

    @property
    def is_exact(self) -> bool:
        """Whether the check compares two values without a tolerance."""
        text = ast.unparse(self.node)
        return bool(self.actual and _EXACT.match(text) and not _TOLERANT.search(text))

    @property
    def has_tolerance(self) -> bool:
        """Whether a call sets the tolerance of the check, so that a near miss could pass, too."""
        calls = [node for node in ast.walk(self.node) if isinstance(node, ast.Call)]
        tolerant = [call for call in calls if _TOLERANT.search(_called(call))]
        has_more = (c.keywords or len(c.args) > 1 + (_called(c) != "approx") for c in tolerant)
        return any(has_more) or any(k.arg in _TOLERANCES for c in calls for k in c.keywords)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The column of a parameter table (``pytest.mark.parametrize``) that holds expected values.

    Attributes:
        name: The name of the parameter.
        cells: The expected values, by row.
        ids: The edit that gives rows neutral ids, if their ids reveal the expected values; or ().
    """

    name: str
    cells: tuple[ast.expr, ...]
    ids: tuple[Edit, ...]


@dataclass(slots=True)
class TestFile:
    """A test file as Python source.

    Attributes:
        path: The path relative to the root of the task's tree.
        source: The text of the file.
        tree: The syntax tree of the text.
    """

    __test__ = False  # pytest collects classes called Test*

    path: str
    source: SourceText
    tree: ast.Module

    @classmethod
    def read(cls, path: str, data: bytes) -> "TestFile | None":
        """Returns a test file; None if it is not UTF-8 or not valid Python of this version."""
        text = data.decode("utf-8-sig", "surrogateescape")
        tree = syntax.parse_or_none(text)  # None for text with surrogates
        return None if tree is None else cls(path, SourceText(text), tree)

    def node(self, name: str) -> Function | None:
        """Returns the function of a test, from its class or the first base that defines it.

        Args:
            name: The qualified name of the test: ``CLASS::FUNCTION``.

        Returns:
            The function; None unless this file has exactly one such function.
        """
        *classes, function = name.split("::")
        owners = ["::".join(classes)]
        for owner in owners:  # the loop appends the bases of each class
            scope = self._class(owner)
            body = scope.body if scope else []
            functions = [n for n in body if isinstance(n, Function) and n.name == function]
            if functions:
                return functions[0] if len(functions) == 1 else None
            bases = scope.bases if isinstance(scope, ast.ClassDef) else []
            names = [base.id for base in bases if isinstance(base, ast.Name)]
            owners += [name for name in names if name not in owners]
        return None

    def replaced(self, node: ast.expr, text: str) -> Edit:
        """Returns the edit that replaces an expression by ``text``."""
        return Edit(self.path, *self.source.span(node), text)

    def after(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Returns the edit that inserts ``text`` after a node."""
        end = self.source.span(node)[1]
        return Edit(self.path, end, end, text)

    def is_valid(self, node: Function, edits: Sequence[Edit]) -> bool:
        """Returns whether a function is valid Python after some edits."""
        span = self.source.line_span(*_scope(node))
        text = apply_edits(self.source.text, edits, span=span, keeps_lines=True)
        beginning = "if True:\n" if node.col_offset else ""
        return syntax.parse_or_none(beginning + text) is not None

    def checks(self, node: Function) -> list[Check]:
        """Returns the checks of a function.

        If the function has no assertion, its last statement is its only check.
        """
        nodes = list(syntax.nodes_of_function(node))
        if any(isinstance(child, ast.Yield | ast.YieldFrom) for child in nodes):
            return []
        if any(map(_is_check, nodes)):
            return list(self._checks(node.body))
        last = node.body[-1]
        if not isinstance(last, ast.Expr | ast.Assign) or not self._begins_line(last):
            return []
        offset = self.source.span(last)[0]
        return [Check(node=last, path=self.path, offset=offset)]

    def negations(
        self, node: Function, check: Check, outputs: Sequence[str], rng: Random
    ) -> Iterator[Unit]:
        """Yields candidate units that negate a check, the best first.

        Args:
            node: The function.
            check: The check.
            outputs: ``repr`` of values that the base compares in the check.
            rng: Source of random choices.
        """
        expected = self._bound_once(node, check.expected) if check.expected else None
        if expected is not None:
            yield from self._near_misses(node, expected, [check], outputs, rng)
        yield from self._other_errors(check.node)
        if (value := _wanted_value(node, check)) is not None:
            yield from self._unlikely(value, [check], rng)
        yield from self._reversals(check.node)
        if isinstance(check.node, ast.Expr | ast.Assign):  # the comparison may not be known
            left, right = rng.sample(range(2, 400), 2)
            edit = self.after(check.node, f"; assert {left} == {right}")
            yield Unit(level=Level.KNOWN, edits=(edit,))

    def other_cells(
        self,
        node: Function,
        cell: ast.expr,
        checks: Sequence[Check],
        outputs: Sequence[str],
        rng: Random,
    ) -> Iterator[Unit]:
        """Yields candidate units that replace a table's cell, which ``checks`` expect."""
        yield from self._near_misses(node, cell, checks, outputs, rng)
        yield from self._unlikely(cell, checks, rng)

    def _near_misses(
        self,
        node: Function,
        expected: ast.expr,
        checks: Sequence[Check],
        outputs: Sequence[str],
        rng: Random,
    ) -> Iterator[Unit]:
        if any(check.has_tolerance for check in checks):
            return
        # A result that varies between the runs is often once True and once False.
        is_bool = isinstance(expected, ast.Constant) and isinstance(expected.value, bool)
        is_proof = all(c.is_exact for c in checks) and is_literal(expected) and not is_bool
        misses = near_misses(self.path, self.source, _scope(node), expected, outputs, rng)
        for unit in misses[:_MAX_NEAR_MISSES]:
            yield replace(unit, is_proof=is_proof)

    def _unlikely(self, value: ast.expr, checks: Sequence[Check], rng: Random) -> Iterator[Unit]:
        """Yields units that expect an improbable value, also a negative one.

        Objects that equal or contain every value pass this check, but they fail a reversed check.
        """
        is_proof = all(check.is_exact for check in checks) and is_literal(value)
        text = unlikely_value(value, rng)
        for new_text in (text, f"-{text}") if text.isdecimal() else (text,):
            edit = self.replaced(value, new_text)
            yield Unit(level=Level.KNOWN, edits=(edit,), is_proof=is_proof)

    def table(self, node: Function, checks: Sequence[Check]) -> Table | None:
        """Returns the table of a function, if a parameter serves only as an expected value."""
        decorators = [item for item in node.decorator_list if isinstance(item, ast.Call)]
        calls = [call for call in decorators if _called(call) == "parametrize"]
        if len(calls) != 1:
            return None
        (call,) = calls
        expected_names = _only_expected(node, checks)
        for name, column, rows in _columns(call):
            if name in expected_names:
                ids: tuple[Edit, ...] = ()
                if not call.keywords and not any(map(_has_id, rows)):
                    neutral_ids = [f"row{number}" for number in range(len(column))]
                    ids = (self.after(call.args[1], f", ids={neutral_ids}"),)
                return Table(name=name, cells=column, ids=ids)
        return None

    def _checks(self, body: Sequence[ast.stmt]) -> Iterator[Check]:
        make = partial(Check, path=self.path)
        for statement in body:
            match statement:
                case ast.With(items=items) if _raises_items(items):
                    offset = self.source.span(items[0].context_expr)[0]
                    if self.source.before(offset).split() == ["with"]:  # room for an item
                        yield make(node=statement, offset=offset)
                case ast.With(body=block) | ast.AsyncWith(body=block) if not _suppresses(statement):
                    yield from self._checks(block)
                case ast.Try(body=block, handlers=[], finalbody=final_block):
                    yield from self._checks([*block, *final_block])
                case ast.For(body=block) | ast.AsyncFor(body=block) if not _can_skip(statement):
                    yield from self._checks(block)
                case ast.Assert() | ast.Expr() if self._begins_line(statement):
                    operands = _operands(statement)
                    if operands is not None:
                        offset = self.source.span(statement)[0]
                        actual, expected = operands
                        yield make(node=statement, offset=offset, actual=actual, expected=expected)

    def _begins_line(self, node: ast.stmt) -> bool:
        return not self.source.before(self.source.span(node)[0]).strip()

    def _bound_once(self, node: Function, expected: ast.expr) -> ast.expr:
        """Returns the value of a name that is assigned and read once; else ``expected``."""
        if not isinstance(expected, ast.Name):
            return expected
        uses = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == expected.id]
        values: list[ast.expr] = []
        for child in syntax.nodes_of_function(node):
            match child:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == expected.id:
                    values.append(value)
        is_bound_once = len(values) == 1 and len(uses) == 2  # the assignment and the check
        return values[0] if is_bound_once else expected

    def _other_errors(self, statement: ast.stmt) -> Iterator[Unit]:
        """Yields units that expect an error that no program raises."""
        for call, is_named in _raises_calls(statement):
            if is_named:  # a later statement can use the exception variable
                continue
            expected = call.args[0]
            base = "Warning" if _called(call) in _WARNS else "Exception"
            edit = self.replaced(expected, f"type('Other', ({base},), {{}})")
            yield Unit(level=Level.KNOWN, edits=(edit,))

    def _reversals(self, statement: ast.stmt) -> Iterator[Unit]:
        match statement:
            case ast.Assert(test=test):
                edit = self.replaced(test, f"not ({self.source.segment(test)})")
                yield Unit(level=Level.KNOWN, edits=(edit,))
            case ast.Expr(value=ast.Call() as call) if (name := _called(call)) in _OPPOSITE_OF:
                end = self.source.span(call.func)[1]
                edit = Edit(self.path, end - len(name), end, _OPPOSITE_OF[name])
                yield Unit(level=Level.KNOWN, edits=(edit,))

    def _class(self, qualified_name: str) -> ast.Module | ast.ClassDef | None:
        """Returns the class of a qualified name; the module for ""; None if 0 or several match."""
        node: ast.Module | ast.ClassDef = self.tree
        for name in filter(None, qualified_name.split("::")):
            classes = [n for n in node.body if isinstance(n, ast.ClassDef) and n.name == name]
            if len(classes) != 1:
                return None
            (node,) = classes
        return node


def names_in(check: Check) -> set[str]:
    """Returns the names in the expected value of a check."""
    nodes = ast.walk(check.expected) if check.expected else ()
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def subject_of(actual: ast.expr | None) -> str:
    """Returns the name of the function or attribute whose value is compared; "" if unknown."""
    match actual:
        case ast.Call(func=ast.Name(id=name)) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Await(value=inner) | ast.Subscript(value=inner):
            return subject_of(inner)
    return ""


def _scope(node: Function) -> tuple[int, int]:
    return syntax.first_line(node), node.end_lineno or node.lineno


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.With(items=items):
            return bool(_raises_items(items))
        case ast.Assert() | ast.Expr():
            return _operands(node) is not None
    return False


def _operands(statement: ast.Assert | ast.Expr) -> Operands | None:
    """Returns the operands of an assertion; None if a statement is no assertion."""
    match statement:
        case ast.Assert(test=test):
            return _compared(test)
        case ast.Expr(value=(ast.Call() as call) | ast.Await(value=ast.Call() as call)):
            name = _called(call)
            if name in _RAISES | _WARNS and len(call.args) > 1:
                return None, None
            if _is_assertion(call):
                return _operands_of_call(call)
    return None


def _operands_of_call(call: ast.Call) -> Operands:
    """Returns the operands of a call that asserts; many values may pass an unknown assertion."""
    name, args = _called(call), [arg for arg in call.args if not isinstance(arg, ast.Starred)]
    if _CALLED_WITH.fullmatch(name):
        literals = [arg for arg in args if is_literal(arg)]
        return None, next(reversed(literals or args), None)
    if not _EQUALITY.fullmatch(name) or len(args) < 2:
        return None, None
    left, right = args[:2]
    expected = _expected_operand(left, right)
    return left if right is expected else right, expected


def _is_assertion(call: ast.Call) -> bool:
    """Returns whether the called function is an assertion, according to its name."""
    name = _called(call)
    match call.func:
        case ast.Name() | ast.Attribute(value=ast.Name(id="self" | "cls")):
            return bool(_ASSERTS.search(name))
    return name.startswith("assert")  # a method with another name can belong to the program


def _wanted_value(function: Function, check: Check) -> ast.expr | None:
    """Returns the value with which a check compares, or for which it searches; None if unknown."""
    match check.node:
        case ast.Expr(value=(ast.Call() as call) | ast.Await(value=ast.Call() as call)):
            return check.expected if check.actual else _literal_beside_value(function, call)
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.In()])):
            return left
        case ast.Assert(test=ast.Compare(ops=[ast.Is()])):
            return None
    return check.expected if check.actual is not None else None


def _literal_beside_value(function: Function, call: ast.Call) -> ast.expr | None:
    """Returns the last literal argument of a call, if another one is a value of the program.

    Otherwise the literal may be input of the program, and another repair may accept more input.
    """
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    variables = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    nodes = [node for arg in call.args for node in ast.walk(arg)]
    has_value = any(isinstance(n, ast.Call) or getattr(n, "id", "") in variables for n in nodes)
    literals = [arg for arg in call.args if is_literal(arg)]
    has_value |= _called(call).startswith(("assert_any_", "assert_has_"))  # of mocks
    return literals[-1] if literals and has_value and _is_assertion(call) else None


def _compared(test: ast.expr) -> Operands:
    """Returns the actual and the expected value of a comparison; None for each unknown value."""
    match test:
        case ast.BoolOp(op=ast.And(), values=[*_, last]):
            return None, _compared(last)[1]
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            expected = _expected_operand(left, right)
            return (right if expected is left else left), expected
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant() as right]):
            return left, right
    return None, None


def _expected_operand(left: ast.expr, right: ast.expr) -> ast.expr:
    """Returns the expected value of a comparison: ``right``, unless only ``left`` is a literal."""
    match right:
        case ast.Call(
            func=ast.Attribute(attr="approx") | ast.Name(id="approx"), args=[value], keywords=[]
        ):
            return value  # the tolerance of ``approx`` stays in use
    return left if is_literal(left) and not is_literal(right) else right


def _can_skip(loop: ast.stmt) -> bool:
    """Returns whether a loop may end, or go on, before a check in its body."""
    return any(isinstance(node, ast.Break | ast.Continue) for node in ast.walk(loop))


def _suppresses(statement: ast.With | ast.AsyncWith) -> bool:
    """Returns whether a ``with`` block may suppress a failure inside it."""
    items = (ast.unparse(item.context_expr) for item in statement.items)
    return any(map(_SUPPRESSES.search, items))


def _raises_items(items: Sequence[ast.withitem]) -> list[tuple[ast.Call, bool]]:
    """Returns the calls that expect an error, and whether each is bound to a name by ``as``."""
    return [
        (item.context_expr, item.optional_vars is not None)
        for item in items
        if isinstance(item.context_expr, ast.Call)
        and item.context_expr.args
        and _called(item.context_expr) in _RAISES | _WARNS
    ]


def _raises_calls(statement: ast.stmt) -> list[tuple[ast.Call, bool]]:
    """Returns the calls of a statement that expect an error, as `_raises_items` does."""
    match statement:
        case ast.With(items=items):
            return _raises_items(items)
        case ast.Expr(value=ast.Call(args=[_, _, *_]) as call) if _called(call) in _RAISES | _WARNS:
            return [(call, False)]
    return []


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _only_expected(node: Function, checks: Sequence[Check]) -> set[str]:
    """Returns the names that a function uses only in expected values."""
    expected = {child for check in checks if check.expected for child in ast.walk(check.expected)}
    names_of_expected = {child.id for child in expected if isinstance(child, ast.Name)}
    other_nodes = {*ast.walk(node)} - expected
    return names_of_expected - {n.id for n in other_nodes if isinstance(n, ast.Name)}


def _columns(call: ast.Call) -> Iterator[tuple[str, tuple[ast.expr, ...], list[ast.expr]]]:
    """Yields the columns of a literal parameter table: name, cells, and the rows of the table."""
    match call:
        case ast.Call(
            args=[names, ast.List(elts=rows) | ast.Tuple(elts=rows)],
            keywords=[] | [ast.keyword(arg="ids", value=ast.List() | ast.Tuple())],
        ):
            parameters = _parameter_names(names)
            cells = [_cells(row, len(parameters)) for row in rows]
            is_uniform = len(set(map(_has_id, rows))) == 1  # all rows have an id, or none has
            if is_uniform and all(len(row) == len(parameters) for row in cells):
                columns = zip(*cells, strict=True)
                for name, column in zip(parameters, columns, strict=True):
                    yield name, column, rows


def _has_id(row: ast.expr) -> bool:
    return isinstance(row, ast.Call) and any(keyword.arg == "id" for keyword in row.keywords)


def _parameter_names(names: ast.expr) -> list[str]:
    match names:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [str(part.value) for part in parts if isinstance(part, ast.Constant)]
    return []


def _cells(row: ast.expr, num_parameters: int) -> list[ast.expr]:
    """Returns the values in a row of a parameter table; an empty list if they are not known."""
    match row:
        case ast.Call(func=ast.Attribute(attr="param"), args=cells, keywords=keywords) if all(
            keyword.arg == "id" for keyword in keywords
        ):
            return cells
        case ast.Tuple(elts=cells) | ast.List(elts=cells) if num_parameters > 1:
            return cells
        case ast.Starred() | ast.Call(func=ast.Attribute(attr="param")):
            return []
    return [row]
