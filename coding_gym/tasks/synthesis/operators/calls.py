"""Wrong calls: arguments in another order or missing, and copies that are none."""

from collections.abc import Iterator
from itertools import islice, pairwise

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_COPIERS = {"list", "dict", "set", "tuple"}
_COPY_METHODS = {"copy", "__copy__"}
_COPY_FUNCTIONS = {"copy", "deepcopy"}
_MAX_PAIRS = 2


def swap_arguments(node: cst.Call, place: Place) -> Iterator[Edit]:
    """Passes two neighbours in each other's place."""
    plain = [arg for arg in node.args if arg.keyword is None and not arg.star]
    for first, second in islice(pairwise(plain), _MAX_PAIRS):
        if place.source.code(first.value) != place.source.code(second.value):
            yield place.source.exchange(first.value, second.value)


def drop_argument(node: cst.Call, place: Place) -> Iterator[Edit]:
    """Forgets the last of several arguments."""
    if len(node.args) < 2:
        return
    last = node.args[-1]
    if last.star:
        return
    _, kept = place.source.whole(node.args[-2].value)
    _, end = place.source.whole(last.value)
    yield Edit(kept, end, b"")


def alias_copy(node: cst.Call, place: Place) -> Iterator[Edit]:
    """Uses the thing itself where a copy is meant."""
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value in _COPY_METHODS and not node.args:
        yield place.source.put(node, func.value)
    if len(node.args) != 1 or node.args[0].star or node.args[0].keyword:
        return
    inner = node.args[0].value
    name = func.attr.value if isinstance(func, cst.Attribute) else ""
    is_copy = isinstance(func, cst.Name) and func.value in _COPIERS | _COPY_FUNCTIONS
    if is_copy or (name in _COPY_FUNCTIONS and place.source.code(func).startswith("copy.")):
        yield place.source.put(node, _alone(inner, place))


def alias_slice(node: cst.Subscript, place: Place) -> Iterator[Edit]:
    """Uses the list itself where ``[:]`` copies it."""
    if len(node.slice) == 1 and isinstance(cut := node.slice[0].slice, cst.Slice):
        is_target = isinstance(place.parent, cst.AssignTarget | cst.Del)
        if cut.lower is None and cut.upper is None and not is_target:
            yield place.source.put(node, node.value)


def _alone(node: cst.BaseExpression, place: Place) -> str:
    text = place.source.code(node)
    plain = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Dict)
    return text if isinstance(node, plain) or node.lpar else f"({text})"
