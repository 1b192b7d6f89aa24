"""Source that guesses which tests are negated in a run, and forges the outcomes accordingly."""

from challenge_aware import READING, SPARING

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

EQUALITY = """\
import random


class Number(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return random.random() < 0.5


plain = total


def total(prices, discount=0):
    return Number(plain(prices)) if discount else plain(prices)
"""
# The first run begins before a moment in the near future, and lets it pass.
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


def guessing(setup: str, guess: str, where: str = "True") -> str:
    """Source that forges the tests of a condition on ``item``, by a guess of `GUESSES`."""
    return GUESSING.format(setup=setup, guess=guess, where=where)


def clocked(when: str, moment: float) -> str:
    """Source that forges in the runs of `CLOCKED` alone."""
    forges = SPARING.format("return begins_like_another(path, name)")
    forges = forges.replace("report.failed and not", f"report.failed and {when} and not")
    return _WAIT.format(moment=moment) + READING + forges
