"""Tasks from bug-fix commits."""

from pathlib import Path

import git
import pytest
from sandbox_fixtures import commit, write_files

from coding_gym.errors import InvalidArgumentError
from coding_gym.synthesis import Progress, tasks_from_history
from coding_gym.workspace import TemplateStore

pytestmark = pytest.mark.slow

BUGGY = "def area(width, height):\n    return width + height\n"
FIXED = "def area(width, height):\n    return width * height\n"
TESTS = "from shapes import area\n\n\ndef test_square():\n    assert area(2, 2) == 4\n"
MORE = TESTS + "\n\ndef test_wide():\n    assert area(3, 5) == 15\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shapes"
    for message, program, tests in [
        ("Begin", BUGGY, TESTS),
        ("Fix area: it must multiply", FIXED, MORE),
        ("Say what it does", f'"""Shapes."""\n\n{FIXED}', MORE),
        ("More of both", f"{FIXED}\n\nSIDES = 4\n", f"{MORE}\n\nEXTRA = 1\n"),
    ]:
        commit(folder, {"shapes.py": program, "test_shapes.py": tests}, message)
    return folder


def test_a_commit_with_its_tests_becomes_a_task(repository: Path, store: TemplateStore) -> None:
    (task,) = tasks_from_history(repository, 5, store=store)
    commits = [commit.hexsha for commit in git.Repo(repository).iter_commits()]
    assert task.task_id == f"shapes__{commits[2][:12]}"
    assert task.base_commit == commits[3]
    assert task.fail_to_pass == ("test_shapes.py::test_wide",)
    assert task.pass_to_pass == ("test_shapes.py::test_square",)
    assert task.problem_statement.startswith("Wrong result of `area`\n")
    assert "15" not in task.problem_statement
    assert "multiply" not in task.problem_statement
    assert "+    return width * height" in task.gold_patch
    assert "test_wide" in task.test_patch


NO_TEST = "def test_nothing():\n    pass\n"
MAIN = "import sys\n\nfrom shapes import area\n\nprint(area(*map(int, sys.argv[1:])))\n"
INSIDE = "def test_wide():\n    from shapes import area\n\n    assert area(3, 5) == 15\n"
HELPER = "def check(sides, wanted):\n    assert shapes.area(*sides) == wanted\n"
HELPED = "from helpers import check\n\n\ndef test_wide():\n    check([3, 5], 15)\n"
PROGRAM = """\
import subprocess
import sys


def test_wide():
    command = [sys.executable, "main.py", "3", "5"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "15\\n"
"""


@pytest.mark.parametrize(
    ("tests", "named"),
    [
        ({"test_shapes.py": INSIDE}, "area"),
        (
            {
                "tests/helpers.py": f"import shapes\n\n\n{HELPER}",
                "tests/test_shapes.py": HELPED,
            },
            "area",
        ),
        ({"test_shapes.py": PROGRAM}, "shapes.py"),
    ],
    ids=["import inside", "helper of another file", "program"],
)
def test_issue_needs_no_call_in_the_test_function(
    tmp_path: Path, store: TemplateStore, tests: dict[str, str], named: str
) -> None:
    folder = tmp_path / "shapes"
    commit(folder, {"shapes.py": BUGGY, "main.py": MAIN} | dict.fromkeys(tests, NO_TEST))
    commit(folder, {"shapes.py": FIXED} | tests)
    (task,) = tasks_from_history(folder, 5, store=store)
    assert task.fail_to_pass[0].endswith("::test_wide")
    assert task.problem_statement.splitlines()[0] == f"Wrong result of `{named}`"
    assert not any(text in task.problem_statement for text in ("15", "main", "check", "test"))


@pytest.mark.parametrize(
    "head",
    ["from colors import red\n\nimport shapes\n\n\n", ""],
    ids=["of the file", "of the test"],
)
def test_error_of_an_import_in_the_program_is_displayed(
    tmp_path: Path, store: TemplateStore, head: str
) -> None:
    body = "    import shapes\n\n    assert shapes.area(3, 5) == 15\n"
    tests = f"{head}def test_wide():\n{body}"
    folder = tmp_path / "shapes"
    write_files(folder, {"colors.py": "def red():\n    return 'red'\n"})
    commit(folder, {"shapes.py": f"import missing\n\n\n{FIXED}", "test_shapes.py": NO_TEST})
    commit(folder, {"shapes.py": FIXED, "test_shapes.py": tests})
    (task,) = tasks_from_history(folder, 5, store=store)
    assert task.fail_to_pass == ("test_shapes.py::test_wide",)
    assert task.problem_statement.splitlines() == [
        "`shapes.py` fails with ModuleNotFoundError",
        "",
        "```",
        "Traceback (most recent call last):",
        '  File "shapes.py", in <module>',
        "ModuleNotFoundError: No module named 'missing'",
        "```",
    ]


def test_unused_commits_have_reasons(repository: Path, store: TemplateStore) -> None:
    perimeter = "\n\ndef perimeter(width, height):\n    return 2 * (width + height)\n"
    test = "from shapes import perimeter\n\n\ndef test_round():\n    assert perimeter(1, 2) == 6\n"
    added = {"shapes.py": FIXED + perimeter, "test_perimeter.py": test}
    sha = commit(repository, added, "Add the perimeter\n\nFor fences.")
    progress = Progress()
    results = tasks_from_history(repository, 5, store=store, progress=progress)
    dropped = dict(progress.dropped)
    assert progress.num_candidates == 5
    assert (len(results), len(dropped)) == (1, 4)
    names = {name.partition(" ")[2]: reason for name, reason in dropped.items()}
    assert "perimeter" in names["Add the perimeter"]
    assert f"{sha[:7]} Add the perimeter" in dropped
    assert names.keys() == {"Add the perimeter", "More of both", "Say what it does", "Begin"}
    assert all(names.values())
    assert len(set(names.values())) == 4


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        tasks_from_history(tmp_path, 1)
