"""Expressions: how they are read, and evaluated with the variables of a template."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from slate.errors import RenderError, TemplateSyntaxError
from slate.escaping import Safe
from slate.lexer import Token

Filter = Callable[..., Any]

_CONSTANTS = {"true": True, "false": False, "none": None}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "in": lambda item, items: item in items,
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}
_NOTHING = object()


class Missing:
    """What a name stands for that leads nowhere: false, empty, and printed as nothing."""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return ""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0


Render = Callable[["Context", list[str]], None]
"""Adds what a part of a template prints to a list of texts."""


class Context:
    """Variables in scopes, of which the innermost counts, and the blocks of templates."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._scopes: list[Mapping[str, Any]] = [variables]
        self._versions: Mapping[str, Sequence[Render]] = {}
        self._remaining: Sequence[Render] = ()

    @contextmanager
    def page(self, versions: Mapping[str, Sequence[Render]]) -> Iterator[None]:
        """Has the versions of each block, the one that counts first, for as long as it lasts."""
        outer = self._versions, self._remaining
        self._versions, self._remaining = versions, ()
        try:
            yield
        finally:
            self._versions, self._remaining = outer

    def print_block(self, name: str, out: list[str]) -> None:
        """Prints the version of a block that counts."""
        self._print(self._versions[name], out)

    def print_super(self, out: list[str]) -> None:
        """Prints the version that the one which is being printed has replaced, if there is one."""
        self._print(self._remaining, out)

    def _print(self, versions: Sequence[Render], out: list[str]) -> None:
        outer = self._remaining
        for version in versions[:1]:
            self._remaining = versions[1:]
            version(self, out)
        self._remaining = outer

    @contextmanager
    def scope(self, variables: Mapping[str, Any]) -> Iterator[None]:
        """Adds variables for as long as the scope lasts."""
        self._scopes.append(variables)
        try:
            yield
        finally:
            self._scopes.pop()

    def resolve(self, path: list[str]) -> Any:
        """What a dotted name stands for; :class:`Missing` if it leads nowhere."""
        scopes = [scope for scope in self._scopes if path[0] in scope]
        value = scopes[-1][path[0]] if scopes else _NOTHING
        for part in path[1:]:
            value = _member(value, part)
        return Missing() if value is _NOTHING else value


def _member(value: Any, part: str) -> Any:
    """An item or attribute of ``value``, or ``_NOTHING``."""
    if part.startswith("_"):
        return _NOTHING
    if isinstance(value, Mapping):
        return value.get(part, _NOTHING)
    if part.isdigit():
        try:
            return value[int(part)]
        except (IndexError, KeyError, TypeError):
            return _NOTHING
    return getattr(value, part, _NOTHING)


Expression = Callable[[Context], Any]


class ExpressionParser:
    """Reads expressions from tokens, from the loosest binding operator to the tightest.

    Args:
        tokens: as :func:`slate.lexer.tokenize` gives them.
        filters: the filters that may be used.
        line: named in errors.
    """

    def __init__(self, tokens: list[Token], filters: Mapping[str, Filter], line: int) -> None:
        self._tokens = tokens
        self._filters = filters
        self._line = line
        self._position = 0

    def expression(self) -> Expression:
        """Reads one expression."""
        parsed = self._conjunction()
        while self.accept("or"):
            parsed = _either(parsed, self._conjunction())
        return parsed

    def accept(self, *texts: str) -> str | None:
        """Steps over the next token if it is one of these words or symbols."""
        token = self._tokens[self._position]
        if token.kind in ("name", "symbol") and token.text in texts:
            self._position += 1
            return token.text
        return None

    def expect(self, *texts: str) -> None:
        """Steps over a word or symbol that must come here."""
        if not self.accept(*texts):
            raise self._error("expected " + " or ".join(texts))

    def take(self, *kinds: str) -> str:
        """Steps over a token of one of these kinds and gives its text."""
        token = self._tokens[self._position]
        if token.kind not in kinds:
            raise self._error(f"expected a {kinds[0]}")
        self._position += 1
        return token.text

    def finish(self, parsed: Expression) -> Expression:
        """Gives ``parsed`` back if nothing is left."""
        self.end()
        return parsed

    def end(self) -> None:
        """Refuses whatever is left."""
        if self._tokens[self._position].kind != "end":
            raise self._error("expected the end")

    def _error(self, message: str) -> TemplateSyntaxError:
        found = self._tokens[self._position].text
        return TemplateSyntaxError(f"{message}, got {found}", self._line)

    def _conjunction(self) -> Expression:
        parsed = self._negation()
        while self.accept("and"):
            parsed = _both(parsed, self._negation())
        return parsed

    def _negation(self) -> Expression:
        if self.accept("not"):
            negated = self._negation()
            return lambda context: not negated(context)
        left = self._filtered()
        symbol = self.accept(*_COMPARISONS)
        return _comparison(symbol, left, self._filtered()) if symbol else left

    def _filtered(self) -> Expression:
        parsed = self._primary()
        while self.accept("|"):
            name = self.take("name")
            if name not in self._filters:
                raise TemplateSyntaxError(f"unknown filter {name}", self._line)
            parsed = _application(name, self._filters[name], [parsed, *self._arguments()])
        return parsed

    def _arguments(self) -> list[Expression]:
        arguments: list[Expression] = []
        if self.accept("("):
            while not self.accept(")"):
                if arguments:
                    self.expect(",")
                arguments.append(self.expression())
        return arguments

    def _primary(self) -> Expression:
        if self.accept("("):
            parsed = self.expression()
            self.expect(")")
            return parsed
        kind = self._tokens[self._position].kind
        if kind == "number":
            text = self.take("number")
            return _constant(float(text) if "." in text else int(text))
        if kind == "string":
            unquoted = self.take("string")[1:-1]
            return _constant(Safe(_ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), unquoted)))
        path = [self.take("name")]
        if path[0] in _CONSTANTS:
            return _constant(_CONSTANTS[path[0]])
        while self.accept("."):
            path += self.take("name", "number").split(".")
        return lambda context: context.resolve(path)


def _constant(value: Any) -> Expression:
    return lambda context: value


def _either(left: Expression, right: Expression) -> Expression:
    return lambda context: left(context) or right(context)


def _both(left: Expression, right: Expression) -> Expression:
    return lambda context: left(context) and right(context)


def _comparison(symbol: str, left: Expression, right: Expression) -> Expression:
    def evaluate(context: Context) -> bool:
        try:
            return bool(_COMPARISONS[symbol](left(context), right(context)))
        except TypeError as error:
            raise RenderError(f"cannot compare by {symbol}: {error}") from error

    return evaluate


def _application(name: str, function: Filter, arguments: list[Expression]) -> Expression:
    def evaluate(context: Context) -> Any:
        values = [argument(context) for argument in arguments]
        try:
            return function(*values)
        except TypeError as error:
            raise RenderError(f"filter {name}: {error}") from error

    return evaluate
