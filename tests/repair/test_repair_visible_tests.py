from collections.abc import Callable
from typing import Any

import pytest
from shell_workspace import BAG, Files

from coding_gym.repair.localisation import Baseline, Localisation, localise
from coding_gym.repair.visible_tests import RunReport, VisibleTests, arguments_from

Locate = Callable[..., Localisation]
STACK = (
    "class Stack:\n    def __init__(self):\n        self.items = []\n\n"
    "    def push(self, item):\n        self.items.append(item)\n\n"
    "    def top(self):\n        return self.items[0]\n\n"
    "    def size(self):\n        return len(self.items)\n"
)
TESTS = (
    "from stack import Stack\n\n\n"
    "def make(*items):\n    stack = Stack()\n    for item in items:\n        stack.push(item)\n"
    "    return stack\n\n\n"
    "def test_size():\n    assert make(1, 2).size() == 2\n\n\n"
    "def test_top():\n    assert make(1, 2).top() == 2\n\n\n"
    "def test_top_of_one():\n    assert make(1).top() == 1\n\n\n"
    "def test_top_of_three():\n    assert make(1, 2, 3).top() == 3\n"
)
FILES = {"stack.py": STACK, "test_stack.py": TESTS}
BROKEN = "self.items[0]"


def installed(place: Any, found: Localisation, arguments: str = "-q") -> VisibleTests:
    """The commands of a workspace whose failing tests are known, in their place."""
    tests = VisibleTests(arguments, found.baseline)
    place(tests.install_command())
    return tests


def run(shell: Any, tests: VisibleTests) -> tuple[RunReport, str]:
    output = shell(tests.run_command())
    return tests.read(output), output


def edit(shell: Any, old: str, new: str, name: str = "stack.py") -> None:
    path = shell.workspace / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def locate(open_tests: Any) -> Locate:
    """Finds the failing tests of files."""

    def locate(files: Files, arguments: str = "-q") -> Localisation:
        found = localise(open_tests(files), arguments)
        assert found is not None
        return found

    return locate


@pytest.fixture(scope="module")
def found(locate: Locate) -> Localisation:
    """What tracing finds in the stack."""
    return locate(FILES)


@pytest.fixture
def stack(shell: Any, found: Localisation) -> Any:
    """A workspace whose failing tests are known, and their commands installed."""
    place = shell(FILES)
    return place, installed(place, found)


def test_tracing_tells_which_tests_fail(found: Localisation) -> None:
    failing = ("test_stack.py::test_top", "test_stack.py::test_top_of_three")
    assert found.baseline == Baseline(failing, failing, num_tests=4, flags=found.baseline.flags)
    assert {s.path for s in found.suspicious()} == {"stack.py"}


@pytest.mark.parametrize(
    ("new", "report"),
    [
        (BROKEN, RunReport(0.0, broken=False, passed=False)),
        ("self.items[-1]", RunReport(1.0, broken=False, passed=True)),
        ("self.items[1]", RunReport(0.5, broken=False, passed=False)),
        ("self.items.pop()", RunReport(1.0, broken=False, passed=True)),
        ("max(self.items[1:])", RunReport(1.0, broken=True, passed=False)),
        ("self.items[", RunReport(0.0, broken=True, passed=False)),
    ],
)
def test_a_run_counts_repaired_and_broken_tests(stack: Any, new: str, report: RunReport) -> None:
    place, tests = stack
    edit(place, BROKEN, new)
    assert run(place, tests)[0] == report


def test_the_others_run_only_once_the_failing_ones_pass(stack: Any) -> None:
    place, tests = stack
    assert "2 failed in" in run(place, tests)[1]
    edit(place, BROKEN, "self.items[-1]")
    assert "4 passed in" in run(place, tests)[1]


def test_an_endless_loop_does_not_take_the_whole_episode(stack: Any) -> None:
    place, tests = stack
    edit(place, f"return {BROKEN}", "\n        while True: pass")
    assert run(place, tests)[0] == RunReport(0.0, broken=False, passed=False)


