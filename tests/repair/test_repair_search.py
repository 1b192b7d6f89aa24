"""Localisation and search against real programs, in a sandbox."""

from typing import Any

import pytest

from coding_gym.repair.candidates import Candidate
from coding_gym.repair.localisation import Localisation, localise
from coding_gym.repair.search import Search

pytestmark = pytest.mark.slow

QUEUE = """\
LIMIT = 2


class Queue:
    def __init__(self):
        self.items = []

    def push(self, item):
        if len(self.items) > LIMIT:
            return False
        self.items.append(item)
        return True


def first(queue):
    return queue.items[0]
"""
TESTS = """\
from queues import Queue, first


def test_full():
    queue = Queue()
    assert queue.push(1) and queue.push(2)
    assert not queue.push(3)


def test_first():
    queue = Queue()
    queue.push(1)
    assert first(queue) == 1
"""
FILES = {"queues.py": QUEUE, "test_queues.py": TESTS}
FULL = "test_queues.py::test_full"


# Its second test fails only after the first one.
BAG = {
    "bag.py": "def add(x, bag=[]):\n    bag.append(x)\n    return bag\n",
    "test_bag.py": "from bag import add\n\n\ndef test_one():\n    assert add(1) == [1]\n\n\n"
    "def test_two():\n    assert add(2) == [2]\n",
}


def searched(tests: Any) -> tuple[Localisation, Search, Candidate | None]:
    found = localise(tests)
    assert found is not None
    search = Search(tests, found)
    return found, search, search.run()


def test_tracing_says_what_failed_and_which_lines_ran(open_tests: Any) -> None:
    found = localise(open_tests(FILES))
    assert found is not None
    assert found.baseline.failing == (FULL,)
    assert found.baseline.passing == ("test_queues.py::test_first",)
    lines = {line: hits for (_, line), hits in found.spectrum.hits.items()}
    # Of push, all but the line that no test reaches.
    assert lines == dict.fromkeys((6, 9, 11, 12), (1, 1))


def test_the_repair_makes_failing_tests_pass_and_breaks_none(open_tests: Any) -> None:
    _, search, chosen = searched(open_tests(FILES))
    assert chosen is not None
    assert (chosen.template, chosen.line) == ("compare", 9)
    assert [edit.replacement for edit in chosen.edits] == [">="]
    assert any(trial.is_plausible for trial in search.trials)
    assert any(not trial.num_fixed for trial in search.trials)


def test_order_dependent_failure_is_tried_in_order(open_tests: Any) -> None:
    found, _, chosen = searched(open_tests(BAG))
    assert found.baseline.in_order
    assert found.baseline.failing == ("test_bag.py::test_two",)
    assert chosen is not None
    assert chosen.template == "default"


def test_a_program_that_ends_its_tests_is_not_localised(open_tests: Any) -> None:
    ends = "import os\n\n\ndef test_end():\n    os._exit(3)\n"
    assert localise(open_tests({"m.py": "x = 1\n", "test_m.py": ends})) is None
