"""Missing statements: guards and effects that are gone, and returns that come too early."""

from collections.abc import Iterator, Sequence

import libcst as cst

from coding_gym.tasks.synthesis.source import Edit, Place

_LEAVING = (cst.Raise, cst.Return, cst.Continue, cst.Break)


def remove_guard(node: cst.If, place: Place) -> Iterator[Edit]:
    """Forgets an ``if`` that leaves the function or the loop early."""
    body = node.body.body
    if node.orelse is not None or not body or isinstance(place.parent, cst.If):
        return  # an `elif`, or one with an `else`
    last = body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if isinstance(small, _LEAVING) and len(body) <= 2:
        yield _without(node, place)


def remove_statement(node: cst.SimpleStatementLine, place: Place) -> Iterator[Edit]:
    """Forgets a call, or a change of something that outlives the function."""
    if len(node.body) != 1:
        return
    small = node.body[0]
    is_call = isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
    lasting = (cst.Attribute, cst.Subscript)
    is_change = isinstance(small, cst.AugAssign | cst.Del) or (
        isinstance(small, cst.Assign) and any(isinstance(t.target, lasting) for t in small.targets)
    )
    if is_call or is_change:
        yield _without(node, place)


def return_early(node: cst.SimpleStatementLine, place: Place) -> Iterator[Edit]:
    """Returns what the function returns at its end before it is complete."""
    function = place.nearest(cst.FunctionDef)
    if not isinstance(function, cst.FunctionDef) or len(node.body) != 1:
        return
    result = _result(function.body.body)
    small = node.body[0]
    if result is None or not isinstance(small, cst.Assign | cst.AugAssign | cst.Expr):
        return
    bound = [name for name, at in place.bound if at <= place.source.span(node)[0]]
    follows = list(place.parent.children)
    if result not in bound or isinstance(place.parent, cst.Module):
        return
    siblings = [n for n in follows if isinstance(n, cst.BaseStatement | cst.SimpleStatementLine)]
    after = siblings[siblings.index(node) + 1 :]
    if len(after) == 1 and isinstance(place.parents[-2], cst.FunctionDef):
        return  # nothing would be skipped
    _, last = place.source.lines(node)
    at = place.source.line_start(last + 1)
    indent = place.source.indent(place.source.lines(node)[0]).decode()
    yield Edit(at, at, f"{indent}return {result}\n".encode())


def _result(body: Sequence[cst.CSTNode]) -> str | None:
    """The name that a function returns as its last act."""
    last = body[-1] if body else None
    if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return):
        value = last.body[-1].value
        return value.value if isinstance(value, cst.Name) else None
    return None


def _without(node: cst.If | cst.SimpleStatementLine, place: Place) -> Edit:
    """The edit that takes a statement away, with the comments above that would tell of it."""
    source = place.source
    first, last = source.lines(node)
    block = place.parent
    body = block.body if isinstance(block, cst.IndentedBlock | cst.Module) else ()
    if len(body) < 2:
        return source.put(node, "pass")
    for line in reversed(node.leading_lines):
        if line.comment is None:
            break
        first -= 1
    return Edit(source.line_start(first), source.line_start(last + 1), b"")
