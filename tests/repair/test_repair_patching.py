import ast
import re
from pathlib import Path

import pytest

from coding_gym.mutation.catalogue import TEMPLATES
from coding_gym.mutation.source import Edit, apply_edits
from coding_gym.repair.candidates import candidates
from coding_gym.repair.patching import Replacement, replacements, undone
from coding_gym.tasks.bundled_tasks import bundled_folder

# Edits that templates must propose: the template, a snippet, and a snippet that it must make of
# it; where the last does not end its line, it is only the part that changes. First operators,
# conditions and constants.
VALUES = [
    ("compare", "if a > b:\n    f()\n", "if a >= b:\n    f()\n"),
    ("compare", "x = (a) < (b)\n", "x = (a) <= (b)\n"),
    ("compare", "x = a not  in b\n", "x = a in b\n"),
    ("compare", "x = 0 < a < b\n", "x = 0 < a <= b\n"),
    ("compare", "x = a is b\n", "x = a == b\n"),
    ("compare", "x = a != b\n", "x = a == b\n"),
    ("arithmetic", "x = a + (b - c)\n", "x = a + (b + c)\n"),
    ("arithmetic", "total -= n\n", "total += n\n"),
    ("arithmetic", "x = a // b\n", "x = a / b\n"),
    ("boolean", "if a and b:\n    f()\n", "if a or b:\n    f()\n"),
    ("boolean", "if a and (b or c):\n    f()\n", "if a:\n    f()\n"),
    ("boolean", "if a and (b or c):\n    f()\n", "if (b or c):\n    f()\n"),
    ("boolean", "if not a:\n    f()\n", "if a:\n    f()\n"),
    ("boolean", "while a.ready:\n    f()\n", "while not a.ready:\n    f()\n"),
    ("boolean", "x = [y for y in z if y]\n", "x = [y for y in z if not y]\n"),
    ("off_by_one", "x = range(n)\n", "x = range(n + 1)\n"),
    ("off_by_one", "x = range(n)\n", "x = range(1, n)\n"),
    ("off_by_one", "x = a[:i]\n", "x = a[:i + 1]\n"),
    ("off_by_one", "x = a[i]\n", "x = a[i - 1]\n"),
    ("off_by_one", "x = a[-1]\n", "x = a[-2]\n"),
    ("off_by_one", "x = len(a) - 1\n", "x = len(a)\n"),
    ("off_by_one", "for i, a in enumerate(b):\n    f()\n", "enumerate(b, 1)"),
    ("constant", "x = True\n", "x = False\n"),
    ("constant", "x = 1\n", "x = -1\n"),
    ("constant", "x = ''\n", "x = None\n"),
    ("constant", "x = None\n", 'x = ""\n'),
    ("constant", "x = 60\ny = 24\n", "x = 24\ny = 24\n"),
    ("constant", "x = 'day'\ny = 'hour'\n", "x = 'hour'\ny = 'hour'\n"),
]
# What is called, with what, by which name.
CALLS = [
    ("argument", "f(a, (b), c)\n", "f((b), a, c)\n"),
    ("argument", "f(a, (b))\n", "f(a)\n"),
    ("keyword", "x = sorted(a)\n", "x = sorted(a, reverse=True)\n"),
    ("keyword", "a.sort()\nb.sort(key=rank)\n", "a.sort(key=rank)\nb.sort(key=rank)\n"),
    ("keyword", "x = open(p,)\n", 'x = open(p, encoding="utf-8")\n'),
    ("keyword", "x = a.split()\n", "x = a.split(None, 1)\n"),
    ("keyword", "x = a.split(s)\n", "x = a.split(s, maxsplit=1)\n"),
    ("keyword", "x = max(a)\n", "x = max(a, default=None)\n"),
    ("keyword", "x = zip(a, b)\n", "x = zip(a, b, strict=True)\n"),
    ("keyword", "x = f(a, deep=True)\n", "x = f(a, deep=False)\n"),
    ("keyword", "x = f(a, deep=True)\n", "x = f(a)\n"),
    ("variable", "def f(low, high):\n    return low\n", "def f(low, high):\n    return high\n"),
    ("variable", "x = a.start\ny = a.end\n", "x = a.end\ny = a.end\n"),
    ("variable", "def f(text, size):\n    return g(size=text)\n", "g(size=size)"),
    ("variable", "def load_a(): 1\ndef load_b(): 1\nx = load_a()\n", "x = load_b()"),
    ("method", "x = a.strip()\n", "x = a.rstrip()\n"),
    ("method", "x = a.lower()\n", "x = a.casefold()\n"),
    ("method", "x = max(a)\n", "x = min(a)\n"),
    ("method", "x = any(a)\n", "x = all(a)\n"),
    ("method", "x = a.get(k)\n", "x = a[k]\n"),
    ("method", "x = a[k]\n", "x = a.get(k)\n"),
    ("method", "x = a.setdefault(k, 0)\n", "x = a.get(k, 0)\n"),
]
# Functions, their defaults and guards, and the order of statements.
STATEMENTS = [
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
    ("default", "def f(a=True):\n    return a\n", "def f(a=False):\n    return a\n"),
    ("copy", "class A:\n    def f(self, x):\n        self.x = x\n", "self.x = list(x)"),
    ("copy", "def f(self):\n    return self.x\n", "return self.x.copy()"),
    ("copy", "def f(self, row):\n    self.rows.append(row)\n", "self.rows.append(dict(row))"),
    ("copy", "def f(x):\n    return x\n", "return x[:]"),
    ("guard", "def f(x):\n    return x.y\n", "if x is None:\n        return None\n    return"),
    (
        "guard",
        "def f(x):\n    if h(): return []\n    g(x)\n",
        "if not x:\n        return []\n    g",
    ),
    (
        "guard",
        "def f(xs):\n    seen = set()\n    for x in xs:\n        g(x)\n",
        "def f(xs):\n    seen = set()\n    for x in xs:\n        if x in seen:\n"
        "            continue\n        g(x)\n",
    ),
    ("wrap", "for a in b:\n    f()\n", "for a in sorted(b):\n    f()\n"),
    ("wrap", "x = a == b\n", "x = int(a) == b\n"),
    ("wrap", "x = set(a)\n", "x = a\n"),
    ("wrap", "x = abs(a + b) * 2\n", "x = (a + b) * 2\n"),
    ("exception", "try:\n    f()\nexcept KeyError:\n    g()\n", "except LookupError:"),
    ("exception", "try:\n    f()\nexcept ValueError:\n    0\n", "except (ValueError, TypeError):"),
    ("exception", "try:\n    f()\nexcept (KeyError, OSError):\n    g()\n", "except OSError:"),
    ("statement", "a()\nb()\n", "b()\na()\n"),
    ("statement", "a()\nb()\n", "b()\n"),
    ("statement", "if a:\n    b()\n", "if a:\n    pass\n"),
    ("statement", "if a:\n    b()\n    c()\n", "if a:\n    b()\nc()\n"),
    (
        "statement",
        "if a:\n    b()\n    c()\nelse:\n    d()\n",
        "if a:\n    b()\nelse:\n    d()\nc()\n",
    ),
    ("statement", "for a in b:\n    c()\nd(a,\n  b)\n", "    c()\n    d(a,\n      b)"),
    ("statement", "for a in b:\n    t = 0\n    c()\n", "t = 0\nfor a in b:\n    c()\n"),
    ("statement", "t = 0\nfor a in b:\n    c()\n", "for a in b:\n    t = 0\n    c()\n"),
    ("statement", "while a:\n    if b:\n        break\n    c()\n", "        continue\n    c()"),
    (
        "statement",
        "def f(a):\n    if a:\n        return 1\n    return a\n",
        "return 1\n    return 1",
    ),
    ("call_result", "x.strip()\n", "x = x.strip()\n"),
    ("call_result", "clean(x)\n", "x = clean(x)\n"),
    ("call_result", "def f(x):\n    x.pop()\n", "def f(x):\n    return x.pop()\n"),
    ("call_result", "x = a.lower() == b\n", "x = a.lower() == b.lower()\n"),
    ("call_result", "a = clean(x)\nb = y\n", "a = clean(x)\nb = clean(y)\n"),
    ("call_result", "f(a=x.strip(), b=y)\n", "f(a=x.strip(), b=y.strip())\n"),
]
EXPECTED = [*VALUES, *CALLS, *STATEMENTS]


