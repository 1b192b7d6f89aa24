"""Wrong conditions: comparisons, boundaries, and how conditions are joined."""

from collections.abc import Iterator

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_OTHER: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.LessThan: cst.GreaterThan,
    cst.GreaterThan: cst.LessThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThanEqual,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
}
_BOUNDARY: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.LessThan,
    cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan,
}


def swap_comparison(node: cst.ComparisonTarget, place: Place) -> Iterator[Edit]:
    """Asks the opposite, such as ``==`` for ``!=`` or ``in`` for ``not in``."""
    yield from _with_operator(node, place, _OTHER)


def move_boundary(node: cst.ComparisonTarget, place: Place) -> Iterator[Edit]:
    """Takes the boundary itself in, or leaves it out: ``<`` for ``<=``."""
    yield from _with_operator(node, place, _BOUNDARY)


def _with_operator(
    node: cst.ComparisonTarget,
    place: Place,
    table: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]],
) -> Iterator[Edit]:
    kind = table.get(type(node.operator))
    if kind is not None:
        yield place.source.put_operator(node.operator, kind)


def swap_boolean(node: cst.BooleanOperation, place: Place) -> Iterator[Edit]:
    """Joins by ``or`` what ``and`` joined, or leaves one side out."""
    kind: type[cst.CSTNode] = cst.Or if isinstance(node.operator, cst.And) else cst.And
    yield place.source.put_operator(node.operator, kind)
    yield place.source.put(node, node.left)
    yield place.source.put(node, node.right)


def drop_not(node: cst.UnaryOperation, place: Place) -> Iterator[Edit]:
    """Forgets a ``not``."""
    if isinstance(node.operator, cst.Not):
        yield place.source.put(node, node.expression)


def swap_branches(node: cst.IfExp, place: Place) -> Iterator[Edit]:
    """Gives the one value where the other is meant."""
    yield place.source.exchange(node.body, node.orelse)
