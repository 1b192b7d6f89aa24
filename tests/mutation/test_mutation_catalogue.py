"""The catalogue of operators: their repairs and bugs, and code that they do not edit."""

import ast

import pytest

from coding_gym.mutation.catalogue import BUG_KINDS, TEMPLATES, bugs
from coding_gym.mutation.sites import sites
from coding_gym.mutation.source import Source
from coding_gym.repair.candidates import candidates
from coding_gym.source_text import apply_edits
from coding_gym.synthesis.mutants import find_mutants

# Edits that templates must propose: a template, a snippet, and the edited snippet. An edited
# snippet without a line end is only the changed part.
EXPECTED = [
    ("compare", "x = (a) < (b)\n", "x = (a) <= (b)\n"),
    ("arithmetic", "total -= n\n", "total += n\n"),
    ("boolean", "if a and (b or c):\n    f()\n", "if a:\n    f()\n"),
    ("off_by_one", "x = range(n)\n", "x = range(n + 1)\n"),
    ("constant", "x = 1\n", "x = -1\n"),
    ("argument", "f(a, (b), c)\n", "f((b), a, c)\n"),
    ("argument", "f(a, (b))\n", "f(a)\n"),
    ("keyword", "x = sorted(a, reverse=True)\n", "x = sorted(a, reverse=False)\n"),
    ("keyword", "f(a=(1),  b=2)\n", "f(b=2)\n"),
    ("keyword", "f(a=(1),  b=2)\n", "f(a=(1))\n"),
    ("keyword", "f(a=1, **b)\n", "f(**b)\n"),
    ("keyword", "f(a=1)\n", "f()\n"),
    ("variable", "x = a.start\ny = a.end\n", "x = a.end\ny = a.end\n"),
    ("method", "x = a.lower()\n", "x = a.casefold()\n"),
    (
        "default",
        "def f(a, b=[]):\n    '''Doc.'''\n    return b\n",
        "def f(a, b=None):\n    '''Doc.'''\n    if b is None:\n        b = []\n    return b\n",
    ),
    (
        "default",
        "def f(*, b=dict()):\n\treturn b\n",
        "def f(*, b=None):\n\tif b is None:\n\t\tb = dict()\n\treturn b\n",
    ),
    ("copy", "class A:\n    def f(self, x):\n        self.x = x\n", "self.x = list(x)"),
    ("order", "for a in b:\n    f()\n", "for a in sorted(b):\n    f()\n"),
    ("exception", "try:\n    f()\nexcept KeyError:\n    g()\n", "except IndexError:"),
    ("statement", "a()\nb()\n", "b()\n"),
]

# Bugs that the catalogue must make: the kind, a program, and a part of the broken program.
BUGS = [
    ("comparison", "def f(a, b):\n    return a == b\n", "a != b"),
    ("boundary", "def f(a, b):\n    return a  <  b\n", "a  <=  b"),
    ("boolean", "def f(a, b):\n    return a and b\n", "a or b"),
    ("branch", "def f(a, b):\n    return a if b else 0\n", "0 if b else a"),
    ("branch", "def f(a, b):\n    return a if b else(0)\n", "(0) if b else a"),
    ("branch", "def f(a, b):\n    return (a)if b else 0\n", "0 if b else (a)"),
    ("arithmetic", "def f(a, b):\n    return (a +\n            b)\n", "(a -\n            b)"),
    ("constant", "def f():\n    return 7\n", "return 8"),
    ("default", "def f(a=3):\n    return a\n", "a=4"),
    ("slice", "def f(a):\n    return a[1:]\n", "a[2:]"),
    ("argument_order", "def f(a, b):\n    return g(a,  b)\n", "g(b,  a)"),
    ("missing_argument", "def f(a, b):\n    return g(a, key=b)\n", "return g(a)"),
    ("alias", "def f(a):\n    return a.copy()\n", "return a\n"),
    ("wrong_variable", "def f(a, b):\n    return a\n", "return b"),
    (
        "wrong_attribute",
        "class C:\n    def f(self):\n        self.head = 1\n        return self.heads\n",
        "return self.head\n",
    ),
    ("removed_guard", "def f(a):\n    if a:\n        return 0\n    return 1\n", "f(a):\n    ret"),
    ("removed_statement", "def f(a):\n    a.sort()\n    return a\n", "f(a):\n    return a"),
    (
        "early_return",
        "def f(a):\n    b = a\n    b = b + 1\n    return b\n",
        "    b = a\n    return b\n    b = b + 1\n",
    ),
    ("exception_class", 'def f():\n    raise KeyError("x")\n', 'raise IndexError("x")'),
    ("loop", "def f(a):\n    for b in a:\n        continue\n", "        break\n"),
    ("wrong_method", "def f(a):\n    return a.strip()\n", "a.lstrip()"),
]
# Many constructs, so that every template proposes an edit.
DENSE = '''\
"""A module."""
from __future__ import annotations

import os

LIMIT, NAME = -1, "x"


@decorated(flag=True)
class Thing(Base, metaclass=Meta):
    """A thing."""

    size: int = 3
    names: list[str] = []

    def __init__(self, a, b=[], *rest, c={}, d=None, **more):
        """Makes."""
        self.a = a; self.b = b
        self.c, self.d = c, d

    async def walk(self, items):
        async for item in items:
            if item is None: continue
            elif (item.size >= self.size
                  and not item.hidden):  # a comment
                await item.close()
                yield item
            else:
                break
        else:
            return

    def find(self, text, *, flag=True):
        with open(text) as file, lock:
            lines = [x.strip() for x in file if x and "é" not in x]
        try:
            n = int(lines[0][1:-1]) % 3 if lines else LIMIT
        except (ValueError, IndexError) as problem:
            raise KeyError(f"bad {text!r} {n + 1:>{self.size}}") from problem
        except OSError:
            return None
        finally:
            self.done = True
        while n < len(lines) and flag or self.a:
            n += 1
            if n in self.seen: break
        match n:
            case 0 | 1:
                return sorted(lines, key=lambda s: (s.lower(), -len(s)), reverse=True)
            case [first, *others] if first > 0:
                del others[0]
        text = """
  several
lines""".format(
            n, *lines,
        )
        return {k: v for k, v in zip(lines, self.b)} or {n, *self.c}


lookup = lambda key, default=0: table.get(key, default)
if __name__ == "__main__": os.system(NAME)
'''