def test_swallowing_what_ends_a_loop_does_not_help(stack: Any) -> None:
    place, tests = stack
    loop = "import time; end = time.process_time() + 3\n        while time.process_time() < end:"
    swallow = (
        "\n            try: sum(range(9999))\n            except BaseException: pass\n        "
    )
    edit(place, f"return {BROKEN}", f"{loop}{swallow}return self.items[-1]")
    report, output = run(place, tests)
    assert not report.passed
    assert "took too long" in output


def test_tests_that_are_gone_count_as_broken(shell: Any, locate: Locate) -> None:
    more = "from stack import Stack, LIMIT\n\n\ndef test_limit():\n    assert LIMIT == 3\n"
    files = FILES | {"stack.py": f"LIMIT = 3\n\n\n{STACK}", "test_limit.py": more}
    place = shell(files)
    tests = installed(place, locate(files))
    edit(place, BROKEN, "self.items[-1]")
    assert run(place, tests)[0] == RunReport(1.0, broken=False, passed=True)
    edit(place, "LIMIT = 3", "LIMITS = 3")
    assert run(place, tests)[0] == RunReport(1.0, broken=True, passed=False)


ODD: dict[str, tuple[Files, str]] = {
    "a test module that never worked": (
        FILES | {"test_never.py": "import no_such_module\n"},
        "-q",
    ),
    "tests in a folder": ({"stack.py": STACK, "tests/test_stack.py": TESTS}, "-q tests"),
    "settings that cut a run short": (FILES | {"pytest.ini": "[pytest]\naddopts = -x\n"}, "-q"),
}


@pytest.mark.parametrize(("files", "arguments"), ODD.values(), ids=ODD.keys())
def test_odd_projects_are_no_obstacle(
    shell: Any, locate: Locate, files: Files, arguments: str
) -> None:
    place = shell(files)
    tests = installed(place, locate(files, arguments), arguments)
    edit(place, BROKEN, "self.items[1]")
    assert run(place, tests)[0] == RunReport(0.5, broken=False, passed=False)
    edit(place, "self.items[1]", "self.items[-1]")
    assert run(place, tests)[0] == RunReport(1.0, broken=False, passed=True)


def test_the_verdict_is_in_the_part_that_tools_show(shell: Any, locate: Locate) -> None:
    many = "import pytest\nfrom stack import Stack\n\n\n"
    many += "@pytest.mark.parametrize('name', [f'{i:03}' * 60 for i in range(20)])\n"
    many += "def test_top(name):\n    stack = Stack()\n    stack.push(1)\n    stack.push(2)\n"
    many += "    assert stack.top() == 2\n"
    files = {"stack.py": STACK, "test_stack.py": many}
    place = shell(files)
    output = run(place, installed(place, locate(files)))[1]
    assert len(output) < 2000
    assert "failed before: 0 of 12 pass now; others broken: 0" in output


def test_nothing_is_left_behind(stack: Any) -> None:
    place, tests = stack
    run(place, tests)
    assert sorted(place.files()) == ["stack.py", "test_stack.py"]


def test_tests_that_fail_only_after_others_keep_their_order(shell: Any, locate: Locate) -> None:
    place, found = shell(BAG), locate(BAG)
    assert found.baseline.in_order
    tests = installed(place, found)
    assert run(place, tests)[0] == RunReport(0.0, broken=False, passed=False)
    edit(place, "    bag.append(x)", "    bag = [*bag, x]", "bag.py")
    assert run(place, tests)[0] == RunReport(1.0, broken=False, passed=True)


def test_before_anything_is_known_all_tests_run(shell: Any) -> None:
    place, tests = shell(FILES), VisibleTests("-q")
    assert tests.install_command() == ""
    assert run(place, tests)[0] == RunReport(0.0, broken=True, passed=False)
    edit(place, BROKEN, "self.items[-1]")
    report, output = run(place, tests)
    assert report == RunReport(1.0, broken=False, passed=True)
    assert "4 passed" in output


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python -m pytest -q tests", "-q tests"),
        ("python3 -m pytest 'a b'", "'a b'"),
        ("pytest", ""),
        ("make test", "-q"),
        ("python -m pytest '", "-q"),
    ],
)
def test_arguments_are_taken_from_a_tasks_command(command: str, arguments: str) -> None:
    assert arguments_from(command) == arguments
