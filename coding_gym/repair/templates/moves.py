"""Moves of whole statements, part of the template ``statement``."""

import ast
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site, shown
from coding_gym.repair.source import FunctionNode

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


def moves(site: Site) -> Iterator[Proposal]:
    """Moves a statement one place down, out of its block, or into the block beside it.

    A move up is the neighbour's move down.
    """
    yield from _down(site)
    if not _holds_long_text(site.statement):
        if isinstance(site.owner, _BLOCKS) and len(site.block) > 1:
            yield from _out_behind(site, site.owner)
            yield from _out_before(site, site.owner)
        yield from _into_block_before(site)
        yield from _into_block_behind(site)


def _down(site: Site) -> Iterator[Proposal]:
    following = _neighbour(site, 1)
    if following is None or isinstance(following, FunctionNode | ast.ClassDef):
        return
    if site.source.is_alone(following):
        start, end = site.whole_lines(site.statement)
        next_start, next_end = site.whole_lines(following)
        text = site.source.text
        moved = _ended(site, text[next_start:next_end]) + text[end:next_start] + text[start:end]
        yield _move(site, start, next_end, moved, "down", 0.6)


def _out_behind(site: Site, owner: ast.stmt) -> Iterator[Proposal]:
    outer = site.source.indent(owner)
    if site.index == len(site.block) - 1 and outer is not None and not _holds_jump(site.statement):
        start, end = site.whole_lines(site.statement)
        owner_end = site.whole_lines(owner)[1]
        moved = _ended(site, site.source.text[end:owner_end]) + _reindented(site, outer)
        yield _move(site, start, owner_end, moved, "behind its block", 0.7)


def _out_before(site: Site, owner: ast.stmt) -> Iterator[Proposal]:
    outer = site.source.indent(owner)
    if site.index == 0 and outer is not None and not _holds_jump(site.statement):
        start, end = site.whole_lines(site.statement)
        owner_start = site.whole_lines(owner)[0]
        moved = _reindented(site, outer) + site.source.text[owner_start:start]
        yield _move(site, owner_start, end, moved, "in front of its block", 0.7)


def _into_block_before(site: Site) -> Iterator[Proposal]:
    before = _neighbour(site, -1)
    if isinstance(before, _BLOCKS):
        inner = site.source.indent(_last_block(before)[-1])
        if inner is not None:
            start, end = site.whole_lines(site.statement)
            yield _move(site, start, end, _reindented(site, inner), "into the block before", 0.6)


def _into_block_behind(site: Site) -> Iterator[Proposal]:
    behind = _neighbour(site, 1)
    if isinstance(behind, _BLOCKS):
        inner = site.source.indent(behind.body[0])
        if inner is not None:
            start, end = site.whole_lines(site.statement)
            body_start = site.whole_lines(behind.body[0])[0]
            moved = site.source.text[end:body_start] + _reindented(site, inner)
            yield _move(site, start, body_start, moved, "into the block behind", 0.6)


def _move(site: Site, start: int, end: int, text: str, where: str, weight: float) -> Proposal:
    what = f"move `{shown(site.source.segment(site.statement))}` {where}"
    return Proposal((site.edit(start, end, text),), weight, what)


def _neighbour(site: Site, distance: int) -> ast.stmt | None:
    place = site.index + distance
    return site.block[place] if 0 <= place < len(site.block) else None


def _last_block(node: ast.stmt) -> list[ast.stmt]:
    for name in ("finalbody", "orelse"):
        block: list[ast.stmt] = getattr(node, name, None) or []
        if block:
            return block
    handlers: list[ast.ExceptHandler] = getattr(node, "handlers", None) or []
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    return handlers[-1].body if handlers else body


def _reindented(site: Site, indent: str) -> str:
    start, end = site.whole_lines(site.statement)
    lines = _ended(site, site.source.text[start:end]).splitlines(keepends=True)
    old = site.source.indent(site.statement) or ""
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
