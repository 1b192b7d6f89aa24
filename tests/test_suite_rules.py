"""What the tests themselves keep to, so that they outlive the code that they test."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
# Trainers, agents and Python itself have no public way in.
OTHER_PROJECTS = (
    "support/checks/",
    "extras/",
    "support/nano_model.py",
    "support/image_fixtures.py",
    "support/sandbox_fixtures.py",
)
MAX_PRIVATE_USES = 20


@cache
def modules() -> dict[str, ast.Module]:
    """Syntax trees of the modules below the tests' folder, by their path in it."""
    return {
        str(path.relative_to(TESTS)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(TESTS.rglob("*.py"))
    }


def is_private(name: object) -> bool:
    last = name.rpartition(".")[2] if isinstance(name, str) else ""
    return last.startswith("_") and not last.startswith("__") and last != "_"


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Private attributes of others, imported, read, or named to ``setattr`` and its like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", "os"}):
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{a.name}" for a in node.names if is_private(a.name))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attr"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and is_private(argument.value):
                    yield ast.unparse(node)


def test_no_test_module_imports_another() -> None:
    found = [
        f"{path}: {ast.unparse(node)}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        if name and name.split(".")[0].startswith(("test_", "tests", "conftest"))
    ]
    assert not found


def test_private_names_are_those_of_other_projects_and_few() -> None:
    found = [f"{path}: {use}" for path, tree in modules().items() for use in private_uses(tree)]
    assert [use for use in found if not use.startswith(OTHER_PROJECTS)] == []
    assert len(found) <= MAX_PRIVATE_USES, "\n".join(found)
