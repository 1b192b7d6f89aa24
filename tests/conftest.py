"""A cache folder of the test run's own, and a task small enough to read at a glance."""

from collections.abc import Iterator
from typing import Any

import pytest

BUGGY = "def area(width, height):\n    return width + height\n"
TESTS = (
    "from shapes import area\n\n\n"
    "def test_square():\n    assert area(2, 2) == 4\n\n\n"
    "def test_wide():\n    assert area(3, 5) == 15\n"
)
HIDDEN = (
    "diff --git a/test_hidden.py b/test_hidden.py\n"
    "new file mode 100644\n"
    "--- /dev/null\n"
    "+++ b/test_hidden.py\n"
    "@@ -0,0 +1,9 @@\n"
    "+from shapes import area\n"
    "+\n"
    "+\n"
    "+def test_tall():\n"
    "+    assert area(2, 7) == 14\n"
    "+\n"
    "+\n"
    "+def test_flat():\n"
    "+    assert area(9, 0) == 0\n"
)
GOLD = (
    "diff --git a/shapes.py b/shapes.py\n"
    "--- a/shapes.py\n"
    "+++ b/shapes.py\n"
    "@@ -1,2 +1,2 @@\n"
    " def area(width, height):\n"
    "-    return width + height\n"
    "+    return width * height\n"
)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps templates of the test run out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def tiny_row() -> dict[str, Any]:
    """A task row with inline files: ``area`` adds where it should multiply."""
    return {
        "instance_id": "shapes-area",
        "problem_statement": "area(3, 5) gives 8\n\nI expected 15.",
        "files": {"shapes.py": BUGGY, "test_shapes.py": TESTS},
        "patch": GOLD,
        "test_patch": HIDDEN,
        "FAIL_TO_PASS": ["test_hidden.py::test_tall", "test_hidden.py::test_flat"],
        "PASS_TO_PASS": ["test_shapes.py::test_square"],
        "created_at": "2024-01-01T00:00:00Z",
        "split": "train",
    }
