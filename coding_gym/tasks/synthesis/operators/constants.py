"""Wrong numbers: constants, arithmetic, defaults, slices and indices."""

from collections.abc import Iterator

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_ARITHMETIC: dict[type[cst.BaseBinaryOp], type[cst.BaseBinaryOp]] = {
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.FloorDivide,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Divide,
    cst.Modulo: cst.FloorDivide,
    cst.LeftShift: cst.RightShift,
    cst.RightShift: cst.LeftShift,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
}
_AUGMENTED: dict[type[cst.BaseAugOp], type[cst.BaseAugOp]] = {
    cst.AddAssign: cst.SubtractAssign,
    cst.SubtractAssign: cst.AddAssign,
    cst.MultiplyAssign: cst.FloorDivideAssign,
    cst.BitOrAssign: cst.BitAndAssign,
    cst.BitAndAssign: cst.BitOrAssign,
}
_TRUTH = {"True": "False", "False": "True"}
_MAX_DIGITS = 9


def swap_arithmetic(node: cst.BinaryOperation, place: Place) -> Iterator[Edit]:
    """Calculates with another operator, such as ``-`` for ``+``; texts are left alone."""
    texts = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
    if isinstance(node.left, texts) or isinstance(node.right, texts):
        return
    kind = _ARITHMETIC.get(type(node.operator))
    if kind is not None:
        yield place.source.put_operator(node.operator, kind)


def swap_augmented(node: cst.AugAssign, place: Place) -> Iterator[Edit]:
    """Counts the other way, such as ``-=`` for ``+=``, or sets what should be added."""
    kind = _AUGMENTED.get(type(node.operator))
    if kind is not None:
        yield place.source.put_operator(node.operator, kind)
    yield place.source.put(node, f"{place.source.code(node.target)} = {_text(node.value, place)}")


def move_integer(node: cst.Integer, place: Place) -> Iterator[Edit]:
    """Is one too many or one too few."""
    if isinstance(place.parent, cst.Index | cst.Slice | cst.Param) or not _is_short(node):
        return  # which have operators of their own
    yield place.source.put(node, str(node.evaluated_value + 1))
    if node.evaluated_value > 0:
        yield place.source.put(node, str(node.evaluated_value - 1))


def flip_truth(node: cst.Name, place: Place) -> Iterator[Edit]:
    """Says ``True`` for ``False``."""
    if node.value in _TRUTH and not isinstance(place.parent, cst.Param):
        yield place.source.put(node, _TRUTH[node.value])


def change_default(node: cst.Param, place: Place) -> Iterator[Edit]:
    """Has another default for a parameter."""
    default = node.default
    if isinstance(default, cst.Integer) and _is_short(default):
        yield place.source.put(default, str(default.evaluated_value + 1))
    elif isinstance(default, cst.Name) and default.value in _TRUTH:
        yield place.source.put(default, _TRUTH[default.value])
    elif isinstance(default, cst.Name) and default.value != "None":
        yield place.source.put(default, "None")
    elif isinstance(default, cst.SimpleString) and not default.prefix:
        empty = default.evaluated_value == ""
        yield place.source.put(default, '" "' if empty else '""')


def move_slice(node: cst.Slice, place: Place) -> Iterator[Edit]:
    """Cuts one too far, not far enough, or not at all on one side."""
    for field in ("lower", "upper"):
        bound: cst.BaseExpression | None = getattr(node, field)
        if bound is None:
            continue
        if isinstance(bound, cst.Integer) and _is_short(bound):
            yield place.source.put(bound, str(bound.evaluated_value + 1))
        else:
            yield place.source.put(bound, f"{_text(bound, place)} + 1")
            yield place.source.put(bound, f"{_text(bound, place)} - 1")
        if node.lower is not None and node.upper is not None:
            yield place.source.put(bound, "")


def move_index(node: cst.Index, place: Place) -> Iterator[Edit]:
    """Takes the neighbour, or the other end."""
    if place.nearest(cst.Annotation) is not None:
        return
    value = node.value
    if isinstance(value, cst.Integer) and _is_short(value):
        yield place.source.put(value, str(value.evaluated_value + 1))
        if value.evaluated_value == 0:
            yield place.source.put(value, "-1")
    elif isinstance(value, cst.UnaryOperation) and place.source.code(value) == "-1":
        yield place.source.put(value, "0")
        yield place.source.put(value, "-2")


def _is_short(node: cst.Integer) -> bool:
    return node.value.isdigit() and len(node.value) <= _MAX_DIGITS


def _text(node: cst.BaseExpression, place: Place) -> str:
    """An expression as text that may stand beside an operator or behind ``=``."""
    text = place.source.code(node)
    plain = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.BinaryOperation)
    return text if isinstance(node, plain) or node.lpar else f"({text})"
