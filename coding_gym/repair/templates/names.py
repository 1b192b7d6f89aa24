"""The template ``variable``: another name of the scope, another attribute of the object."""

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from coding_gym.repair.sites import Proposal, Site
from coding_gym.repair.source import FunctionNode, Source

_WEIGHTS = (0.8, 0.6, 0.4, 0.3)
_MAX_COMPARED = 500  # names, and characters of one: comparing takes their product, or more
_MAX_NAME_CHARS = 100


def variable(site: Site) -> Iterator[Proposal]:
    """Puts another name of the same scope, or another attribute of the same object."""
    local, outer = local_names(site), _outer_names(site.source)
    for node in site.nodes():
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if isinstance(node, ast.Name):
            yield from _other_names(site, node, local, outer)
        elif isinstance(node, ast.Attribute):
            others = _attributes(site.source, node.value, called=_is_called(site, node))
            end = site.source.span(node)[1]
            for other, weight in _ranked(node.attr, others):
                yield site.put(end - len(node.attr), end, other, weight)


def _other_names(
    site: Site, node: ast.Name, local: list[str], outer: list[str]
) -> Iterator[Proposal]:
    names = local if node.id in local else outer if node.id in outer else []
    role = _role(site, node)
    for other, weight in _ranked(node.id, names):
        if other != role:
            yield site.swap(node, other, weight if names is local else weight / 2)
    if role in local and role != node.id:
        yield site.swap(node, role, 1.0)


def _outer_names(source: Source) -> list[str]:
    """Returns the functions and values that the module itself defines, in order."""
    names: dict[str, None] = {}
    for statement in source.tree.body:
        if isinstance(statement, FunctionNode):
            names[statement.name] = None
        elif isinstance(statement, ast.Assign):
            names.update((t.id, None) for t in statement.targets if isinstance(t, ast.Name))
    return list(names)


def local_names(site: Site) -> list[str]:
    """Returns the parameters and local variables of the function around a statement, in order."""
    function = site.function
    if function is None:
        return []
    names = dict.fromkeys(parameters(function))
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
    return [name for name in names if name not in ("self", "cls", "_")]


def parameters(function: FunctionNode) -> list[str]:
    """Returns the names of a function's parameters, in order."""
    arguments = function.args
    nodes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    nodes += [node for node in (arguments.vararg, arguments.kwarg) if node is not None]
    return [node.arg for node in nodes]


def _is_called(site: Site, node: ast.expr) -> bool:
    parent = site.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _role(site: Site, node: ast.expr) -> str:
    """Returns the name under which a value is stored or passed on, or ""."""
    match site.parent(node):
        case ast.keyword(arg=str(name)):
            return name
        case (
            ast.Assign(targets=[ast.Attribute(attr=name)]) | ast.Assign(targets=[ast.Name(id=name)])
        ):
            return name
    return ""


def _attributes(source: Source, owner: ast.expr, *, called: bool) -> list[str]:
    """Returns the attributes that the file reads from, or calls on, the same object."""
    if not isinstance(owner, ast.Name | ast.Attribute):
        return []
    wanted = ast.dump(owner)
    found: dict[str, None] = {}
    for node, parent in source.parents.items():
        if isinstance(node, ast.Attribute) and type(node.value) is type(owner):
            is_called = isinstance(parent, ast.Call) and parent.func is node
            if is_called == called and ast.dump(node.value) == wanted:
                found[node.attr] = None
    return list(found)


def _ranked(name: str, others: list[str]) -> Iterator[tuple[str, float]]:
    """Yields the most alike other names, each with its weight; ties keep the order given."""
    if len(name) > _MAX_NAME_CHARS:
        return
    compared = [o for o in others if o != name and len(o) <= _MAX_NAME_CHARS][:_MAX_COMPARED]
    likeness = {other: SequenceMatcher(None, name, other).ratio() for other in compared}
    best = sorted(likeness, key=lambda other: -likeness[other])
    yield from zip(best, _WEIGHTS, strict=False)
