"""The issue that a user would write: what was run, what was expected, what came out."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coding_gym.synthesis.coverage_report import SuiteTest
from coding_gym.synthesis.project import is_test
from coding_gym.synthesis.snippets import Snippet, find_snippet

_MAX_SYMPTOMS = 3
_MAX_MESSAGE_LINES = 16
_MAX_FRAMES = 5
_MAX_TITLE = 60


@dataclass(frozen=True, slots=True)
class Symptom:
    """One failure that can be shown.

    Attributes:
        test_id: The test.
        snippet: Its failing call.
        failure: What was seen; see ``inside/seen.py``.
    """

    test_id: str
    snippet: Snippet
    failure: Mapping[str, Any]

    @property
    def title(self) -> str:
        """A line that says what is wrong."""
        name = f"`{self.name}`" if len(self.name) <= _MAX_TITLE else "A short program"
        if self.snippet.raises:
            return f"{name} does not raise {self.snippet.raises} as it should"
        if self.failure["kind"] == "AssertionError":
            return f"{name} gives a wrong result"
        return f"{name} fails with {self.failure['kind']}"

    @property
    def name(self) -> str:
        """What fails: the first function of the project that was called, or the call itself."""
        called = [str(f[2]).rpartition(".")[2] for f in self.failure["frames"] if not is_test(f[0])]
        plain = [name for name in called if name.isidentifier() and not name.startswith("_")]
        last = self.snippet.code.rpartition("\n")[2].strip()
        return next(iter(plain), self.snippet.callee or last)


def find_symptoms(
    failures: Mapping[str, Any], tests: Mapping[str, SuiteTest], texts: Mapping[str, str]
) -> list[Symptom]:
    """Returns the failures that can be shown, those first whose code runs as it stands.

    Args:
        failures: By test, what was seen.
        tests: The tests, by id.
        texts: The test files, by path.
    """
    found = []
    for test_id, failure in failures.items():
        test = tests.get(test_id)
        if test is None or test.path not in texts:
            continue
        try:
            snippet = find_snippet(texts[test.path], test.line, failure, test.path)
        except (SyntaxError, ValueError, RecursionError):
            continue  # Python of another version, or what code of the project made up
        if snippet is not None and (symptom := Symptom(test_id, snippet, failure)).name:
            found.append(symptom)
    return sorted(found, key=lambda s: (s.snippet.rank, s.test_id))


def write_statement(
    symptoms: Sequence[Symptom], groups: Iterable[Iterable[str]], test_ids: Iterable[str]
) -> str:
    """Returns an issue of up to three symptoms, which names no test and no line of the project.

    Args:
        symptoms: What can be shown, the best first; at least one.
        groups: Ids of the tests that each part of the bug breaks alone. Each part is shown.
        test_ids: Ids of all tests that fail; their names are taken out.
    """
    chosen: list[Symptom] = []
    for group in groups:
        wanted = set(group)
        own = [symptom for symptom in symptoms if symptom.test_id in wanted]
        if own and own[0] not in chosen:
            chosen.append(own[0])
    chosen = (chosen or list(symptoms[:1]))[:_MAX_SYMPTOMS]
    parts = [chosen[0].title, *(_section(symptom) for symptom in chosen)]
    return _without_tests("\n\n".join(parts), test_ids) + "\n"


def _section(symptom: Symptom) -> str:
    snippet, failure = symptom.snippet, symptom.failure
    if snippet.code:
        parts = [f"When I run this:\n\n```python\n{snippet.code}\n```"]
    else:
        parts = [f"This is about a call of `{symptom.name}`."]
    if snippet.raises:
        message = f" with a message that matches `{snippet.matching}`" if snippet.matching else ""
        parts.append(f"I expect {snippet.raises}{message}, but this is what I get:")
    elif snippet.is_vague and failure["kind"] == "AssertionError":
        parts.append("What comes of it is wrong:")
    elif not snippet.code and failure["kind"] != "AssertionError":
        parts.append("I expect it to work, but this is what I get:")
    elif "\n" in snippet.expected:
        parts.append(f"I expect\n\n```python\n{snippet.expected}\n```\n\nbut this is what I get:")
    elif snippet.expected:
        parts.append(f"I expect `{snippet.expected}`, but this is what I get:")
    else:
        parts.append("I expect it to work, but this is what I get:")
    return "\n\n".join([*parts, f"```\n{_seen(failure)}\n```"])


def _seen(failure: Mapping[str, Any]) -> str:
    lines = failure["message"].replace("```", "'''").rstrip().splitlines()
    if len(lines) > _MAX_MESSAGE_LINES:
        lines = [*lines[:_MAX_MESSAGE_LINES], "…"]
    message = "\n".join(lines)
    kind = failure["kind"]
    if kind in ("AssertionError", "Failed"):  # the second is pytest's own
        return message or kind
    # A user sees where it happened; which line it was would be half of the repair.
    frames = [f for f in failure["frames"] if not is_test(f[0])][-_MAX_FRAMES:]
    calls = [f'  File "{path}", in {function}' for path, _, function in frames]
    head = ["Traceback (most recent call last):", *calls] if calls else []
    return "\n".join([*head, f"{kind}: {message}" if message else kind])


def _without_tests(text: str, test_ids: Iterable[str]) -> str:
    """Takes the names of tests out, with what qualifies them."""
    names = set()
    for test_id in test_ids:
        path, *rest = test_id.partition("[")[0].split("::")
        names |= {path, path.rpartition("/")[2].removesuffix(".py"), *rest}
    telling = sorted((n for n in names if "test" in n.lower()), key=lambda n: (-len(n), n))
    if not telling:
        return text
    alternatives = "|".join(map(re.escape, telling))
    pattern = rf"(?<![\w.])(?:\w+\.)*(?:{alternatives})(?![\w])(?:\.<locals>)?\.?"
    return re.sub(pattern, "", text)