# The largest file of each bundled program in Python.
FILES = [
    max(files, key=lambda file: file.stat().st_size)
    for tree in sorted(bundled_folder().glob("*/tree"))
    if (files := list(tree.glob("[!t]*/*.py")))
]
TWINS = "def f(a):\n    x = a\n    return x\n\n\ndef g(a):\n    x = a\n    return x\n"


def make(text: str, changes: list[Replacement]) -> str:
    """Makes changes one after the other, as the tool does: only where the text occurs once."""
    for change in changes:
        assert text.count(change.search) == 1
        text = text.replace(change.search, change.replace)
    return text


def back_and_forth(path: str, text: str, edits: tuple[Edit, ...]) -> None:
    texts = {path: text}
    changed = make(text, list(replacements(texts, edits)))
    assert changed == apply_edits(text, edits) == texts[path]
    back = undone(edits, {path: text})
    assert make(changed, list(replacements(texts, back))) == text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_any_candidate_can_be_made_and_taken_back(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    found = list(candidates(file.name, text, everywhere(text)))
    assert found
    for candidate in found[:: max(1, len(found) // 60)]:
        back_and_forth(file.name, text, candidate.edits)


def test_several_edits_of_one_file_are_taken_back_together() -> None:
    first, second = TWINS.index("x = a"), TWINS.rindex("return x")
    edits = (
        Edit("a.py", first, first, "y = a\n    "),
        Edit("a.py", second, second + 8, ""),
        Edit("a.py", second + 8, second + 8, "return"),
    )
    back_and_forth("a.py", TWINS, edits[:1] + edits[2:])
    back_and_forth("a.py", TWINS, edits[:2])


def test_line_ends_survive() -> None:
    text = TWINS.replace("\n", "\r\n")
    start = text.rindex("x = a")
    back_and_forth("a.py", text, (Edit("a.py", start, start + 1, "y"),))


def test_lines_that_repeat_one_after_the_other_are_told_apart() -> None:
    text = "x += 1\n" * 5
    for number in range(5):
        for length in (6, 7):
            start = number * 7
            back_and_forth("a.py", text, (Edit("a.py", start, start + length, f"y -= {number}"),))


# Many constructs on purpose: every template has something to say here.
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
        made = [
            apply_edits(before, candidate.edits)
            for candidate in candidates("a.py", before, everywhere(before))
            if candidate.template == template
        ]
        if after.endswith("\n"):
            assert after in made, (template, before)
        else:  # only the changed part is given
            assert any(after in text for text in made), (template, before, after)
    assert {case[0] for case in EXPECTED} == {template.name for template in TEMPLATES}


def test_the_templates_are_those_of_the_documented_list() -> None:
    page = Path(__file__).parents[2] / "docs" / "repair-templates.md"
    listed = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(template.name for template in TEMPLATES)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_candidate_of_a_dense_file_parses_and_changes_it(newline: str) -> None:
    text = DENSE.replace("\n", newline)
    found = list(candidates("a.py", text, everywhere(text)))
    changed = [apply_edits(text, candidate.edits) for candidate in found]
    assert len(set(changed)) == len(changed) > 300
    assert {candidate.template for candidate in found} == {t.name for t in TEMPLATES}
    assert text not in changed
    for candidate, new in zip(found, changed, strict=True):
        assert ast.parse(new), candidate.edits
        assert newline == "\n" or "\n" not in new.replace("\r\n", "")
