"""How programs are broken: what each operator does, and what none of them touches."""

import ast
import sys

import pytest

from coding_gym.errors import MissingDependencyError
from coding_gym.tasks.synthesis.mutants import Mutant, find_sites
from coding_gym.tasks.synthesis.operators import OPERATOR_NAMES

CASES = [
    ("comparison", "def f(a, b):\n    return a == b\n", "a != b"),
    ("comparison", "def f(a, b):\n    return a not  in b\n", "a in b"),
    ("boundary", "def f(a, b):\n    return a  <  b\n", "a  <=  b"),
    ("boolean", "def f(a, b):\n    return a and b\n", "a or b"),
    ("boolean", "def f(a, b):\n    return not (a or b)\n", "return (a or b)"),
    ("branch", "def f(a, b):\n    return a if b else 0\n", "0 if b else a"),
    ("arithmetic", "def f(a, b):\n    return (a +\n            b)\n", "(a -\n            b)"),
    ("arithmetic", "def f(a, b):\n    a += b\n    return a\n", "a -= b"),
    ("constant", "def f():\n    return 7\n", "return 8"),
    ("constant", "def f():\n    return True\n", "return False"),
    ("default", "def f(a=3):\n    return a\n", "a=4"),
    ("default", "def f(a=True):\n    return a\n", "a=False"),
    ("slice", "def f(a):\n    return a[1:]\n", "a[2:]"),
    ("slice", "def f(a):\n    return a[0]\n", "a[-1]"),
    ("argument_order", "def f(a, b):\n    return g(a,  b)\n", "g(b,  a)"),
    ("missing_argument", "def f(a, b):\n    return g(a, key=b)\n", "return g(a)"),
    ("alias", "def f(a):\n    return a.copy()\n", "return a\n"),
    ("alias", "def f(a):\n    return list(a or ())\n", "return (a or ())"),
    ("alias", "def f(a):\n    return a[:]\n", "return a\n"),
    ("wrong_variable", "def f(a, b):\n    return a\n", "return b"),
    (
        "wrong_attribute",
        "class C:\n    def f(self):\n        self.head = 1\n        return self.heads\n",
        "return self.head\n",
    ),
    ("removed_guard", "def f(a):\n    if a:\n        return 0\n    return 1\n", "f(a):\n    ret"),
    ("removed_statement", "def f(a):\n    a.sort()\n    return a\n", "f(a):\n    return a"),
    ("removed_statement", "def f(a):\n    a.sort()\n", "def f(a):\n    pass\n"),
    (
        "early_return",
        "def f(a):\n    b = a\n    b = b + 1\n    return b\n",
        "    b = a\n    return b\n    b = b + 1\n",
    ),
    ("exception_class", 'def f():\n    raise KeyError("x")\n', 'raise IndexError("x")'),
    (
        "exception_class",
        "def f():\n    try:\n        g()\n    except ValueError:\n        pass\n",
        "except TypeError:",
    ),
    ("loop", "def f(a):\n    for b in a:\n        continue\n", "        break\n"),
    ("loop", "def f(a):\n    return range(a)\n", "range(0, a - 1)"),
    ("loop", "def f(a):\n    for b in a:\n        g(b)\n", "for b in list(a)[1:]:"),
    ("string_method", "def f(a):\n    return a.strip()\n", "a.lstrip()"),
]
UGLY = '''\
"""A module."""
from __future__ import annotations
import os


class  Shelf( object ):   # spaced as nobody would
    size : int=3

    def put (self , book , at = 0 , * , twice=False):
        """Docstrings stay: 1 < 2."""
        if (book is None
                or  at<0):   # a comment
            raise ValueError ( "no" )
        total = 0
        for n in range( at , 10 ):
            if n==4 :continue
            total += n ; extra = total*2
            if twice: break
        else :
            total = -1
        return [ total , extra ][ :at ] , f"{total!r}"  # é
'''


def programs(operator: str, text: str) -> list[str]:
    data = text.encode()
    sites = find_sites("m.py", data, lambda *_: True, [operator])
    return [Mutant((site,)).files({"m.py": data})["m.py"].decode() for site in sites]


@pytest.mark.parametrize(("operator", "text", "wanted"), CASES)
def test_an_operator_breaks_what_it_says(operator: str, text: str, wanted: str) -> None:
    found = programs(operator, text)
    assert any(wanted in program for program in found), found
    assert text not in found


def test_there_are_operators_enough() -> None:
    assert {operator for operator, _, _ in CASES} == set(OPERATOR_NAMES)
    assert len(OPERATOR_NAMES) >= 14


def test_every_broken_program_parses_and_keeps_its_looks() -> None:
    data = UGLY.encode()
    sites = list(find_sites("m.py", data, lambda *_: True))
    assert len(sites) > 25
    for site in sites:
        program = Mutant((site,)).files({"m.py": data})["m.py"]
        ast.parse(program)
        lines = data.split(b"\n")
        assert program.startswith(b"\n".join(lines[: site.first_line - 2]))
        assert program.endswith(b"\n".join(lines[site.last_line + 3 :]))
        assert b"1 < 2" in program


def test_lines_that_no_test_runs_are_left_alone() -> None:
    data = UGLY.encode()
    asked = []

    def is_run(first: int, last: int) -> bool:
        asked.append((first, last))
        return False

    assert list(find_sites("m.py", data, is_run)) == []
    assert (11, 12) in asked  # the head of the `if`, without its body


def test_a_comment_that_tells_of_a_removed_statement_goes_with_it() -> None:
    text = "def f(a):\n    # Sorted first.\n    a.sort()\n    return a\n"
    assert programs("removed_statement", text) == ["def f(a):\n    return a\n"]


def test_a_file_that_is_no_python_has_no_sites() -> None:
    assert list(find_sites("m.py", b"def (:\n", lambda *_: True)) == []
    assert list(find_sites("m.py", b"x = '\xff'\n", lambda *_: True)) == []


def test_without_libcst_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libcst", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'coding-gym\[synthesis\]'"):
        list(find_sites("m.py", b"x = 1\n", lambda *_: True))
