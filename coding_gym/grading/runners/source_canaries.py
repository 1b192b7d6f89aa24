"""Canaries in other languages than Python: copies of tests, renamed, with an end that fails.

A language says where its tests are and how they fail; which are copied is decided here, by the same
rules as for Python: see `coding_gym.grading.canaries`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from coding_gym.grading.canaries import MAX_FILES, MIN_CANARIES
from coding_gym.grading.runners.protocol import Planted
from coding_gym.grading.suite_file import Canary
from coding_gym.task import Task

_MAX_IN_FILE = 8
_WORDS = ("again", "other", "plain", "basic", "simple", "second", "small", "usual")
_SNAKE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")
_CAMEL = re.compile(r"[A-Z]?[a-z]+|\d+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class SourceTest:
    """A test in a source file that can be copied.

    Attributes:
        name: What its id ends in.
        start: Where its definition begins, annotations included.
        end: Where it is over.
        name_at: Where the name begins.
        body: Where the braces of its body open and close.
    """

    name: str
    start: int
    end: int
    name_at: int
    body: tuple[int, int]

    def inner(self, text: str) -> str:
        """Returns what is between the braces."""
        return text[self.body[0] + 1 : self.body[1]]


class Language(Protocol):
    """What has to be known of a language."""

    def blank(self, text: str) -> str:
        """Returns the source with comments and texts blanked."""
        ...

    def place(self, test_id: str, paths: Sequence[str]) -> tuple[str, str]:
        """Returns which of the files holds a test, "" for none, and its name in that file."""
        ...

    def tests(self, text: str, blanked: str) -> Iterator[SourceTest]:
        """Yields the tests of a file that can be copied."""
        ...

    def idioms(self, text: str, blanked: str, test: SourceTest) -> tuple[str, ...]:
        """Returns the ways in which a copy of a test can fail, at least one.

        They are those in which the test itself can fail and that code under test could silence.
        """
        ...

    def copy(
        self, text: str, test: SourceTest, name: str, idiom: str, rng: Random
    ) -> list[tuple[int, str]]:
        """Returns what to insert, and where, so that a failing copy runs under a new name."""
        ...


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: str
    test_id: str
    test: SourceTest
    idiom: str

    def canary(self, name: str) -> Canary:
        owner, _, rest = self.test_id.partition("::")
        rest = rest.partition("[")[0] if rest.endswith("]") else rest
        return Canary(owner, rest, rest.removesuffix(self.test.name) + name)


def plant_copies(
    language: Language,
    files: Mapping[str, bytes],
    task: Task,
    rng: Random,
    *,
    avoid: frozenset[str],
) -> Planted:
    """Chooses canaries and writes them into test files.

    Each file gets one, and two where it has tests that the bug breaks: or as many as there are ways
    for these to fail, so that silencing just one of these ways is found out.

    Args:
        language: How tests of these files read.
        files: The test files by path.
        task: Says which tests are expected, and which of them the bug breaks.
        rng: Decides which are copied, and how; it must not be foreseeable by a policy.
        avoid: Ids of tests that did not make good canaries before.

    Returns:
        The canaries, and the new content of the files that hold them.
    """
    texts = {path: text for path, data in files.items() if (text := _decoded(data)) is not None}
    picks = _pick(language, texts, task, rng, avoid) or _pick(
        language, texts, task, rng, frozenset()
    )
    while picks and len(picks) < MIN_CANARIES:
        picks.append(rng.choice(picks))
    canaries: list[Canary] = []
    changed: dict[str, bytes] = {}
    for path in dict.fromkeys(pick.path for pick in picks):
        text = texts[path]
        taken = {test.name for test in language.tests(text, language.blank(text))}
        insertions: list[tuple[int, str]] = []
        for pick in (p for p in picks if p.path == path):
            name = fresh_name(pick.test.name, sorted(taken), text, rng)
            taken.add(name)
            canaries.append(pick.canary(name))
            insertions += language.copy(text, pick.test, name, pick.idiom, rng)
        changed[path] = _inserted(text, insertions).encode()
    return tuple(canaries), changed


def copied(text: str, test: SourceTest, name: str, ending: str, *, is_guarded: bool) -> str:
    """Returns the source of a copy of a test.

    Args:
        text: The file.
        test: The test.
        name: What the copy is called.
        ending: The statements that fail.
        is_guarded: Whether the body may be left before its end, so that the ending has to stand in
            a ``finally``, of a language that has one.
    """
    head = text[test.start : test.name_at] + name
    head += text[test.name_at + len(test.name) : test.body[0] + 1]
    inner, foot = test.inner(text), text[test.body[1] : test.end]
    if "\n" not in inner:
        inner = f" try {{{inner}}} finally {{ {ending} }} " if is_guarded else f"{inner}{ending} "
        return head + inner + foot
    outer = indentation(text, test.body[1])
    first = re.search(r"\n([ \t]+)\S", inner)
    step = first.group(1) if first else f"{outer}    "
    body = inner.rstrip(" \t")
    if is_guarded:
        deeper = step + (step.removeprefix(outer) or "    ")
        body = f"\n{step}try {{{body}{step}}} finally {{\n{deeper}{ending}\n{step}}}\n"
    else:
        body = f"{body}{step}{ending}\n" if ending else body
    return head + body + outer + foot


def indentation(text: str, at: int) -> str:
    """Returns the blanks at the beginning of the line of a place."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def fresh_name(original: str, others: Sequence[str], text: str, rng: Random) -> str:
    """Returns a name that looks like its neighbours and is neither of them nor in the file."""
    words = sorted({w.lower() for name in others for w in _split(name) if w.isalpha()})
    words = [word for word in words if len(word) > 2 and word != "test"] + list(_WORDS)
    while original in text or original in others:
        parts = _split(original)
        parts.insert(rng.randrange(1, len(parts) + 1), rng.choice(words))
        original = _joined(parts, original)
    return original


