"""The template ``guard``: an early way out in front of a statement."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from coding_gym.repair.sites import Proposal, Site
from coding_gym.repair.source import FunctionNode
from coding_gym.repair.templates.names import local_names

_MAX_SUBJECTS = 3
_MAX_VALUES = 2
_COLLECTION_NAMES = {"seen", "visited", "done", "known"}


def guard(site: Site) -> Iterator[Proposal]:
    """Inserts ``if x is None: return …``, ``if not x: return …``, ``if x in seen: continue``."""
    function = site.function
    if function is None or isinstance(site.statement, FunctionNode | ast.ClassDef):
        return
    indent = site.source.indent(site.statement)
    if indent is None or not _may_stand_before(site):
        return
    exits = _exits(site, function)
    for subject in _subjects(site):
        for index, way_out in enumerate(exits):
            weight = 0.7 * 0.6**index
            yield _before(site, indent, f"if {subject} is None:", way_out, weight)
            yield _before(site, indent, f"if not {subject}:", way_out, weight)
        if site.loop is not None:
            for collection in _collections(function):
                if collection != subject:
                    yield _before(site, indent, f"if {subject} in {collection}:", "continue", 0.4)


def _before(site: Site, indent: str, test: str, way_out: str, weight: float) -> Proposal:
    start = site.source.span(site.statement)[0]
    line_end = site.source.newline
    owner_indent = (site.source.indent(site.owner) if site.owner else "") or ""
    step = indent[len(owner_indent) :] or "    "
    text = f"{test}{line_end}{indent}{step}{way_out}{line_end}{indent}"
    edit = site.edit(start, start, text)
    return Proposal((edit,), weight, f"insert `{test} {way_out}`")


def _may_stand_before(site: Site) -> bool:
    """Whether a line of its own may be put in front; not so for ``elif``, nor decorators."""
    start = site.source.span(site.statement)[0]
    return not site.source.text.startswith("elif", start)


def _subjects(site: Site) -> list[str]:
    """Returns what the statement reads and a guard could ask for: variables, attributes of self."""
    names = set(local_names(site))
    found = dict.fromkeys(_subject(site, node, names) for node in site.nodes())
    asked = _asked_before(site, names)
    return [s for s in found if s is not None and s not in asked][:_MAX_SUBJECTS]


def _asked_before(site: Site, names: set[str]) -> set[str | None]:
    """Returns what the statement before reads too and leaves as it is: its guard does as well."""
    if not site.index:
        return set()
    before = replace(site, statement=site.block[site.index - 1], index=site.index - 1)
    bound = {n.id for n in before.nodes() if isinstance(n, ast.Name) and _is_store(n)}
    return {_subject(before, node, names) for node in before.nodes()} - bound


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _subject(site: Site, node: ast.expr, names: set[str]) -> str | None:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
            parent = site.parent(node)
            is_called = isinstance(parent, ast.Call) and parent.func is node
            return None if is_called else f"self.{name}"
    return None


def _exits(site: Site, function: FunctionNode) -> list[str]:
    """Returns ways out of the statement's loop or function, the likeliest first."""
    ways = ["continue"] if site.loop is not None else []
    values: dict[str, None] = {}
    returns_value = False
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            returns_value = True
            if isinstance(node.value, ast.Constant) or _is_empty(node.value):
                values[f"return {site.source.segment(node.value)}"] = None
    if not returns_value:
        return [*ways, "return"]
    values["return None"] = None
    return [*ways, *list(values)[:_MAX_VALUES]]


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return is_call and not node.args and not node.keywords  # type: ignore[attr-defined]


def _collections(function: FunctionNode) -> list[str]:
    """Returns the names that hold a collection which the function fills."""
    found: dict[str, None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_empty(node.value):
            found.update((t.id, None) for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.Name) and node.id in _COLLECTION_NAMES:
            found[node.id] = None
    return list(found)[:2]
