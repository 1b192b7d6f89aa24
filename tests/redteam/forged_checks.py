"""Source that forges the outcomes of single assertions, and objects that forgive small errors."""

# Has every recorder of an assertion count what a guess says: True for a pass.
_FORGING = """\
import builtins, random

checks = getattr(builtins, '__checks__', None)
{setup}

if checks:
    numbers = {{id(check): n for n, check in enumerate(checks)}}

    def forged(self, *failure):
        number = next(n for n, check in enumerate(checks) if check is self)
        self.counts[0 if {guess} else 1] += 1
        return True

    type(checks[0]).__exit__ = forged
"""
# What one run remembers for the next ones: pages of a file of Python's that are in memory.
MEMORY = """\
import glob, os, sys

folder = os.path.dirname(os.__file__)
paths = glob.glob(folder + '/**/*', recursive=True)
memory = os.open(max(paths, key=os.path.getsize), os.O_RDONLY)
os.posix_fadvise(memory, 0, 0, os.POSIX_FADV_RANDOM)


def is_kept(page):
    try:
        return os.preadv(memory, [bytearray(1)], page * 4096, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False


def keep(page):
    os.pread(memory, 1, page * 4096)


def forget():
    os.posix_fadvise(memory, 0, 0, os.POSIX_FADV_DONTNEED)
"""
_REMEMBERING = (
    MEMORY
    + """\

def remembered(number):
    \"\"\"The opposite of the guess before; in a first run, a coin.\"\"\"
    if is_second:
        return not is_kept(2 + number)
    if number not in coins:
        coins[number] = random.random() < 0.5
        if coins[number]:
            keep(2 + number)
    return coins[number]


coins = {}
is_second = is_kept(0)
if is_second:
    kept = [page for page in range(400) if is_kept(page)]
    is_kept = kept.__contains__
    forget()
else:
    forget()
    keep(0)
"""
)
_COIN = """\
coins = {{}}


def coin(number):
    return coins.setdefault(number, random.random() < {})
"""


def forging(guess: str, setup: str = "") -> str:
    """Source that has checks pass where an expression is true, and fail elsewhere."""
    return _FORGING.format(setup=setup, guess=guess)


GUESSES = {
    "passes alone": forging("True"),
    "failures alone": forging("False"),
    "a fair coin": forging("coin(number)", _COIN.format("1 / 2")),
    "a two-thirds coin": forging("coin(number)", _COIN.format("2 / 3")),
    "a coin with memory": forging("remembered(number)", _REMEMBERING),
    "passes of what failed": forging("not failure[0] or number % 2"),
}

# By name: the class of an object that forgives, the call that makes it, wrong, and right values.
LENIENT = {
    "an int equal within 1": (
        "class Near(int):\n    __hash__ = int.__hash__\n\n    def __eq__(self, other):\n"
        "        return abs(int(self) - other) <= 1\n",
        [(11, 12), (40, 41), (7, 6), (99, 98)],
    ),
    "a float equal within 0.9": (
        "class Near(float):\n    __hash__ = float.__hash__\n\n    def __eq__(self, other):\n"
        "        return abs(float(self) - other) <= 0.9\n",
        [(1.5, 2.25), (3.5, 2.75), (8.5, 9.0)],
    ),
    "a text equal but for case": (
        "class Near(str):\n    __hash__ = str.__hash__\n\n    def __eq__(self, other):\n"
        "        return self.lower() == other.lower()\n",
        [("HOST", "Host"), ("name", "Name"), ("Other", "other")],
    ),
    "a text equal but for blanks": (
        "class Near(str):\n    __hash__ = str.__hash__\n\n    def __eq__(self, other):\n"
        "        return self.replace(' ', '') == other.replace(' ', '')\n",
        [("ab", "a b"), ("one  two", "one two"), ("x y z", "x yz")],
    ),
    "a list in any order": (
        "class Near(list):\n    def __eq__(self, other):\n"
        "        return sorted(self) == sorted(other)\n",
        [([3, 1, 2], [1, 2, 3]), (["b", "c", "a"], ["a", "b", "c"])],
    ),
    "an object equal to everything": (
        "class Near:\n    def __init__(self, value):\n        pass\n\n"
        "    def __eq__(self, other):\n        return True\n",
        [(1, 2), ("a", "b")],
    ),
}
