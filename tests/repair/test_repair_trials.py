"""Localisation, search and trials of candidates against real programs, in a sandbox."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Localisation, arguments_from, localise
from coding_gym.repair.search import find_repair, try_candidate
from coding_gym.source_text import Edit
from coding_gym.synthesis.suite import Suite

pytestmark = pytest.mark.slow

Files = Mapping[str, str]
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


def change(text: str, old: str, new: str, path: str = "stack.py") -> Candidate:
    """Returns the candidate that replaces a part of a file."""
    start = text.index(old)
    edit = Edit(path, start, start + len(old), new)
    return Candidate(path, 1, "compare", 1.0, (edit,))


@dataclass
class Program:
    """A program with its localisation; a call tries a change."""

    suite: Suite
    localisation: Localisation

    def __call__(self, old: str, new: str, path: str = "stack.py") -> tuple[float, bool, bool]:
        """Returns the fraction fixed, whether other tests broke, and whether it is plausible."""
        texts = {name: source.text for name, source in self.localisation.sources.items()}
        candidate = change(texts[path], old, new, path)
        trial = try_candidate(self.suite, self.localisation.baseline, texts, candidate)
        return trial.fraction_fixed, trial.breaks_others, trial.is_plausible


@pytest.fixture(scope="module")
def program(suite_of: Any) -> Callable[..., Program]:
    """Returns a function that localises the failing tests of a program."""

    def program(files: Files) -> Program:
        suite = suite_of(files)
        localisation = localise(suite)
        assert localisation is not None
        return Program(suite, localisation)

    return program


@pytest.fixture(scope="module")
def stack(program: Any) -> Program:
    """The program with a stack, localised."""
    tried: Program = program(FILES)
    return tried


def test_tracing_records_failed_tests_and_executed_lines(stack: Program) -> None:
    baseline = stack.localisation.baseline
    file = "test_stack.py"
    assert baseline.failing == (f"{file}::test_top", f"{file}::test_top_of_three")
    assert baseline.passing == (f"{file}::test_size", f"{file}::test_top_of_one")
    lines = {line: hits for (_, line), hits in stack.localisation.spectrum.hits.items()}
    assert lines == {3: (2, 2), 6: (2, 2), 9: (2, 1)}  # not the line of `size`


@pytest.mark.parametrize(
    ("new", "report"),
    [
        (BROKEN, (0.0, False, False)),
        ("self.items[-1]", (1.0, False, True)),
        ("self.items[1]", (0.5, False, False)),
        ("self.items.pop()", (1.0, False, True)),
        ("max(self.items[1:])", (1.0, True, False)),
        ("self.items[", (0.0, False, False)),
        ("(yield)", (0.0, False, False)),
    ],
)
def test_a_trial_counts_repaired_and_broken_tests(stack: Program, new: str, report: Any) -> None:
    assert stack(BROKEN, new) == report


@pytest.mark.parametrize("body", ["pass", "import signal; signal.pause()"], ids=["spin", "wait"])
def test_endless_test_ends_at_its_time_limit(stack: Program, body: str) -> None:
    assert stack(f"return {BROKEN}", f"\n        while True: {body}") == (0.0, False, False)


def test_code_that_swallows_the_time_limit_is_not_plausible(stack: Program) -> None:
    loop = "import time; end = time.process_time() + 3\n        while time.process_time() < end:"
    swallow = (
        "\n            try: sum(range(9999))\n            except BaseException: pass\n        "
    )
    assert not stack(f"return {BROKEN}", f"{loop}{swallow}return self.items[-1]")[2]


def test_missing_tests_count_as_broken(program: Any) -> None:
    more = "from stack import Stack, LIMIT\n\n\ndef test_limit():\n    assert LIMIT == 3\n"
    tried = program(FILES | {"stack.py": f"LIMIT = 3\n\n\n{STACK}", "test_limit.py": more})
    assert tried(BROKEN, "self.items[-1]") == (1.0, False, True)
    body = STACK[: STACK.index(BROKEN)]
    repaired = body.replace("LIMIT", "LIMITS") + "self.items[-1]"
    assert tried(f"LIMIT = 3\n\n\n{body}{BROKEN}", repaired) == (1.0, True, False)


def test_test_module_that_fails_at_base_is_ignored(program: Any) -> None:
    tried = program(FILES | {"test_never.py": "import no_such_module\n"})
    assert tried(BROKEN, "self.items[1]") == (0.5, False, False)
    assert tried(BROKEN, "self.items[-1]") == (1.0, False, True)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python -m pytest -q tests", ("-q", "tests")),
        ("python3 -m pytest 'a b'", ("a b",)),
        ("pytest", ()),
        ("pytest 'a.py::t[x;y]' -n 2", ("a.py::t[x;y]", "-n", "2")),
        ("pytest -q a.py && python -m pytest b.py", ()),
        ("pytest a.py 2>&1 | tail -5", ()),
        ("pytest a.py\npytest b.py", ()),
        ("make test", ()),
        ("cd sub && pytest a.py", ()),
        ("python -m pytest '", ()),
    ],
)
def test_arguments_come_from_the_test_command_of_a_task(
    command: str, arguments: tuple[str, ...]
) -> None:
    assert arguments_from(command) == arguments


# The second test fails only after the first test.
BAG = {
    "bag.py": "def add(x, bag=[]):\n    bag.append(x)\n    return bag\n",
    "test_bag.py": "from bag import add\n\n\ndef test_one():\n    assert add(1) == [1]\n\n\n"
    "def test_two():\n    assert add(2) == [2]\n",
}


def searched(suite: Suite) -> tuple[Localisation, Candidate | None]:
    localisation = localise(suite)
    assert localisation is not None
    return localisation, find_repair(suite, localisation)


def test_order_dependent_failure_is_tried_in_order(suite_of: Any) -> None:
    localisation, repair = searched(suite_of(BAG))
    assert localisation.baseline.needs_all_tests
    assert localisation.baseline.failing == ("test_bag.py::test_two",)
    assert repair is not None
    assert repair.template == "default"


def test_a_program_that_ends_its_tests_is_not_localised(suite_of: Any) -> None:
    ends = "import os\n\n\ndef test_end():\n    os._exit(3)\n"
    assert localise(suite_of({"m.py": "x = 1\n", "test_m.py": ends})) is None


def test_candidate_that_damages_the_report_does_not_end_the_search(suite_of: Any) -> None:
    """A candidate with result 0 ends the supervisor of the run; an addition is the repair."""
    test = (
        "import os\n\nfrom area import area\n\n\n"
        "def test_area():\n    if area(2, 3) == 0:\n        os.kill(os.getppid(), 9)\n"
        "    assert area(2, 3) == 5\n"
    )
    program = "def area(a, b):\n    return a - b\n"
    _, repair = searched(suite_of({"area.py": program, "test_area.py": test}))
    assert repair is not None
    assert repair.applied(program) == program.replace("-", "+")
