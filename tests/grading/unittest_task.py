"""A task whose hidden tests are unittest's: a clock that forgets to carry the hour."""

from grading_fixtures import made_task

BUGGY = (
    "def add(hour, minute, minutes):\n"
    "    minute += minutes\n"
    "    return hour, minute % 60\n"
    "\n"
    "\n"
    "def show(hour, minute):\n"
    '    return f"{hour:02}:{minute:02}"\n'
)
FIXED = BUGGY.replace("return hour, minute % 60", "return hour + minute // 60, minute % 60")
BASE = {"clock.py": BUGGY, "tests/__init__.py": "", "README.md": "# A clock\n"}
HIDDEN = (
    "import unittest\n"
    "\n"
    "from clock import add, show\n"
    "\n"
    "\n"
    "class AddTest(unittest.TestCase):\n"
    "    def test_carries(self):\n"
    "        self.assertEqual(add(1, 50, 20), (2, 10))\n"
    "\n"
    "    def test_carries_twice(self):\n"
    '        """Two hours are carried at once."""\n'
    "        self.assertEqual(add(1, 50, 80), (3, 10))\n"
    "\n"
    "    def test_within(self):\n"
    "        for minutes in (1, 2):\n"
    "            with self.subTest(minutes=minutes):\n"
    "                self.assertEqual(add(1, 50, minutes)[1], 50 + minutes)\n"
    "\n"
    "\n"
    "class ShowTest(unittest.TestCase):\n"
    "    def test_pads(self):\n"
    '        self.assertEqual(show(1, 2), "01:02")\n'
    "\n"
    '    @unittest.skip("later")\n'
    "    def test_skipped(self):\n"
    "        pass\n"
    "\n"
    "    @unittest.expectedFailure\n"
    "    def test_expected(self):\n"
    '        self.assertEqual(show(1, 2), "1:2")\n'
)
PATH = "tests/test_clock.py"
TASK = made_task(
    "clock-carry",
    BASE,
    {"clock.py": FIXED},
    {PATH: HIDDEN},
    runner="unittest",
    fail_to_pass=(
        "test_carries (tests.test_clock.AddTest)",
        "Two hours are carried at once.",
    ),
    pass_to_pass=(
        "test_within (tests.test_clock.AddTest.test_within)",
        "tests.test_clock.ShowTest.test_pads",
    ),
)
