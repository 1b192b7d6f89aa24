"""The operator on names: it replaces variables and attributes."""

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from coding_gym.mutation.sites import Change, Site
from coding_gym.mutation.source import Source
from coding_gym.syntax import Function

_WEIGHTS = (0.8, 0.6, 0.4, 0.3)
_MIN_SIMILARITY = 0.5  # minimum similarity of attributes that programmers confuse
_MAX_COMPARED = 500  # number of names that are compared with one name
_MAX_NAME_CHARS = 100


def variable(site: Site) -> Iterator[Change]:
    """Replaces a name by another in scope, or an attribute by another attribute of its object."""
    local_names, outer_names = site.scope.local_names, _outer_names(site.source)
    for node in site.nodes():
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if isinstance(node, ast.Name):
            yield from _other_names(site, node, local_names, outer_names)
        elif isinstance(node, ast.Attribute):
            yield from _other_attributes(site, node)


def _other_names(
    site: Site, node: ast.Name, local_names: list[str], outer_names: list[str]
) -> Iterator[Change]:
    names = next((n for n in (local_names, outer_names) if node.id in n), [])
    role = _role(site, node)
    bound = site.scope.first_bound
    is_bug = not _is_base(site, node) and bound.get(node.id, (site.line, 0)) < (site.line, 0)
    for other, weight, _ in _most_similar_names(node.id, names):
        is_bound = bound.get(other, (site.line, 0)) < (site.line, 0)
        bug = "wrong_variable" if is_bug and is_bound else ""
        if other != role:
            yield site.swap(node, other, weight if names is local_names else weight / 2, bug)
    if role in local_names and role != node.id:
        yield site.swap(node, role, 1.0)


def _other_attributes(site: Site, node: ast.Attribute) -> Iterator[Change]:
    key = ast.dump(node.value), site.source.is_called(node)
    others = site.source.attributes.get(key, [])
    end = site.source.span(node)[1]
    is_of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
    for rank, (other, weight, similarity) in enumerate(_most_similar_names(node.attr, others)):
        is_bug = is_of_self and rank == 0 and similarity >= _MIN_SIMILARITY
        yield site.put(
            end - len(node.attr), end, other, weight, "wrong_attribute" if is_bug else ""
        )


def _outer_names(source: Source) -> list[str]:
    """Returns the names of the functions and variables at the top of the module, in order."""
    names: dict[str, None] = {}
    for statement in source.tree.body:
        if isinstance(statement, Function):
            names[statement.name] = None
        elif isinstance(statement, ast.Assign):
            names.update((t.id, None) for t in statement.targets if isinstance(t, ast.Name))
    return list(names)


def _is_base(site: Site, node: ast.expr) -> bool:
    """Returns whether an expression is called or its attribute used; most changes then fail."""
    return site.source.is_called(node) or isinstance(site.parent(node), ast.Attribute)


def _role(site: Site, node: ast.expr) -> str:
    """Returns the variable, attribute or parameter that receives an expression; "" for none."""
    match site.parent(node):
        case ast.keyword(arg=str(name)):
            return name
        case (
            ast.Assign(targets=[ast.Attribute(attr=name)]) | ast.Assign(targets=[ast.Name(id=name)])
        ):
            return name
    return ""


def _most_similar_names(name: str, names: list[str]) -> Iterator[tuple[str, float, float]]:
    """Yields the names most similar to ``name``, each with weight and similarity, best first."""
    if len(name) > _MAX_NAME_CHARS:
        return
    candidates = [o for o in names if o != name and len(o) <= _MAX_NAME_CHARS][:_MAX_COMPARED]
    similarity = {other: SequenceMatcher(None, name, other).ratio() for other in candidates}
    most_similar = sorted(similarity, key=lambda other: -similarity[other])
    for other, weight in zip(most_similar, _WEIGHTS, strict=False):
        yield other, weight, similarity[other]
