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


def test_functions_are_named_by_the_header_of_the_hunk() -> None:
    hunk = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -{1} +{1} @@{2}\n-a\n+b\n"
    gold = hunk.format("x.go", 9, " func add() {")
    assert function_match(gold, hunk.format("x.go", 12, " func add() {")) == 1
    assert function_match(gold, hunk.format("x.go", 12, " func sub() {")) == 0
    assert function_match(gold, hunk.format("x.go", 12, "")) == 1  # the file as a whole
    assert function_match(gold, hunk.format("y.go", 9, " func add() {")) == 0
    assert function_match(gold, gold + hunk.format("y.go", 1, "")) == 0.5
    assert function_match(gold, "diff --git a/x.go b/x.go\nold mode 1\nnew mode 2\n") == 1
    for patch in ("", "no patch", gold.replace("@@ -9", "@@ -9,2"), gold * 20_000):
        assert function_match(gold, patch) == 0


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
