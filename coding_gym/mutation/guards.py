"""The operator that inserts an early way out in front of a statement."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from coding_gym.mutation.sites import Change, Clause, Site, is_bound_by
from coding_gym.syntax import Function

_MAX_SUBJECTS = 3
_MAX_VALUES = 2
_COLLECTION_NAMES = {"seen", "visited", "done", "known"}


def guard(site: Site) -> Iterator[Change]:
    """Inserts ``if x is None: return …``, ``if not x: return …``, ``if x in seen: continue``."""
    function, own = site.function, site.node
    if function is None or isinstance(own, Function | ast.ClassDef | Clause):
        return
    start, indent = site.source.span(own)[0], site.source.indent(own)
    if indent is None or site.source.text.startswith("elif", start):
        return
    exits = _exits(site, function)
    line_end, deeper = site.source.newline, indent + site.source.step

    def before(test: str, way_out: str, weight: float) -> Change:
        lines = f"if {test}:{line_end}{deeper}{way_out}{line_end}{indent}"
        return site.put(start, start, lines, weight)

    for subject in _subjects(site):
        for index, way_out in enumerate(exits):
            weight = 0.7 * 0.6**index
            yield before(f"{subject} is None", way_out, weight)
            yield before(f"not {subject}", way_out, weight)
        if site.loop is not None:
            for collection in _collections(function):
                if collection != subject:
                    yield before(f"{subject} in {collection}", "continue", 0.4)


def _subjects(site: Site) -> list[str]:
    """Returns what the statement reads and a guard could ask for: variables, attributes of self."""
    names = set(site.scope.local_names)
    found = dict.fromkeys(_subject(site, node, names) for node in site.nodes())
    asked = _asked_before(site, names)
    return [s for s in found if s is not None and s not in asked][:_MAX_SUBJECTS]


def _asked_before(site: Site, names: set[str]) -> set[str | None]:
    """Returns what the statement before reads too and leaves as it is: its guard does as well."""
    if not site.index:
        return set()
    before = replace(site, node=site.block[site.index - 1], index=site.index - 1)
    bound = {node.id for node in before.nodes() if is_bound_by(node)}
    return {_subject(before, node, names) for node in before.nodes()} - bound


def _subject(site: Site, node: ast.expr, names: set[str]) -> str | None:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
            parent = site.parent(node)
            is_called = isinstance(parent, ast.Call) and parent.func is node
            return None if is_called else f"self.{name}"
    return None


def _exits(site: Site, function: Function) -> list[str]:
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


def _collections(function: Function) -> list[str]:
    """Returns the names that hold a collection which the function fills."""
    found: dict[str, None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_empty(node.value):
            found.update((t.id, None) for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.Name) and node.id in _COLLECTION_NAMES:
            found[node.id] = None
    return list(found)[:2]
