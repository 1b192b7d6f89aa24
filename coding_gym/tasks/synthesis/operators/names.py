"""The wrong name: another variable of the function, another attribute of the object."""

import difflib
from collections.abc import Iterator

import libcst as cst

from coding_gym.tasks.synthesis.source import COMPOUND, Edit, Place

_NEVER = {"self", "cls", "_", "True", "False", "None"}
_MAX_OTHERS = 2
# By parent, the fields in which a name is read.
_READ: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Arg: ("value",),
    cst.BinaryOperation: ("left", "right"),
    cst.BooleanOperation: ("left", "right"),
    cst.Comparison: ("left",),
    cst.ComparisonTarget: ("comparator",),
    cst.Return: ("value",),
    cst.Yield: ("value",),
    cst.Subscript: ("value",),
    cst.Index: ("value",),
    cst.Slice: ("lower", "upper"),
    cst.UnaryOperation: ("expression",),
    cst.Assign: ("value",),
    cst.AugAssign: ("value",),
    cst.IfExp: ("test", "body", "orelse"),
    cst.Element: ("value",),
    cst.DictElement: ("key", "value"),
    cst.If: ("test",),
    cst.While: ("test",),
    cst.For: ("iter",),
    cst.FormattedStringExpression: ("expression",),
}


def other_variable(node: cst.Name, place: Place) -> Iterator[Edit]:
    """Reads another variable that the function has bound before, those bound last first."""
    if node.value in _NEVER or not _is_read(node, place):
        return
    statement = place.nearest(cst.SimpleStatementLine, *COMPOUND)
    at, _ = place.source.span(node if statement is None else statement)
    names = dict.fromkeys(name for name, bound_at in reversed(place.bound) if bound_at < at)
    if node.value not in names:
        return  # a global, for which no local stands in
    others = [name for name in names if name != node.value and name not in _NEVER]
    for name in others[:_MAX_OTHERS]:
        yield place.source.put(node, name)


def other_attribute(node: cst.Attribute, place: Place) -> Iterator[Edit]:
    """Reads the attribute of ``self`` whose name is nearest."""
    if not (isinstance(node.value, cst.Name) and node.value.value == "self"):
        return
    if isinstance(place.parent, cst.AssignTarget | cst.Del):
        return
    others = [name for name in place.attributes if name != node.attr.value]
    for name in difflib.get_close_matches(node.attr.value, others, n=1, cutoff=0.5):
        yield place.source.put(node.attr, name)


def _is_read(node: cst.Name, place: Place) -> bool:
    fields = _READ.get(type(place.parent), ())
    return any(getattr(place.parent, field) is node for field in fields)
