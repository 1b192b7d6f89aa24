"""The template ``statement``: deletes, moves or exchanges whole statements."""

import ast
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site, shown
from coding_gym.repair.source import FunctionNode, first_line

_MAX_RETURNS = 3
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


def statement(site: Site) -> Iterator[Proposal]:
    """Deletes a statement, moves it, or takes another jump or return value."""
    own = site.statement
    if isinstance(own, ast.Break | ast.Continue):
        other = "continue" if isinstance(own, ast.Break) else "break"
        yield site.put(*site.source.span(own), other, 1.0)
    if isinstance(own, ast.Return):
        yield from _sister_returns(site, own)
    if isinstance(own, FunctionNode | ast.ClassDef) or not site.source.is_alone(own):
        return
    if not site.source.text.startswith("elif", site.source.span(own)[0]):
        yield _delete(site)
        yield from _move_in_block(site)
        yield from _move_out(site)
        yield from _move_in(site)


def _lines(site: Site, node: ast.stmt) -> tuple[int, int]:
    return site.source.line_span(first_line(node), node.end_lineno or node.lineno)


def _delete(site: Site) -> Proposal:
    own = site.statement
    if len(site.block) == 1:
        proposal = site.put(*site.source.span(own), "pass", 0.6)
    else:
        proposal = site.put(*_lines(site, own), "", 0.6)
    return Proposal(proposal.edits, proposal.weight, f"delete `{shown(site.source.segment(own))}`")


def _move_in_block(site: Site) -> Iterator[Proposal]:
    if site.index + 1 >= len(site.block):
        return
    following = site.block[site.index + 1]
    if isinstance(following, FunctionNode | ast.ClassDef) or not site.source.is_alone(following):
        return
    start, end = _lines(site, site.statement)
    next_start, next_end = _lines(site, following)
    text, line_end = site.source.text, site.source.newline
    below = text[next_start:next_end]
    if not below.endswith(("\n", "\r")):
        below += line_end
    moved = below + text[end:next_start] + text[start:end]
    what = f"move `{shown(site.source.segment(site.statement))}` down"
    yield Proposal((site.edit(start, next_end, moved),), 0.6, what)


def _move_out(site: Site) -> Iterator[Proposal]:
    """Moves the last statement of a block behind the compound statement that owns it."""
    owner, own = site.owner, site.statement
    is_last = site.index == len(site.block) - 1 and len(site.block) > 1
    if not isinstance(owner, _BLOCKS) or not is_last or _holds_jump(own):
        return
    indent, outer = site.source.indent(own), site.source.indent(owner)
    if indent is None or outer is None or _holds_long_text(own):
        return
    start, end = _lines(site, own)
    _, owner_end = _lines(site, owner)
    text = site.source.text
    block = text[start:end]
    if not block.endswith(("\n", "\r")):
        block += site.source.newline
    moved = text[end:owner_end] + _reindented(block, indent, outer)
    what = f"move `{shown(site.source.segment(own))}` out of its block"
    yield Proposal((site.edit(start, owner_end, moved),), 0.7, what)


def _move_in(site: Site) -> Iterator[Proposal]:
    """Moves a statement to the end of the block in front of it."""
    before = site.block[site.index - 1] if site.index else None
    own = site.statement
    if not isinstance(before, _BLOCKS) or len(site.block) == 1 or _holds_long_text(own):
        return
    last = _last_block(before)[-1]
    indent, inner = site.source.indent(own), site.source.indent(last)
    if indent is None or inner is None:
        return
    start, end = _lines(site, own)
    moved = _reindented(site.source.text[start:end], indent, inner)
    what = f"move `{shown(site.source.segment(own))}` into the block before it"
    yield Proposal((site.edit(start, end, moved),), 0.6, what)


def _last_block(node: ast.stmt) -> list[ast.stmt]:
    for name in ("finalbody", "orelse"):
        block: list[ast.stmt] = getattr(node, name, None) or []
        if block:
            return block
    handlers: list[ast.ExceptHandler] = getattr(node, "handlers", None) or []
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    return handlers[-1].body if handlers else body


def _reindented(text: str, old: str, new: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(new + line.removeprefix(old) if line.strip() else line for line in lines)


def _holds_jump(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Break | ast.Continue) for inner in ast.walk(node))


def _holds_long_text(node: ast.stmt) -> bool:
    """Whether the statement holds a string over several lines, which indenting would change."""
    return any(
        isinstance(inner, ast.Constant | ast.JoinedStr) and inner.lineno != inner.end_lineno
        for inner in ast.walk(node)
    )


def _sister_returns(site: Site, own: ast.Return) -> Iterator[Proposal]:
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
