"""Formulas into nodes."""

from __future__ import annotations

from collections.abc import Callable

from cellar.address import Area, Reference
from cellar.errors import Fault, FormulaError
from cellar.lexer import Token, tokenize
from cellar.nodes import Call, Cells, Constant, Node, Operation, Percent, Prefix


def parse(formula: str) -> Node:
    """Reads a formula, which begins with ``=``.

    Raises:
        FormulaError: if it cannot be read.
    """
    return _Parser(formula).formula()


class _Parser:
    """Recursive descent, one method for each row of the table of operators."""

    def __init__(self, formula: str) -> None:
        self._formula = formula
        self._tokens = tokenize(formula)
        self._position = 0

    def formula(self) -> Node:
        node = self._comparison()
        if self._next.kind != "end":
            raise self._unexpected()
        return node

    def _comparison(self) -> Node:
        return self._chain(self._joined, "=", "<>", "<", "<=", ">", ">=")

    def _joined(self) -> Node:
        return self._chain(self._sum, "&")

    def _sum(self) -> Node:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Node:
        return self._chain(self._signed, "*", "/")

    def _signed(self) -> Node:
        sign = self._accept("+", "-")
        return Prefix(sign, self._signed()) if sign else self._power()

    def _power(self) -> Node:
        base = self._percentage()
        return Operation("^", base, self._signed()) if self._accept("^") else base

    def _percentage(self) -> Node:
        node = self._operand()
        while self._accept("%"):
            node = Percent(node)
        return node

    def _operand(self) -> Node:
        token = self._take()
        match token.kind:
            case "number":
                return Constant(_number(token.text))
            case "text":
                return Constant(token.text[1:-1].replace('""', '"'))
            case "reference" | "fault":
                return self._cells(token)
            case "function":
                return Call(token.text.upper(), self._arguments())
            case "name" if token.text.upper() in ("TRUE", "FALSE"):
                return Constant(token.text.upper() == "TRUE")
            case "name":
                return Constant(Fault.NAME)
        if token.text != "(":
            self._position -= 1
            raise self._unexpected()
        node = self._comparison()
        self._expect(")")
        return node

    def _cells(self, token: Token) -> Node:
        corners = [token]
        if self._accept(":"):
            if self._next.kind not in ("reference", "fault"):
                raise self._unexpected()
            corners.append(self._take())
        if any(corner.kind == "fault" for corner in corners):
            return Constant(Fault.REFERENCE)
        addresses = [Reference.parse(corner.text).address for corner in corners]
        return Cells(Area.between(addresses[0], addresses[-1]))

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        if self._accept(")"):
            return ()
        arguments = [self._comparison()]
        while self._accept(","):
            arguments.append(self._comparison())
        self._expect(")")
        return tuple(arguments)

    def _chain(self, operand: Callable[[], Node], *symbols: str) -> Node:
        """Operands between operators of equal rank, taken from the left."""
        node = operand()
        while symbol := self._accept(*symbols):
            node = Operation(symbol, node, operand())
        return node

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._next
        self._position += token.kind != "end"
        return token

    def _accept(self, *symbols: str) -> str:
        """Takes one of these symbols, if it comes next; else gives an empty text."""
        if self._next.kind == "symbol" and self._next.text in symbols:
            return self._take().text
        return ""

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            raise self._unexpected()

    def _unexpected(self) -> FormulaError:
        return FormulaError(f"{self._formula}: unexpected {self._next.text}")


def _number(text: str) -> float:
    return int(text) if text.isdecimal() else float(text)
