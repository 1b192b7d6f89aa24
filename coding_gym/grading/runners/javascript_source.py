"""Tests of ``node:test`` in JavaScript, as text."""

import re
from collections.abc import Iterator, Sequence
from random import Random

from coding_gym.grading.runners.source_canaries import SourceTest, copied, indentation
from coding_gym.grading.runners.source_text import blank_javascript, closing, opening

_CALL = re.compile(r"(?<![\w.$])(?:test|it)\s*\(")
# No escapes: the name in the source is then the name in the id.
_NAME = re.compile(r"""\s*(["'`])([^"'`\\\n$]+)\1\s*,""")
# A function of at most one parameter; a second one would be a callback that ends the test.
_FUNCTION = re.compile(r"(?:\(?\s*\w*\s*\)?\s*=>|function\s*\w*\s*\(\s*\w*\s*\))\s*\Z")
_UNFIT = re.compile(r"\b(?:skip|todo|only)\b")
_ASSERT = re.compile(r"""(?:import\s+|const\s+|[{,]\s*)assert\b[^;\n]*["']node:assert""")
_CALLED = re.compile(r"(?<![\w.$])assert(?:\.(\w+))?\s*\(")
# A call of each that fails; "" is ``assert`` itself.
_ENDINGS = {
    "": "assert({less} > {more});",
    "ok": "assert.ok({less} > {more});",
    "throws": "assert.throws(() => {one});",
    "match": 'assert.match("{one}", /x/);',
    "throw": 'throw new Error("expected {one}, got {two}");',
}
_ENDINGS |= {
    name: f"assert.{name}({{one}}, {{two}});"
    for name in ("equal", "strictEqual", "deepEqual", "deepStrictEqual")
}
_ENDINGS |= {
    name: f"assert.{name}({{one}}, {{one}});"
    for name in ("notEqual", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual")
}


class JavaScript:
    """Finds and copies calls of ``test`` and ``it``; see `source_canaries.Language`."""

    def blank(self, text: str) -> str:
        """Blanks comments, texts, templates and regular expressions."""
        return blank_javascript(text)

    def place(self, test_id: str, paths: Sequence[str]) -> tuple[str, str]:
        """Splits ``FILE::OUTER > NAME``."""
        path, _, name = test_id.partition("::")
        return (path if path in paths else ""), name.rpartition(" > ")[2]

    def tests(self, text: str, blanked: str) -> Iterator[SourceTest]:
        """Yields calls with a plain name and a function with braces."""
        for call in _CALL.finditer(blanked):
            name = _NAME.match(text, call.end())
            end = closing(blanked, call.end() - 1)
            if name is None or end < 0:
                continue
            close = len(blanked[:end].rstrip().rstrip(",").rstrip()) - 1
            start = opening(blanked, close) if blanked[close] == "}" else -1
            head = blanked[name.end() : start]
            if start < name.end() or not _FUNCTION.search(head) or _UNFIT.search(head):
                continue
            end += 2 if blanked[end + 1 : end + 2] == ";" else 1
            yield SourceTest(name[2], call.start(), end, name.start(2), (start, close))

    def idioms(self, text: str, blanked: str, test: SourceTest) -> tuple[str, ...]:
        """Returns the assertions that the test calls, and ``throw`` where it calls none."""
        called = _CALLED.findall(test.inner(blanked)) if _ASSERT.search(text) else []
        return tuple(dict.fromkeys(one for one in called if one in _ENDINGS)) or ("throw",)

    def copy(
        self, text: str, test: SourceTest, name: str, idiom: str, rng: Random
    ) -> list[tuple[int, str]]:
        """Copies a call behind itself."""
        one, two = rng.sample(range(2, 400), 2)
        ending = _ENDINGS[idiom].format(one=one, two=two, less=min(one, two), more=max(one, two))
        inner = test.inner(self.blank(text))
        is_guarded = "return" in inner
        if not is_guarded and inner.rstrip()[-1:] not in ("", ";", "}"):
            ending = f"; {ending}"
        copy = copied(text, test, name, ending, is_guarded=is_guarded)
        return [(test.end, f"\n\n{indentation(text, test.start)}{copy}")]


JAVASCRIPT = JavaScript()
