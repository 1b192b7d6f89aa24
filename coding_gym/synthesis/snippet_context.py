"""What the code of a snippet needs around it: imports, constants, helpers, earlier statements."""

import ast
import builtins
import symtable
from collections.abc import Iterable

from coding_gym import syntax
from coding_gym.synthesis.checks import is_action, is_check, name_of, read_check

_MAX_HELPER_LINES = 24
# They leave what they are given as it was.
_LOOKING = {
    *("bool", "callable", "dict", "frozenset", "hasattr", "hash", "id", "int", "isinstance"),
    *("issubclass", "len", "max", "min", "repr", "set", "sorted", "str", "sum", "tuple", "type"),
}
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def needed_of(statements: list[ast.stmt], code: str) -> list[str]:
    """The statements, as texts, that name what later ones name; all others are left out.

    What a check does besides looking stays: a cache that was read may answer otherwise after.
    """
    names = _names(code)
    kept: list[str] = []
    for statement in reversed(statements):
        is_done_for_effect = isinstance(statement, ast.Expr) and not is_check(statement)
        text = _without_check(statement)
        if text and (_names(text) & names or (is_done_for_effect and is_action(statement))):
            kept.insert(0, text)
            names |= _names(text)
    return kept


def _without_check(statement: ast.stmt) -> str:
    if not is_check(statement):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        return "" if is_text else ast.unparse(statement)
    check = read_check(statement)
    if check.raises:
        inner = "\n".join(f"    {line}" for line in check.code.splitlines())
        return f"try:\n{inner}\nexcept {check.raises}:\n    pass"
    return "\n".join(text for text in (check.code, check.expected) if _may_change(text))


def _may_change(text: str) -> bool:
    nodes = list(ast.walk(syntax.parse(text)))
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    is_looking_up = any(isinstance(n, ast.Subscript) for n in nodes)
    return is_looking_up or any(name_of(call) not in _LOOKING for call in calls)


def _names(code: str) -> set[str]:
    """The names that code uses or gives."""
    found: set[str] = set()
    for node in ast.walk(syntax.parse(code)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, _Definition):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
    return found


def prelude(tree: ast.Module, code: Iterable[str], own: Iterable[str] = ()) -> list[str]:
    """Imports, constants and helpers of the test file that the code names, and what these name.

    Args:
        tree: The test file.
        code: Python texts.
        own: Names that mean something else in the code than in the file.
    """
    names = set().union(*(_names(one) for one in code)) - set(own)
    chosen: dict[int, str] = {}
    is_growing = True
    while is_growing:
        size = len(chosen)
        for number, statement in enumerate(tree.body):
            text = _definition(statement, names)
            if text:
                chosen[number] = text
                if not isinstance(statement, ast.Import | ast.ImportFrom):
                    names |= _names(text)
        is_growing = len(chosen) > size
    lines = []
    for number in sorted(chosen):
        is_block = isinstance(tree.body[number], _Definition)
        lines += ["", chosen[number], ""] if is_block else [chosen[number]]
    return lines


def _definition(statement: ast.stmt, names: set[str]) -> str:
    """The text that gives some of the names; "" where a statement gives none of them."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        wanted = [a for a in statement.names if (a.asname or a.name.split(".")[0]) in names]
        if not wanted or not _is_from_elsewhere(statement):
            return ""
        if isinstance(statement, ast.Import):
            return ast.unparse(ast.Import(wanted))
        return ast.unparse(ast.ImportFrom(statement.module, wanted, 0))
    return ast.unparse(statement) if _defines(statement) & names else ""


def _is_from_elsewhere(statement: ast.Import | ast.ImportFrom) -> bool:
    """Whether something is imported that users have too: of the project, or of a library."""
    if isinstance(statement, ast.Import):
        return True
    return not statement.level and not is_of_tests(statement.module or "")


def is_of_tests(module: str) -> bool:
    """Whether a module, by its dotted name, is a part of a project's tests."""
    parts = module.split(".")
    return any(p in ("test", "tests") or p.startswith(("test_", "conftest")) for p in parts)


def _defines(statement: ast.stmt) -> set[str]:
    """The names that a constant or a short helper of the test file gives."""
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if isinstance(statement, _Definition):
        is_short = (statement.end_lineno or 0) - statement.lineno < _MAX_HELPER_LINES
        is_fixture = any("fixture" in ast.unparse(one) for one in statement.decorator_list)
        is_test = statement.name.lower().startswith("test")
        return {statement.name} if is_short and not is_fixture and not is_test else set()
    return set()


def missing(lines: Iterable[str]) -> set[str]:
    """The names that code uses and that nothing in it gives, scope by scope."""
    top = symtable.symtable("\n".join(lines), "<snippet>", "exec")
    defined = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    used: set[str] = set()
    todo = [top]
    while todo:
        table = todo.pop()
        todo += table.get_children()
        used |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return used - defined - set(dir(builtins))
