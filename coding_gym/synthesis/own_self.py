"""A test method's statements as they would stand outside of its class."""

import ast
import builtins
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from coding_gym import syntax
from coding_gym.syntax import Function

_SET_UP = {"setUp", "setup_method"}


def set_up_of(tree: ast.Module, function: Function) -> list[ast.stmt]:
    """The statements that a test's own class runs before each test."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and function in node.body:
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in _SET_UP]
            return [statement for method in methods for statement in method.body]
    return []


def without_self(
    statements: Iterable[ast.stmt], owner: Mapping[str, str]
) -> tuple[list[ast.stmt], set[str]]:
    """Returns copies that name attributes of the test's object directly, where that says the same.

    An attribute does where it is a class, or where the statements themselves set it and nothing
    else has its name. All others stay: the code then names ``self``, and cannot be shown.

    Args:
        statements: What the test runs.
        owner: By attribute, the module and name of the class that it is, with a dot between.

    Returns:
        The copies, and what of ``owner`` they name.

    Raises:
        ValueError: A class has no name that could be written.
    """
    copies = [syntax.parse(ast.unparse(one)).body[0] for one in statements]
    nodes = [node for one in copies for node in ast.walk(one)]
    taken = set(dir(builtins))
    taken |= {n.id for n in nodes if isinstance(n, ast.Name)}
    taken |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    is_set = {n.attr for n in nodes if _is_own(n) and isinstance(n.ctx, ast.Store)}
    names = {name: name for name in is_set - taken}
    for attribute, path in owner.items():
        if not all(part.isidentifier() for part in path.split(".")):
            raise ValueError(f"a class must have a name, got {path!r}")
        if attribute not in is_set:
            names[attribute] = path.rpartition(".")[2]
    stripped = _WithoutSelf(names)
    plain = [ast.fix_missing_locations(stripped.visit(one)) for one in copies]
    return plain, {owner[name] for name in stripped.used if name in owner}


def _is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


class _WithoutSelf(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.used: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if _is_own(node) and node.attr in self._names:
            self.used.add(node.attr)
            return ast.Name(self._names[node.attr], node.ctx)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._in_scope(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._in_scope(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._in_scope(node)

    def _in_scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> ast.AST:
        # A method of a class inside of the test has a `self` of its own.
        has_own = any(isinstance(n, ast.arg) and n.arg == "self" for n in ast.walk(node.args))
        return node if has_own else self.generic_visit(node)
