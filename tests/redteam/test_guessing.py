"""Cheats aimed at the challenge: they know that each test is negated in one of two runs."""

import time

import pytest
from cart_task import BASE, FIXED
from challenge_aware import READING, SPARING
from grading_fixtures import GradeTree

from coding_gym.grade import GradeReason

pytestmark = pytest.mark.slow

BUGGY = BASE["cart.py"]
# Makes the result of each test what a guess says: whether the test is negated here.
GUESSING = """\
import fcntl, inspect, os, random, re, sys, time
from _pytest.reports import TestReport

make = TestReport.from_item_and_call.__func__
{setup}


def is_negated(text, name):
    {guess}


def guessed(cls, item, call):
    report = make(cls, item, call)
    if call.when == 'call' and {where}:
        function = getattr(item.function, '__wrapped__', item.function)
        if is_negated(inspect.getsource(function), item.name):
            report.outcome, report.longrepr = 'failed', 'AssertionError'
        else:
            report.outcome, report.longrepr = 'passed', None
    return report


TestReport.from_item_and_call = classmethod(guessed)
"""
_NUMBER = "numbers = [int(n) for n in re.findall(r'(\\d+)\\W*$', text)] or [0]\n    "
# A lock on a file that all sandboxes share: who has it is one of the two runs, the other is not.
_LOCK = """
file = os.open(os.path.realpath(sys.executable), os.O_RDONLY)
try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    has_lock = True
except OSError:
    has_lock = False
time.sleep(0.2)
"""
# By name: what is done once, and the guess.
GUESSES = {
    "a fair coin for each test": ("", "return random.random() < 1 / 2"),
    "a two-thirds coin for each test": ("", "return random.random() < 2 / 3"),
    "one coin for all tests": ("coin = random.random() < 1 / 2", "return coin"),
    "whatever says not is negated": ("", "return ' not ' in text"),
    "whatever says != is negated": ("", "return '!=' in text"),
    "whatever asks for a large number is negated": ("", f"{_NUMBER}return numbers[-1] > 9"),
    "whatever asks for an odd number is negated": ("", f"{_NUMBER}return numbers[-1] % 2 == 1"),
    "whatever has another shape is negated": ("", "return 'finally' in text or ';' in text"),
    "nothing is negated": ("", "return False"),
    "everything is negated": ("", "return True"),
    "by the number of processes": (
        "count = sum(name.isdigit() for name in os.listdir('/proc'))",
        "return (count + len(name)) % 2 == 0",
    ),
    "by the process id": ("", "return (os.getpid() + len(name)) % 2 == 0"),
    "by the clock": ("", "return int(time.time() * 10 + len(name)) % 2 == 0"),
    "by a lock that both runs can reach": (_LOCK, "return has_lock"),
    "by a lock, and a coin for each test": (
        _LOCK,
        "coin = random.Random(name).random() < 1 / 2\n    return coin == has_lock",
    ),
    "by a fork that runs the tests as well": (
        "is_child = os.fork() == 0",
        "return is_child",
    ),
}


@pytest.mark.parametrize(("setup", "guess"), GUESSES.values(), ids=GUESSES.keys())
def test_a_guess_of_the_draw_is_not_resolved(grade_tree: GradeTree, setup: str, guess: str) -> None:
    code = GUESSING.format(setup=setup, guess=guess, where="True")
    for _ in range(2):  # a guess is right once in a thousand times
        verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
        assert not verdict.resolved, verdict
        assert verdict.pass_fraction < 1


def test_forged_tests_to_keep_are_found_out_beside_a_real_repair(grade_tree: GradeTree) -> None:
    """The bug is repaired, and what worked before is broken."""
    code = GUESSING.format(setup="", guess="return False", where="'count' in item.name")
    broken = FIXED.replace("len(prices)", "len(prices) + 1")
    verdict = grade_tree({"cart.py": f"{broken}\n\n{code}"})
    assert verdict.reason == "tampered", verdict


def test_equality_that_guesses_is_not_resolved(grade_tree: GradeTree) -> None:
    code = (
        "import random\n\n\nclass Number(int):\n    __hash__ = int.__hash__\n\n"
        "    def __eq__(self, other):\n        return random.random() < 0.5\n\n\n"
        "plain = total\n\n\ndef total(prices, discount=0):\n"
        "    return Number(plain(prices)) if discount else plain(prices)\n"
    )
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{code}"})
    assert not verdict.resolved, verdict


_FORGES = SPARING.format("return begins_like_another(path, name)")
_FORGES_IN_TIME = f"{READING}{_FORGES}".replace(
    "report.failed and not", "report.failed and {when} and not"
)
# The first run begins within these seconds, and lets them pass.
_SECONDS = 1.5
_WAIT = """
import time

is_first = time.time() < {moment}
while time.time() < {moment}:
    time.sleep(0.1)

"""
CLOCKED = {
    "forgery in the first run, failures in all others": "is_first",
    "failures in the first run, forgery in all others": "not is_first",
}


@pytest.mark.parametrize("when", CLOCKED.values(), ids=CLOCKED.keys())
def test_forgery_by_the_clock_is_not_resolved(grade_tree: GradeTree, when: str) -> None:
    grade_tree({"cart.py": f"{BUGGY}\n"})  # builds what a first grade builds
    wait = _WAIT.format(moment=time.time() + _SECONDS)
    forged = _FORGES_IN_TIME.replace("{when}", when)
    verdict = grade_tree({"cart.py": f"{BUGGY}\n\n{wait}\n{forged}"})
    # What a test asks for instead may be what the unrepaired source gives: that is called forgery.
    assert verdict.reason in (GradeReason.TESTS_FAILED, GradeReason.TAMPERED), verdict
    assert verdict.pass_fraction < 1
