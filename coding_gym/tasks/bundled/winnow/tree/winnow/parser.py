"""Queries into the parts that run them."""

from __future__ import annotations

from dataclasses import dataclass, field

from winnow import conditions
from winnow.conditions import Condition
from winnow.errors import QuerySyntaxError
from winnow.lexer import Token, tokenize
from winnow.operands import Operand, constant, parameter, path


@dataclass(slots=True)
class Plan:
    """What a query does.

    Attributes:
        columns: names and values of what is given; empty for the records as they are.
        condition: which records are kept.
        order: what they are sorted by, and whether downwards.
        limit: how many are given at most.
        offset: how many are passed over.
        parameters: the names of the parameters.
    """

    columns: list[tuple[str, Operand]] = field(default_factory=list)
    condition: Condition | None = None
    order: list[tuple[Operand, bool]] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0
    parameters: set[str] = field(default_factory=set)


def parse(query: str) -> Plan:
    """Reads a query.

    Raises:
        QuerySyntaxError: if it cannot be read.
    """
    return _Parser(tokenize(query)).plan()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._plan = Plan()

    def plan(self) -> Plan:
        plan = self._plan
        if self._accept("select"):
            plan.columns = self._columns()
        if self._accept("where"):
            plan.condition = self._condition()
        if self._accept("order"):
            self._expect("by")
            plan.order = self._order()
        if self._accept("limit"):
            plan.limit = self._count()
        if self._accept("offset"):
            plan.offset = self._count()
        if self._next.kind != "end":
            raise self._unexpected()
        return plan

    def _columns(self) -> list[tuple[str, Operand]]:
        columns: list[tuple[str, Operand]] = []
        while not columns or self._accept(","):
            text = self._take("path")
            name = self._take("path") if self._accept("as") else text
            columns.append((name, path(text)))
        return columns

    def _order(self) -> list[tuple[Operand, bool]]:
        keys: list[tuple[Operand, bool]] = []
        while not keys or self._accept(","):
            operand = path(self._take("path"))
            keys.append((operand, self._accept("asc", "desc") == "desc"))
        return keys

    def _count(self) -> int:
        text = self._take("number")
        if not text.isdecimal():
            raise QuerySyntaxError(f"expected a whole number from zero, got {text}")
        return int(text)

    def _condition(self) -> Condition:
        parts = [self._conjunction()]
        while self._accept("or"):
            parts.append(self._conjunction())
        return conditions.any_of(parts) if len(parts) > 1 else parts[0]

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._accept("and"):
            parts.append(self._negation())
        return conditions.all_of(parts) if len(parts) > 1 else parts[0]

    def _negation(self) -> Condition:
        if self._accept("not"):
            return conditions.opposite(self._negation())
        if self._accept("("):
            condition = self._condition()
            self._expect(")")
            return condition
        return self._test()

    def _test(self) -> Condition:
        value = self._operand()
        if self._accept("is"):
            is_negated = bool(self._accept("not"))
            self._expect("missing")
            condition = conditions.is_missing(value)
        elif symbol := self._accept("=", "!=", "<", "<=", ">", ">="):
            return conditions.comparison(symbol, value, self._operand())
        else:
            is_negated = bool(self._accept("not"))
            condition = self._membership(value)
        return conditions.opposite(condition) if is_negated else condition

    def _membership(self, value: Operand) -> Condition:
        match self._accept("in", "between", "like", "has"):
            case "in":
                return conditions.is_in(value, self._members())
            case "between":
                low = self._operand()
                self._expect("and")
                return conditions.is_between(value, low, self._operand())
            case "like":
                return conditions.matches(value, self._operand())
            case "has":
                return conditions.contains(value, self._operand())
        raise self._unexpected()

    def _members(self) -> list[Operand]:
        self._expect("(")
        members = [self._operand()]
        while self._accept(","):
            members.append(self._operand())
        self._expect(")")
        return members

    def _operand(self) -> Operand:
        if word := self._accept("true", "false"):
            return constant(word == "true")
        token = self._next
        match token.kind:
            case "text":
                operand = constant(token.text[1:-1].replace("''", "'"))
            case "number":
                operand = constant(float(token.text) if "." in token.text else int(token.text))
            case "path":
                operand = path(token.text)
            case "parameter":
                self._plan.parameters.add(token.text)
                operand = parameter(token.text)
            case _:
                raise self._unexpected()
        self._position += 1
        return operand

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self, kind: str) -> str:
        token = self._next
        if token.kind != kind:
            raise self._unexpected()
        self._position += 1
        return token.text

    def _accept(self, *texts: str) -> str:
        """Takes one of these words or symbols, if it comes next; else gives an empty text."""
        token = self._next
        if token.kind not in ("word", "symbol") or token.text not in texts:
            return ""
        self._position += 1
        return token.text

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected()

    def _unexpected(self) -> QuerySyntaxError:
        return QuerySyntaxError(f"unexpected {self._next.text}")
