import ast
import re
from pathlib import Path

import pytest
from expected_edits import EXPECTED

from coding_gym.repair.candidates import candidates
from coding_gym.repair.patching import Replacement, replacements, undone
from coding_gym.repair.source import Edit, apply_edits
from coding_gym.repair.templates import TEMPLATES
from coding_gym.tasks.bundled_tasks import bundled_folder

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
    assert text not in changed
    for candidate, new in zip(found, changed, strict=True):
        assert ast.parse(new), candidate.description
        assert newline == "\n" or "\n" not in new.replace("\r\n", "")


def test_every_template_finds_something_in_a_dense_file() -> None:
    found = {c.template for c in candidates("a.py", DENSE, everywhere(DENSE))}
    assert found == {template.name for template in TEMPLATES}
