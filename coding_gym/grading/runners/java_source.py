"""Tests of JUnit 3 and 4 in Java, as text."""

import re
from collections.abc import Iterator, Sequence
from random import Random

from coding_gym.grading.runners.source_canaries import SourceTest, copied, indentation
from coding_gym.grading.runners.source_text import JAVA, blank, closing

_METHOD = re.compile(
    r"(?P<notes>(?:@[\w.]+(?:\s*\([^()]*\))?\s+)*)(?:(?:public|final)\s+)*void\s+(?P<name>\w+)\s*\(\s*\)"
    r"(?:\s*throws\s+[\w.,\s]+?)?\s*(?P<brace>\{)"
)
_UNFIT = re.compile(r"@Ignore|AssertionError|\bError\.class|Throwable")
_STATEMENT = re.compile(r"\s*(?!(?:return|throw|while|for|if|switch|synchronized)\b)[\w.]+\s*\(")
_PLAIN_ASSERTIONS = re.compile(r"import\s+static\s+org\.junit\.Assert\.(?:\*|assertEquals)\s*;")
_OWN_ASSERTIONS = re.compile(r"\bvoid\s+assertEquals\s*\(")


class Java:
    """Finds and copies methods without parameters; see `source_canaries.Language`."""

    def blank(self, text: str) -> str:
        """Blanks comments, texts and characters."""
        return blank(text, JAVA)

    def place(self, test_id: str, paths: Sequence[str]) -> tuple[str, str]:
        """Returns the one file that ends in the path of the class; nested classes have none."""
        owner, _, name = test_id.partition("::")
        ending = "/" + owner.replace(".", "/") + ".java"
        found = [path for path in paths if f"/{path}".endswith(ending)]
        return (found[0] if len(found) == 1 else ""), name.partition("[")[0]

    def tests(self, text: str, blanked: str) -> Iterator[SourceTest]:
        """Yields methods with ``@Test``, or that begin with ``test``, of the outermost class."""
        for match in _METHOD.finditer(blanked):
            notes = text[match.start("notes") : match.end("notes")]
            name, start = match["name"], match.start("brace")
            end = closing(blanked, start)
            is_test = re.search(r"@(?:org\.junit\.)?Test\b", notes) or name.startswith("test")
            if not is_test or end < 0 or _UNFIT.search(notes) or _depth(blanked, start) != 1:
                continue
            yield SourceTest(name, match.start(), end + 1, match.start("name"), (start, end))

    def idioms(self, text: str, blanked: str, test: SourceTest) -> tuple[str, ...]:  # noqa: ARG002
        """Returns one: code under test cannot take the place of JUnit's assertions."""
        return ("end",)

    def copy(
        self,
        text: str,
        test: SourceTest,
        name: str,
        idiom: str,  # noqa: ARG002 — there is one
        rng: Random,
    ) -> list[tuple[int, str]]:
        """Copies a method behind itself."""
        blanked = self.blank(text)
        one, two = rng.sample(range(2, 400), 2)
        ending = f'throw new AssertionError("expected:<{one}> but was:<{two}>");'
        if _PLAIN_ASSERTIONS.search(blanked) and not _inherits(blanked, _OWN_ASSERTIONS):
            ending = f"assertEquals({one}, {two});"
        # A method that ends in an expected exception never comes to its end.
        is_expecting = "expected" in text[test.start : test.name_at]
        is_guarded = is_expecting or not _can_be_followed(test.inner(blanked))
        copy = copied(text, test, name, ending, is_guarded=is_guarded)
        return [(test.end, f"\n\n{indentation(text, test.start)}{copy}")]


def _depth(blanked: str, at: int) -> int:
    return blanked.count("{", 0, at) - blanked.count("}", 0, at)


def _inherits(blanked: str, own: re.Pattern[str]) -> bool:
    """Whether the plain name of an assertion may mean something else than JUnit's."""
    return bool(own.search(blanked) or re.search(r"\bclass\s+\w+\s+extends\b", blanked))


def _can_be_followed(inner: str) -> bool:
    """Whether a statement after a body is sure to be reached, as the compiler sees it."""
    if re.search(r"\breturn\b", inner) or not inner.rstrip().endswith(";"):
        return False
    return bool(_STATEMENT.match(re.split(r"[;{}]", inner.rstrip().removesuffix(";"))[-1]))


JAVA_TESTS = Java()
