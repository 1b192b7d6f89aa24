"""What the code of a snippet needs around it: imports, constants, helpers, earlier statements."""

import ast
import builtins
from collections.abc import Mapping

_MAX_HELPER_LINES = 12


def needed_of(statements: list[ast.stmt], code: str) -> list[str]:
    """The statements, as texts, that name what later ones name; all others are left out."""
    names = _names(code)
    kept: list[str] = []
    for statement in reversed(statements):
        text = ast.unparse(statement)
        if _names(text) & names:
            kept.insert(0, text)
            names |= _names(text)
    return kept


def _names(code: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)}


def prelude(tree: ast.Module, values: Mapping[str, str], code: list[str]) -> list[str]:
    """Imports, constants of the test file and the test's own arguments that the code names."""
    names = set().union(*(_names(one) for one in code))
    lines = []
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            wanted = [a for a in statement.names if (a.asname or a.name.split(".")[0]) in names]
            if wanted and not getattr(statement, "level", 0):
                statement.names = wanted
                lines.append(ast.unparse(statement))
        elif _defines(statement) & names:
            lines += ["", ast.unparse(statement), ""]
    return [*lines, *(f"{name} = {text}" for name, text in values.items() if name in names)]


def _defines(statement: ast.stmt) -> set[str]:
    """The names that a constant or a short helper of the test file gives."""
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        is_short = (statement.end_lineno or 0) - statement.lineno < _MAX_HELPER_LINES
        return {statement.name} if is_short and not statement.decorator_list else set()
    return set()


def num_missing(code: str) -> int:
    """How many names the code uses that it does not define."""
    known = set(dir(builtins))
    used: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else known).add(node.id)
        elif isinstance(node, ast.alias):
            known.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
    return len(used - known)
