"""Ids of tests in SWE-bench rows: pytest's ids, cut by log parsers, and both forms of unittest."""

import pytest
from grading_fixtures import made_task

from coding_gym.grading import grade
from coding_gym.grading.runners.unittest_ids import parse_id
from coding_gym.patch import Patch
from coding_gym.workspace import TemplateStore

_PARAMETERS = (
    "import unittest\n"
    "\n"
    "import pytest\n"
    "\n"
    "from shapes import area\n"
    "\n"
    "\n"
    "NAMES = ['a b', 'a c', '/data/b', '[x](1)', '<y>', 'd\\n', 'é', 'f(x, [0])', '//e/f']\n"
    "NAMES += ['MouseButton.LEFT', 'MouseButton.RIGHT-1 2']\n"
    "\n"
    "\n"
    '@pytest.mark.parametrize("name", NAMES)\n'
    "def test_name(name):\n"
    "    assert area(2, 3) == 6\n"
    "\n"
    "\n"
    "class TestArea:\n"
    '    @pytest.mark.parametrize("side", [1, "5 or 6"], ids=str)\n'
    "    def test_side(self, side):\n"
    "        assert area(1, 3) == 3\n"
    "\n"
    "    class TestInner:\n"
    "        def test_flat(self):\n"
    "            assert area(1, 0) == 0\n"
    "\n"
    "\n"
    "class OldArea(unittest.TestCase):\n"
    "    def test_old(self):\n"
    "        self.assertEqual(area(5, 5), 25)\n"
)
_BEFORE, _AFTER = ({"shapes.py": f"def area(a, b):\n    return a {o} b\n"} for o in "+*")


@pytest.mark.slow
def test_ids_in_every_form_of_swe_bench_match_pytest_tests(store: TemplateStore) -> None:
    ends = ("a", "/b]", "[x](1)]", "<y>]", "d\\n]", "\\xe9]", "a b]", "f(x,", "//e/f]")
    ends += ("1]", "3-1", "MouseButton.RIGHT-1")
    ids = [f"test_name[{end}" for end in ends]
    ids += ["TestArea::test_side[1]", "TestArea::test_side[5"]
    ids += ["TestArea::TestInner::test_flat", "OldArea::test_old"]
    task = made_task(
        "shapes",
        _BEFORE,
        _AFTER,
        {"test_shapes.py": _PARAMETERS},
        fail_to_pass=tuple(f"test_shapes.py::{name}" for name in ids),
    )
    verdict = grade(task, store.get(task), Patch(task.gold_patch))
    assert verdict.resolved, verdict
    wrong = Patch.between(_BEFORE, {"shapes.py": _BEFORE["shapes.py"] + "\nx = 1\n"})
    statuses = grade(task, store.get(task), wrong).fail_to_pass
    assert set(statuses.values()) == {"failed"}


def test_unittest_ids_are_parsed() -> None:
    cases = [
        ("test_x (mod.Case)", ("mod.py", "Case::test_x")),
        ("test_x (mod.Case.test_x)", ("mod.py", "Case::test_x")),
        ("mod.Case.test_x", ("mod.py", "Case::test_x")),
        ("test_x (pack.mod.lower)", ("pack/mod.py", "lower::test_x")),
        ("pack.mod.Outer.Inner.test_x", ("pack/mod.py", "Outer::Inner::test_x")),
        ("testX (Tests.Case)", ("Tests.py", "Case::testX")),
        ("test_x (Case)", None),
        ("test_x (mod.Case) (number=1)", None),
        ("test_x (mod.Case) [a part]", None),
        ("It adds.", None),
        ("mod.test_x", None),
        ("tests/test_x.py::Case::test_x", None),
    ]
    for test_id, expected in cases:
        parsed = parse_id(test_id)
        assert (parsed and (parsed[0][2], parsed[1])) == expected, test_id
