"""A task of a framework that is tested as Django is: by a script, labels, a runner of its own."""

from made_tasks import made_task

RUNNER = (
    "import os\n"
    "import unittest\n"
    "\n"
    "\n"
    "def flat(suite):\n"
    "    for test in suite:\n"
    "        yield from flat(test) if isinstance(test, unittest.TestSuite) else [test]\n"
    "\n"
    "\n"
    "class DiscoverRunner:\n"
    "    test_suite = unittest.TestSuite\n"
    "    test_runner = unittest.TextTestRunner\n"
    "\n"
    "    def __init__(self, verbosity=1, failfast=False, parallel=0):\n"
    "        self.verbosity, self.failfast = verbosity, failfast\n"
    "        self.parallel = parallel or int(os.environ.get('DJANGO_TEST_PROCESSES', 8))\n"
    "\n"
    "    def build_suite(self, labels):\n"
    "        if self.parallel > 1:\n"
    "            raise SystemExit('the tests would run in other processes')\n"
    "        load = unittest.defaultTestLoader.loadTestsFromName\n"
    "        return self.test_suite([test for label in labels for test in flat(load(label))])\n"
    "\n"
    "    def run_suite(self, suite):\n"
    "        runner = self.test_runner(verbosity=self.verbosity, failfast=self.failfast)\n"
    "        return runner.run(suite)\n"
    "\n"
    "    def run_tests(self, labels):\n"
    "        result = self.run_suite(self.build_suite(labels))\n"
    "        return len(result.failures) + len(result.errors)\n"
)
# A script that starts tests, with what it asserts of its arguments and makes its labels of.
_SCRIPT = (
    "import argparse\n"
    "import sys\n"
    "\n"
    "parser = argparse.ArgumentParser()\n"
    "parser.add_argument('labels', nargs='*')\n"
    "parser.add_argument('--verbosity', type=int, default=1)\n"
    "parser.add_argument('--settings')\n"
    "parser.add_argument('--failfast', action='store_true')\n"
    "parser.add_argument('--parallel', nargs='?', type=int, default=0)\n"
    "\n"
    "if __name__ == '__main__':\n"
    "    options = parser.parse_args()\n"
    "    labels = options.labels\n"
    "    {start}\n"
    "    from kit.runner import DiscoverRunner\n"
    "\n"
    "    runner = DiscoverRunner(options.verbosity, options.failfast, options.parallel)\n"
    "    sys.exit(bool(runner.run_tests(labels)))\n"
)
RUNTESTS = _SCRIPT.format(
    start="assert options.settings == 'test_sqlite'; sys.path.append('.')",
)
MANAGE = _SCRIPT.format(start="assert labels.pop(0) == 'test'")
BUGGY = "def title(words):\n    return words.title()\n"
FIXED = "def title(words):\n    return ' '.join(word.capitalize() for word in words.split())\n"
PATH = "tests/text_tests/tests.py"
HIDDEN = (
    "import unittest\n"
    "\n"
    "from kit.text import title\n"
    "\n"
    "\n"
    "class Cases:\n"
    "    def test_one_word(self):\n"
    "        self.assertEqual(title('one'), 'One')\n"
    "\n"
    "\n"
    "class TitleTests(Cases, unittest.TestCase):\n"
    "    def test_apostrophe(self):\n"
    '        """\n'
    "        Letters after an apostrophe stay small.\n"
    "\n"
    "        As in English.\n"
    '        """\n'
    '        self.assertEqual(title("don\'t do"), "Don\'t Do")\n'
    "\n"
    "    def test_digits(self):\n"
    "        self.assertEqual(title('1st one'), '1st One')\n"
    "\n"
    "    def test_words(self):\n"
    "        self.assertEqual(title('one two'), 'One Two')\n"
)
BASE = {
    "kit/__init__.py": "",
    "kit/runner.py": RUNNER,
    "kit/text.py": BUGGY,
    "manage.py": MANAGE,
    "tests/runtests.py": RUNTESTS,
    "tests/text_tests/__init__.py": "",
}
TASK = made_task(
    "kit-title",
    BASE,
    {"kit/text.py": FIXED},
    {PATH: HIDDEN},
    runner="django",
    fail_to_pass=(
        "Letters after an apostrophe stay small.",
        "test_digits (text_tests.tests.TitleTests)",
    ),
    pass_to_pass=(
        "test_one_word (text_tests.tests.TitleTests)",
        "test_words (text_tests.tests.TitleTests.test_words)",
    ),
)
