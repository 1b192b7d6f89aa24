from pathlib import Path

import pytest

from coding_gym.mutation.source import Edit, apply_edits
from coding_gym.repair.candidates import candidates
from coding_gym.repair.patching import Replacement, replacements, undone
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


@pytest.mark.slow
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


def everywhere(text: str) -> dict[int, float]:
    return dict.fromkeys(range(1, text.count("\n") + 2), 1.0)