def everywhere(text: str) -> dict[int, float]:
    return dict.fromkeys(range(1, text.count("\n") + 2), 1.0)


def test_each_template_proposes_its_edits() -> None:
    for template, before, after in EXPECTED:
        results = [
            apply_edits(before, candidate.edits)
            for candidate in candidates(Source("a.py", before), everywhere(before))
            if candidate.template == template
        ]
        if after.endswith("\n"):
            assert after in results, (template, before)
        else:  # `after` is only the changed part
            assert any(after in text for text in results), (template, before, after)
    assert {case[0] for case in EXPECTED} == {template.name for template in TEMPLATES}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_change_of_a_dense_file_parses(newline: str) -> None:
    text = DENSE.replace("\n", newline)
    source = Source("a.py", text)
    results = list(candidates(source, everywhere(text)))
    changed = [apply_edits(text, candidate.edits) for candidate in results]
    assert len(set(changed)) == len(changed) > 300
    assert {candidate.template for candidate in results} == {t.name for t in TEMPLATES}
    broken = [mutant.text for mutant in find_mutants(source, lambda _: True)]
    assert len(broken) > 25
    for new in changed + broken:
        ast.parse(new)
        assert new != text
        assert '"""A module."""' in new
        assert newline == "\n" or "\n" not in new.replace("\r\n", "")


def programs(kind: str, text: str) -> list[str]:
    source = Source("m.py", text)
    return [mutant.text for mutant in find_mutants(source, lambda _: True, [kind])]


@pytest.mark.parametrize(("kind", "text", "expected"), BUGS)
def test_each_kind_of_bug_is_made(kind: str, text: str, expected: str) -> None:
    results = programs(kind, text)
    assert any(expected in program for program in results), results
    assert text not in results


def test_every_kind_of_bug_has_a_case() -> None:
    kinds = {change.bug for site in sites(Source("m.py", DENSE)) for change in bugs(site)}
    assert kinds <= set(BUG_KINDS) == {kind for kind, _, _ in BUGS}


def test_lines_that_no_test_runs_are_not_edited() -> None:
    requested = []

    def is_run(lines: range) -> bool:
        requested.append((lines.start, lines.stop - 1))
        return False

    assert list(find_mutants(Source("m.py", DENSE), is_run)) == []
    assert (24, 25) in requested  # the head of the `elif`, without its body


def test_the_parts_of_a_match_statement_have_their_own_lines() -> None:
    text = (
        "def f(a, b):\n"
        "    b += 1\n"
        "    match g(a, b):\n"
        "        case 1:\n"
        "            return 0\n"
        "        case int() if a < b:\n"
        "            return b\n"
    )
    bug_lines = {
        (mutant.change.bug, mutant.lines.start)
        for mutant in find_mutants(Source("m.py", text), lambda _: True)
    }
    assert {("argument_order", 3), ("constant", 4), ("boundary", 6)} <= bug_lines
    assert not any(line == 1 for _, line in bug_lines)


def test_removing_a_statement_removes_the_comment_above() -> None:
    text = "def f(a):\n    # Sorted first.\n    a.sort()\n    return a\n"
    assert programs("removed_statement", text) == ["def f(a):\n    return a\n"]


@pytest.mark.parametrize("data", [b"def (:\n", b"x = '\xff'\n", b"x = '\0'\n"])
def test_files_that_are_not_utf8_or_python_are_skipped(data: bytes) -> None:
    assert Source.from_bytes("m.py", data) is None