def _split(name: str) -> list[str]:
    if " " in name:
        return name.split(" ")
    return name.split("_") if "_" in name else _CAMEL.findall(name) or [name]


def _joined(parts: Sequence[str], like: str) -> str:
    if " " in like:
        return " ".join(parts)
    if "_" in like:
        return "_".join(parts)
    return parts[0] + "".join(part[0].upper() + part[1:] for part in parts[1:])


def _pick(
    language: Language,
    texts: Mapping[str, str],
    task: Task,
    rng: Random,
    avoid: frozenset[str],
) -> list[_Candidate]:
    picks = []
    paths = rng.sample(list(texts), len(texts))
    broken = {language.place(test, list(texts))[0] for test in task.fail_to_pass}
    for path in sorted(paths, key=lambda path: path not in broken)[:MAX_FILES]:
        for ids, number in ((task.fail_to_pass, 2), (task.pass_to_pass, 1)):
            fit = [test for test in ids if test.partition("[")[0] not in avoid]
            found = _candidates(language, path, texts, rng.sample(fit, len(fit)))
            ways = {one.idiom: one for one in reversed(found)}
            chosen = list(ways.values()) if number == 2 else found[:1]
            more = [one for one in found if one not in chosen]
            picks += [*chosen, *more][: max(number, min(len(chosen), _MAX_IN_FILE))]
            if chosen:
                break
    return picks


def _candidates(
    language: Language, path: str, texts: Mapping[str, str], ids: Sequence[str]
) -> list[_Candidate]:
    """What can be copied of the tests of a file, in the order of the ids."""
    text, blanked = texts[path], language.blank(texts[path])
    tests = _unique(list(language.tests(text, blanked)))
    places = [(test_id, *language.place(test_id, list(texts))) for test_id in ids]
    return [
        _Candidate(path, test_id, tests[name], idiom)
        for test_id, place, name in places
        if place == path and name in tests
        for idiom in language.idioms(text, blanked, tests[name])
    ]


def _unique(tests: Sequence[SourceTest]) -> dict[str, SourceTest]:
    names = [test.name for test in tests]
    return {test.name: test for test in tests if names.count(test.name) == 1}


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _inserted(text: str, insertions: Sequence[tuple[int, str]]) -> str:
    for at, new in sorted(insertions, key=lambda one: one[0], reverse=True):
        text = text[:at] + new + text[at:]
    return text
