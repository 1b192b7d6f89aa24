"""Operators on whole statements: deleted, moved, exchanged, or skipped by an early return."""

import ast
from collections.abc import Iterator, Sequence

from coding_gym.mutation.sites import Change, Clause, Site, Statement
from coding_gym.syntax import Function, first_line

_MAX_RETURNS = 3
_LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


def statement(site: Site) -> Iterator[Change]:
    """Deletes a statement, moves it, or takes another jump or return value."""
    own = site.node
    if isinstance(own, Clause):
        return
    if isinstance(own, ast.Break | ast.Continue):
        other = "continue" if isinstance(own, ast.Break) else "break"
        yield site.put(*site.source.span(own), other, 1.0, "loop")
    if isinstance(own, ast.Return):
        yield from _sibling_returns(site, own)
    if isinstance(own, Function | ast.ClassDef) or not site.source.is_alone(own):
        return
    if not site.source.text.startswith("elif", site.source.span(own)[0]):
        yield _delete(site, own)
        yield from _moves(site, own)


def return_early(site: Site) -> Iterator[Change]:
    """Returns the function's result behind a statement that others follow."""
    own, function = site.node, site.function
    if function is None or not isinstance(own, ast.Assign | ast.AugAssign | ast.Expr):
        return
    result = _result(function)
    is_last = site.owner is function and site.index >= len(site.block) - 2
    is_bound = site.scope.first_bound.get(result, (site.line + 1, 0)) < (site.line + 1, 0)
    indent = site.source.indent(own)
    if is_bound and not is_last and indent is not None and site.source.is_alone(own):
        end = site.whole_lines(own)[1]
        line = f"{indent}return {result}{site.source.newline}"
        yield site.put(end, end, line, bug="early_return")


def shorten_loop(site: Site) -> Iterator[Change]:
    """Leaves out the first or the last of what a loop goes over."""
    if isinstance(site.node, ast.For) and isinstance(site.node.iter, ast.Name | ast.Attribute):
        text = site.source.segment(site.node.iter)
        for cut in ("[1:]", "[:-1]"):
            yield site.swap(site.node.iter, f"list({text}){cut}", bug="loop")


def _delete(site: Site, own: ast.stmt) -> Change:
    bug = _missing_bug(own)
    if len(site.block) == 1:
        return site.put(*site.source.span(own), "pass", 0.6, bug)
    first = first_line(own)
    while first > 1 and site.source.line(first - 1).lstrip().startswith("#"):
        first -= 1  # a comment that tells of it
    return site.put(*site.source.line_span(first, own.end_lineno or first), "", 0.6, bug)


def _missing_bug(own: ast.stmt) -> str:
    """The kind of bug that the lack of a statement is; "" where tests would hardly find it."""
    if isinstance(own, ast.If) and not own.orelse and len(own.body) <= 2:
        return "removed_guard" if isinstance(own.body[-1], _LEAVING) else ""
    lasting = (ast.Attribute, ast.Subscript)
    is_call = isinstance(own, ast.Expr) and isinstance(own.value, ast.Call)
    is_change = isinstance(own, ast.AugAssign | ast.Delete) or (
        isinstance(own, ast.Assign) and any(isinstance(t, lasting) for t in own.targets)
    )
    return "removed_statement" if is_call or is_change else ""


def _sibling_returns(site: Site, own: ast.Return) -> Iterator[Change]:
    if site.function is None or own.value is None:
        return
    own_text = site.source.segment(own.value)
    others: dict[str, None] = {}
    for node in ast.walk(site.function):
        if isinstance(node, ast.Return) and node.value is not None:
            others[site.source.segment(node.value)] = None
    others.pop(own_text, None)
    for text in list(others)[:_MAX_RETURNS]:
        yield site.swap(own.value, text, 0.6)


def _result(function: Function) -> str:
    """The name that a function returns as its last act; "" for none."""
    last = function.body[-1]
    is_named = isinstance(last, ast.Return) and isinstance(last.value, ast.Name)
    return last.value.id if is_named else ""  # type: ignore[attr-defined]


