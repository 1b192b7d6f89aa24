"""`line_similarity`, `function_match` and rewards of one's own."""

import pytest

from coding_gym.patch import Patch
from coding_gym.rewards import function_match, line_similarity

SOURCE = """import os


class Shelf:
    size = 3

    @property
    def free(self):
        def left(n):
            return n - 1

        return left(self.size)

    def add(self, thing):
        self.things.append(thing)


def free():
    return os.sep
"""


def changed(*pairs: tuple[str, str], path: str = "a.py") -> str:
    text = SOURCE
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return Patch.between({path: SOURCE}, {path: text}).text


INNER = changed(("n - 1", "n - 2"))
CASES = [
    (INNER, changed(("n - 1", "n")), 1.0),
    (INNER, changed(("return left(self", "return 1 + left(self")), 0.0),
    (INNER, changed(("n - 1", "n"), ("os.sep", "''")), 0.5),
    (changed(("@property", "@cached")), changed(("left(self.size)", "0")), 1.0),
    (changed(("os.sep", "os.linesep")), changed(("n - 1", "n")), 0.0),
    (changed(("import os\n", "import sys\n")), changed(("size = 3", "size = 4")), 1.0),
    (changed(("append(thing)\n", "append(thing)\n        return 1\n")), INNER, 0.0),
    (changed(("os.sep\n", "os.sep\n\n\ndef new():\n    pass\n")), changed(("os.sep", "1")), 0.0),
    (INNER, changed(("n - 1", "n -")), 1.0),  # no Python: the file as a whole
    (INNER, "", 0.0),
    (INNER, "no patch", 0.0),
]


@pytest.mark.parametrize(("gold", "patch", "score"), CASES)
def test_python_functions_are_found_in_the_syntax_tree(gold: str, patch: str, score: float) -> None:
    assert function_match(gold, patch, {"a.py": SOURCE}) == score
    assert function_match(gold, gold, {"a.py": SOURCE}) == 1


def test_other_languages_go_by_the_header_of_the_hunk() -> None:
    hunk = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -{1} +{1} @@{2}\n-a\n+b\n"
    gold = hunk.format("x.go", 9, " func add() {")
    assert function_match(gold, hunk.format("x.go", 12, " func add() {")) == 1
    assert function_match(gold, hunk.format("x.go", 12, " func sub() {")) == 0
    assert function_match(gold, hunk.format("x.go", 12, "")) == 1  # git names none: the file
    assert function_match(gold, hunk.format("y.go", 9, " func add() {")) == 0
    assert function_match(gold, gold + hunk.format("y.go", 1, "")) == 0.5


def test_patches_that_do_not_apply_match_no_function() -> None:
    stale = INNER.replace("-            return n - 1", "-            return n - 7")
    assert function_match(INNER, stale, {"a.py": SOURCE}) == 0
    assert function_match(INNER, INNER * 200_000, {"a.py": SOURCE}) == 0


def test_lines_match_at_their_place_in_the_base() -> None:
    gold = changed(("n - 1", "n - 2"), ("os.sep", "os.linesep"))
    assert line_similarity(gold, gold.replace("@@\n", "@@ class Shelf:\n")) == 1
    assert line_similarity(gold, INNER) == pytest.approx(2 / 3)
    assert line_similarity(gold, changed(("n - 1", "n"))) == pytest.approx(1 / 3)
    added = changed(("import os\n", "import os\nimport re\n"))
    elsewhere = changed(("size = 3\n", "size = 3\nimport re\n"))
    assert line_similarity(added, elsewhere) == 0.5
    for other in ("\n", "import json\n"):  # at the right place, without a line in common
        assert line_similarity(added, changed(("import os\n", "import os\n" + other))) == 0
    assert line_similarity(gold, added) == line_similarity(gold, "no patch") == 0
    assert line_similarity(gold, gold + "+x\n" * 300_000) == 0
