"""Ways to break a program, by name. Imported only on use: it needs libcst.

An operator looks at one node of a syntax tree and yields edits, each of which alone makes another
program that still looks as its author wrote it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

from coding_gym.tasks.synthesis.operators import (
    calls,
    conditions,
    constants,
    exceptions,
    loops,
    names,
    statements,
    texts,
)
from coding_gym.tasks.synthesis.source import Edit, Place

Operator = Callable[[Any, Place], Iterator[Edit]]

# A name may have several kinds of node; what each function does is in its docstring.
OPERATORS: tuple[tuple[str, type[cst.CSTNode], Operator], ...] = (
    ("comparison", cst.ComparisonTarget, conditions.swap_comparison),
    ("boundary", cst.ComparisonTarget, conditions.move_boundary),
    ("boolean", cst.BooleanOperation, conditions.swap_boolean),
    ("boolean", cst.UnaryOperation, conditions.drop_not),
    ("branch", cst.IfExp, conditions.swap_branches),
    ("arithmetic", cst.BinaryOperation, constants.swap_arithmetic),
    ("arithmetic", cst.AugAssign, constants.swap_augmented),
    ("constant", cst.Integer, constants.move_integer),
    ("constant", cst.Name, constants.flip_truth),
    ("default", cst.Param, constants.change_default),
    ("slice", cst.Slice, constants.move_slice),
    ("slice", cst.Index, constants.move_index),
    ("argument_order", cst.Call, calls.swap_arguments),
    ("missing_argument", cst.Call, calls.drop_argument),
    ("alias", cst.Call, calls.alias_copy),
    ("alias", cst.Subscript, calls.alias_slice),
    ("wrong_variable", cst.Name, names.other_variable),
    ("wrong_attribute", cst.Attribute, names.other_attribute),
    ("removed_guard", cst.If, statements.remove_guard),
    ("removed_statement", cst.SimpleStatementLine, statements.remove_statement),
    ("early_return", cst.SimpleStatementLine, statements.return_early),
    ("exception_class", cst.Raise, exceptions.raise_other),
    ("exception_class", cst.ExceptHandler, exceptions.catch_other),
    ("loop", cst.SimpleStatementLine, loops.swap_jump),
    ("loop", cst.Call, loops.shift_range),
    ("loop", cst.For, loops.shorten_loop),
    ("string_method", cst.Call, texts.swap_method),
)
OPERATOR_NAMES = tuple(dict.fromkeys(name for name, _, _ in OPERATORS))

__all__ = ["OPERATORS", "OPERATOR_NAMES", "Operator"]
