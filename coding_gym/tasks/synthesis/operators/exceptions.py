"""The wrong exception: raised, or caught."""

from collections.abc import Iterator

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_OTHER = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "AttributeError": "TypeError",
    "LookupError": "ValueError",
    "OSError": "ValueError",
    "FileNotFoundError": "PermissionError",
    "NotImplementedError": "ValueError",
    "RuntimeError": "ValueError",
    "StopIteration": "IndexError",
    "UnicodeDecodeError": "UnicodeEncodeError",
    "UnicodeEncodeError": "UnicodeDecodeError",
    "OverflowError": "ZeroDivisionError",
    "ZeroDivisionError": "OverflowError",
    "ImportError": "AttributeError",
}


def raise_other(node: cst.Raise, place: Place) -> Iterator[Edit]:
    """Raises an exception of another class."""
    raised = node.exc.func if isinstance(node.exc, cst.Call) else node.exc
    if raised is not None and (name := _other(raised, place)):
        yield place.source.put(raised, name)


def catch_other(node: cst.ExceptHandler, place: Place) -> Iterator[Edit]:
    """Catches another class, or one less of several."""
    if isinstance(node.type, cst.Tuple) and len(node.type.elements) > 1:
        for kept in (node.type.elements[0], node.type.elements[-1]):
            yield place.source.put(node.type, f"{place.source.code(kept.value)},")
    elif node.type is not None and (name := _other(node.type, place)):
        yield place.source.put(node.type, name)


def _other(node: cst.BaseExpression, place: Place) -> str:
    name = place.source.code(node)
    if name in _OTHER:
        return _OTHER[name]
    is_own = name.rpartition(".")[2].endswith(("Error", "Exception"))
    return "ValueError" if is_own and name not in ("Exception", "BaseException") else ""
