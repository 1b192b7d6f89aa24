"""The table of broken promises fits the source, and its runner tells killed from surviving."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "mutants.py"
# The number of promises that were in the table when it was last extended. It only ever rises, and
# with it the number that the table itself names.
LEAST_PROMISES = 149

SOURCE = "def area(width, height):\n    return width * height\n"
TESTS = (
    "import shapes\nimport pytest\n\n\n"
    "@pytest.fixture\n"
    "def square():\n"
    "    return shapes.area(2, 2)\n\n\n"
    "def test_area():\n    assert shapes.area(2, 3) == 6\n\n\n"
    "def test_square(square):\n    assert square\n"
)
MUTANT = """
[[mutant]]
promise = "{promise}"
source = "README.md"
file = "shapes.py"
old = "{old}"
new = "{new}"
tests = ["{test}"]
"""


def mutants(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--root", str(root), "--jobs", "1", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with a module, its tests, and a table without a mutant."""
    for name, text in {
        "README.md": "It computes areas.\n",
        "shapes.py": SOURCE,
        "test_shapes.py": TESTS,
        "tests/mutants.toml": "promises = 0\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: S607
    return tmp_path


def add(project: Path, promise: str, old: str, new: str, test: str = "test_shapes.py") -> None:
    entry = MUTANT.format(promise=promise, old=old, new=new, test=test)
    with (project / "tests/mutants.toml").open("a") as table:
        table.write(entry)


def test_every_mutant_applies_to_the_source() -> None:
    ended = mutants("--check")
    assert ended.returncode == 0, ended.stderr


def test_promises_never_decrease() -> None:
    table = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    promises = {mutant["promise"] for mutant in table["mutant"]}
    assert len(promises) >= table["promises"] >= LEAST_PROMISES


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"old": "width + height"}, "the old text occurs 0 times"),
        ({"old": "width"}, "the old text occurs 2 times"),
        ({"new": "width * height"}, "the old and the new text are equal"),
        ({"new": "width *"}, "the new text does not parse: line 2"),
        ({"test": "test_others.py"}, "there is no test file test_others.py"),
        ({"test": "test_shapes.py::test_gone[1]"}, "there is no test test_gone in test_shapes.py"),
    ],
)
def test_a_mutant_that_does_not_fit_is_refused(
    project: Path, change: dict[str, str], said: str
) -> None:
    add(project, "areas", **{"old": "width * height", "new": "0", **change})
    ended = mutants("--check", root=project)
    assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr


def test_survivors_and_errors_are_told_from_killed_mutants(project: Path) -> None:
    add(project, "noticed", "width * height", "width + height")
    add(project, "unnoticed", "def area", "# changed\\ndef area")
    add(project, "a fixture fails", "width * height", "1 / 0", "test_shapes.py::test_square")
    before = (project / "shapes.py").read_text()
    ended = mutants("--unchecked", root=project)
    assert ended.returncode == 1, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line[:1].isdigit()]
    assert [(line.split()[1], " ".join(line.split()[4:])) for line in lines[:3]] == [
        ("killed", "noticed"),
        ("SURVIVED", "unnoticed"),
        ("ERROR", "a fixture fails"),
    ]
    assert "test_shapes::test_area: assert 5 == 6" in ended.stdout
    assert "1 killed, 1 survived, 1 errors" in ended.stdout
    assert (project / "shapes.py").read_text() == before


def test_nothing_is_broken_where_tests_fail_already(project: Path) -> None:
    add(project, "areas", "width * height", "0")
    (project / "test_shapes.py").write_text("def test_it():\n    assert not 1\n")
    ended = mutants(root=project)
    assert (ended.returncode, "fail on the unchanged source" in ended.stderr) == (2, True)