def _moves(site: Site, own: ast.stmt) -> Iterator[Change]:
    """Moves a statement one place down, out of its block, or into the block beside it.

    A move up is the neighbour's move down.
    """
    yield from _down(site, own)
    if not _holds_long_text(own):
        if isinstance(site.owner, _COMPOUND) and len(site.block) > 1:
            yield from _out_behind(site, own, site.owner)
            yield from _out_before(site, own, site.owner)
        yield from _into_block_before(site, own)
        yield from _into_block_behind(site, own)


def _down(site: Site, own: ast.stmt) -> Iterator[Change]:
    following = _neighbour(site, 1)
    if following is None or isinstance(following, Function | ast.ClassDef | Clause):
        return
    if site.source.is_alone(following):
        start, end = site.whole_lines(own)
        next_start, next_end = site.whole_lines(following)
        text = site.source.text
        after = _ended(site, text[next_start:next_end])
        yield site.put(start, next_end, after + text[end:next_start] + text[start:end], 0.6)


def _out_behind(site: Site, own: ast.stmt, owner: ast.stmt) -> Iterator[Change]:
    outer = site.source.indent(owner)
    if site.index == len(site.block) - 1 and outer is not None and not _holds_jump(own):
        start, end = site.whole_lines(own)
        owner_end = site.whole_lines(owner)[1]
        moved = _ended(site, site.source.text[end:owner_end]) + _reindented(site, own, outer)
        yield site.put(start, owner_end, moved, 0.7)


def _out_before(site: Site, own: ast.stmt, owner: ast.stmt) -> Iterator[Change]:
    outer = site.source.indent(owner)
    if site.index == 0 and outer is not None and not _holds_jump(own):
        start, end = site.whole_lines(own)
        owner_start = site.whole_lines(owner)[0]
        moved = _reindented(site, own, outer) + site.source.text[owner_start:start]
        yield site.put(owner_start, end, moved, 0.7)


def _into_block_before(site: Site, own: ast.stmt) -> Iterator[Change]:
    before = _neighbour(site, -1)
    if isinstance(before, _COMPOUND):
        inner = site.source.indent(_last_block(before)[-1])
        if inner is not None:
            yield site.put(*site.whole_lines(own), _reindented(site, own, inner), 0.6)


def _into_block_behind(site: Site, own: ast.stmt) -> Iterator[Change]:
    behind = _neighbour(site, 1)
    if isinstance(behind, _COMPOUND):
        inner = site.source.indent(behind.body[0])
        if inner is not None:
            start, end = site.whole_lines(own)
            body_start = site.whole_lines(behind.body[0])[0]
            moved = site.source.text[end:body_start] + _reindented(site, own, inner)
            yield site.put(start, body_start, moved, 0.6)


def _neighbour(site: Site, distance: int) -> Statement | None:
    place = site.index + distance
    return site.block[place] if 0 <= place < len(site.block) else None


def _last_block(node: ast.stmt) -> Sequence[ast.stmt]:
    for name in ("finalbody", "orelse"):
        block: list[ast.stmt] = getattr(node, name, None) or []
        if block:
            return block
    handlers: list[ast.ExceptHandler] = getattr(node, "handlers", None) or []
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    return handlers[-1].body if handlers else body


def _reindented(site: Site, own: ast.stmt, indent: str) -> str:
    start, end = site.whole_lines(own)
    lines = _ended(site, site.source.text[start:end]).splitlines(keepends=True)
    old = site.source.indent(own) or ""
    return "".join(indent + line.removeprefix(old) if line.strip() else line for line in lines)


def _ended(site: Site, text: str) -> str:
    """Returns whole lines, the last of which ends even at the end of the file."""
    return text if not text or text.endswith(("\n", "\r")) else text + site.source.newline


def _holds_jump(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Break | ast.Continue) for inner in ast.walk(node))


def _holds_long_text(node: ast.stmt) -> bool:
    """Whether the statement holds a string over several lines, which indenting would change."""
    return any(
        isinstance(inner, ast.Constant | ast.JoinedStr) and inner.lineno != inner.end_lineno
        for inner in ast.walk(node)
    )
