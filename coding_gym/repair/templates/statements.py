"""The template ``statement``: deletes, moves or exchanges whole statements."""

import ast
from collections.abc import Iterator

from coding_gym.repair.sites import Proposal, Site, shown
from coding_gym.repair.source import FunctionNode
from coding_gym.repair.templates.moves import moves

_MAX_RETURNS = 3


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
        yield from moves(site)


def _delete(site: Site) -> Proposal:
    own = site.statement
    if len(site.block) == 1:
        proposal = site.put(*site.source.span(own), "pass", 0.6)
    else:
        proposal = site.put(*site.whole_lines(own), "", 0.6)
    return Proposal(proposal.edits, proposal.weight, f"delete `{shown(site.source.segment(own))}`")


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
