"""Tests of C, as text: functions that a ``main`` of the same file runs by name.

C has no test framework of its own, so a shape is agreed on. A test is ``static void NAME(void)``;
it fails where a macro ``CHECK`` is given something false; ``main`` holds ``RUN(NAME);``, once for
each test, and prints TAP with the names as descriptions.
"""

import re
from collections.abc import Iterator, Sequence
from random import Random

from coding_gym.grading.runners.source_canaries import SourceTest, copied
from coding_gym.grading.runners.source_text import C_LIKE, blank, closing

_TEST = re.compile(r"^static void (?P<name>\w+)\s*\(\s*void\s*\)\s*(?P<brace>\{)", re.MULTILINE)
# The end of a body whose last check asks for a number, or for a text as its last argument.
_LAST_VALUE = re.compile(
    r"""(?P<head>\bCHECK\([^\n]*?(?:==\s|,\s))"""
    r"""(?:(?P<number>(?<===\s)\d{1,9})|(?P<text>(?<=,\s)"(?:\\.|[^"\\\n])*"))"""
    r"""(?P<tail>\)*;\s*\}?\s*)\Z"""
)


class C:
    """Finds and copies tests of that shape; see `source_canaries.Language`."""

    def blank(self, text: str) -> str:
        """Blanks comments, texts and characters."""
        return blank(text, C_LIKE)

    def place(self, test_id: str, paths: Sequence[str]) -> tuple[str, str]:
        """Splits ``FILE::NAME``."""
        path, _, name = test_id.partition("::")
        return (path if path in paths else ""), name

    def tests(self, text: str, blanked: str) -> Iterator[SourceTest]:  # noqa: ARG002 — the contract
        """Yields functions that ``main`` runs, that check something, and that do not return."""
        for match in _TEST.finditer(blanked):
            start = match.start("brace")
            end = closing(blanked, start)
            inner = blanked[start + 1 : end]
            fits = "CHECK(" in inner and not re.search(r"\breturn\b|\bgoto\b", inner)
            if end > 0 and fits and len(_calls(blanked, match["name"])) == 1:
                yield SourceTest(
                    match["name"], match.start(), end + 1, match.start("name"), (start, end)
                )

    def idioms(self, text: str, blanked: str, test: SourceTest) -> tuple[str, ...]:  # noqa: ARG002
        """Returns an end of its own, and the last value that is asked for, where that is plain.

        Code under test can bring a ``strcmp`` or ``printf`` of its own, which are then the tests'.
        """
        return ("end", "value") if _LAST_VALUE.search(test.inner(text)) else ("end",)

    def copy(
        self, text: str, test: SourceTest, name: str, idiom: str, rng: Random
    ) -> list[tuple[int, str]]:
        """Copies a function behind itself, and its ``RUN`` too."""
        one, two = rng.sample(range(2, 400), 2)
        ending = "" if idiom == "value" else f"CHECK({one} == {two});"
        copy = copied(text, test, name, ending, is_guarded=False)
        if idiom == "value":
            copy = _LAST_VALUE.sub(lambda match: _other(match, one), copy)
        call = _calls(self.blank(text), test.name)[0]
        return [(test.end, f"\n\n{copy}"), (call.end(), f"{call[1]}RUN({name});")]


def _other(match: re.Match[str], number: int) -> str:
    """Asks for another value than a test does."""
    if match["number"]:
        return f"{match['head']}{int(match['number']) + number}{match['tail']}"
    return f'{match["head"]}"{number}{match["text"][1:]}{match["tail"]}'


def _calls(blanked: str, name: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(\s*)\bRUN\({name}\);", blanked))


C_TESTS = C()
