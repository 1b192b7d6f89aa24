"""A package imports only from packages of lower-numbered layers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import coding_gym

PACKAGE = Path(coding_gym.__file__).parent

VALUES = ["task", "patch", "action", "calls", "grade", "trajectory"]
# Modules that values, and several packages, import.
VALUES += ["json_record", "arguments", "optional", "syntax", "source_text", "process_cache"]
VALUES += ["whole_file", "run_folder", "program_output", "addresses"]

LAYERS: dict[str, float] = {
    "errors": -1,
    **dict.fromkeys(VALUES, 0),
    "host": 0.5,  # reads properties of the machine, which the values must not use
    **dict.fromkeys(["sandbox", "text"], 1),
    **dict.fromkeys(["workspace", "tools"], 2),
    **dict.fromkeys(["grading", "rewards"], 3),
    "mutation": 3,
    **dict.fromkeys(["tasks", "synthesis"], 4),
    **dict.fromkeys(["episode", "repair"], 5),
    "envs": 6,
    **dict.fromkeys(["wrappers", "vector", "agents"], 7),
    "rollout": 8,
    "evaluation": 9,
    **dict.fromkeys(["adapters", "viewer"], 10),
    "cli": 11,
}
EXEMPT = {"__init__"}  # exports the public names


def modules() -> Iterator[tuple[Path, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        if "bundled" not in parts:
            yield path, parts[0].removesuffix(".py")


def imported_packages(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "coding_gym":
            names = [f"coding_gym.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "coding_gym" and len(parts) > 1 and parts[1] != "__version__":
                yield parts[1]


def may_import(package: str, other: str) -> bool:
    if other not in LAYERS:  # `__init__`, and modules for users' tests
        return False
    return LAYERS[other] < LAYERS[package] or LAYERS[other] == LAYERS[package] == 0


def test_packages_import_only_from_lower_numbered_layers() -> None:
    violations = [
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path, package in modules()
        if package not in EXEMPT
        for other in imported_packages(path)
        if other != package and not may_import(package, other)
    ]
    assert violations == []
