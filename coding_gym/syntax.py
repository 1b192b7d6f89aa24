"""Syntax trees of Python source, for callers on many threads."""

import ast
import os
import threading
from collections.abc import Iterator
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef

_lock = threading.RLock()  # reentrant: a finaliser or signal handler can parse during a parse


def parse(source: str | bytes) -> ast.Module:
    """Returns the syntax tree of a module; only one thread parses at a time.

    In CPython 3.11 all threads share one counter of the depth of a tree, so simultaneous calls can
    raise ``SystemError: AST constructor recursion depth mismatch``
    (https://github.com/python/cpython/issues/106905).

    Args:
        source: The text of the module, or its bytes with an optional encoding declaration.

    Raises:
        SyntaxError: The source is not Python.
        ValueError: The source has null characters.
    """
    with _lock:
        return ast.parse(source)


def parse_or_none(source: str | bytes) -> ast.Module | None:
    """Returns the result of `parse`; None if the source is not Python, or is nested too deeply."""
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_expression(source: str) -> ast.expr:
    """Returns the syntax tree of one expression, as `parse` does for a module."""
    with _lock:
        return ast.parse(source, mode="eval").body


def literal_eval(source: str) -> Any:
    """Returns the value of a literal, as `ast.literal_eval` does."""
    with _lock:
        return ast.literal_eval(source)


def first_line(node: ast.stmt) -> int:
    """Returns the number of a statement's first line, including its decorators."""
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def nodes_of_function(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function, without those of inner functions, lambdas and classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from nodes_of_function(child)


def _new_lock() -> None:
    """Replaces the lock in a forked child, which lacks the thread that holds it."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)
