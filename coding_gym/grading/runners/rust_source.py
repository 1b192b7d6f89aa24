"""Tests of Rust, as text."""

import re
from collections.abc import Iterator, Sequence
from random import Random

from coding_gym.grading.runners.source_canaries import SourceTest, copied, indentation
from coding_gym.grading.runners.source_text import RUST, blank, closing

_TEST = re.compile(
    r"(?P<notes>(?:#\[[^\]]*\]\s*)+)(?:pub\s+)?fn\s+(?P<name>\w+)\s*\(\s*\)\s*(?P<brace>\{)"
)
_UNFIT = re.compile(r"should_panic|ignore")


class Rust:
    """Finds and copies functions with ``#[test]``; see `source_canaries.Language`."""

    def blank(self, text: str) -> str:
        """Blanks comments, texts and characters."""
        return blank(text, RUST)

    def place(self, test_id: str, paths: Sequence[str]) -> tuple[str, str]:
        """Splits ``FILE::module::NAME``."""
        path, _, name = test_id.partition("::")
        return (path if path in paths else ""), name.rpartition("::")[2]

    def tests(self, text: str, blanked: str) -> Iterator[SourceTest]:
        """Yields functions that cannot be left before their end but by a panic."""
        for match in _TEST.finditer(blanked):
            notes = text[match.start("notes") : match.end("notes")]
            start = match.start("brace")
            end = closing(blanked, start)
            inner = blanked[start + 1 : end]
            is_test = re.search(r"#\[test\]", notes) and not _UNFIT.search(notes)
            if is_test and end > 0 and not re.search(r"\breturn\b|\?", inner):
                yield SourceTest(
                    match["name"], match.start(), end + 1, match.start("name"), (start, end)
                )

    def idioms(self, text: str, blanked: str, test: SourceTest) -> tuple[str, ...]:  # noqa: ARG002
        """Returns one: assertions are macros, which code under test cannot change."""
        return ("end",)

    def copy(
        self,
        text: str,
        test: SourceTest,
        name: str,
        idiom: str,  # noqa: ARG002 — there is one
        rng: Random,
    ) -> list[tuple[int, str]]:
        """Copies a function behind itself."""
        one, two = rng.sample(range(2, 400), 2)
        ending = rng.choice([f"assert_eq!({one}, {two});", f"assert!({min(one, two)} > 400);"])
        if test.inner(self.blank(text)).rstrip()[-1:] not in ("", ";", "}"):
            ending = f"; {ending}"
        copy = copied(text, test, name, ending, is_guarded=False)
        return [(test.end, f"\n\n{indentation(text, test.start)}{copy}")]


RUST_TESTS = Rust()
