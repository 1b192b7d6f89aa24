"""The Python blocks of the documentation.

A ```python`` block stands alone. A ``py`` block takes something as given: a server, a name, a
folder. Tests put something small in its place.
"""

import ast
import asyncio
import importlib.util
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SERVER = "http://127.0.0.1:8000/v1"


def blocks(page: Path, language: str) -> list[str]:
    """Returns the code of a page's blocks of a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)


def name_of(page: Path) -> str:
    """Returns a page as a path below docs/."""
    return str(page.relative_to(ROOT / "docs"))


PY_PAGES = {name_of(page): blocks(page, "py") for page in PAGES if blocks(page, "py")}


# Run in `tests/extras`, most by `test_pages.py`, each where its packages are installed.
TRAINERS = {
    *("bridges.md", "capture.md", "nemo-gym.md", "openenv.md", "rllib.md"),
    *("stable-baselines3.md", "trl.md", "verifiers.md", "verl.md"),
}


def run_page(
    name: str,
    given: Mapping[str, Any],
    replaced: Mapping[str, str] | None = None,
    only: slice = slice(None),
) -> dict[str, Any]:
    """Runs the ``py`` blocks of a page, one after the other in one namespace, and returns it.

    Args:
        name: The page below docs/.
        given: The names that the page takes as given.
        replaced: Texts of the page, each of which must be there, and what runs in their place.
        only: Which blocks.
    """
    codes = PY_PAGES[name][only]
    for old, new in (replaced or {}).items():
        assert any(old in code for code in codes), f"{name} has no {old}"
        codes = [code.replace(old, new) for code in codes]
    namespace: dict[str, Any] = {"__name__": "page", **given}
    for code in codes:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile(code, f"a block of {name}", "exec", flags=flags, dont_inherit=True)
        result = eval(compiled, namespace)  # noqa: S307 - our own
        if inspect.iscoroutine(result):
            asyncio.run(result)
    return namespace


def skip_unless_installed(name: str) -> None:
    """Skips a test of a page whose package, or one that a block imports, is not installed."""
    package = name.removesuffix(".md").replace("-", "_")
    names = {package} if package in ("nemo_gym", "openenv") else set[str]()
    for code in PY_PAGES[name]:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                names |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module))
    for top in sorted({each.partition(".")[0] for each in names}):
        if importlib.util.find_spec(top) is None:  # without an import: the page's may be broken
            pytest.skip(f"{name} needs {top}")
