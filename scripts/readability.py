"""Checks how the documentation reads, and that code uses the field's words.

    python scripts/readability.py

Prints the median length of a sentence and the share of sentences in the passive voice, and fails
where one is too high, where a guide is too long, or where a word of `PROSE` or `NAMES` is used.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
CODE = ("coding_gym", "benchmarks", "examples", "scripts")
DATA = ("bundled", "polyglot")  # programs that are tasks keep their own style
MAX_MEDIAN_WORDS = 18
MAX_PASSIVE = 0.3
MAX_WORDS = 1000  # of a guide; pages in docs/reference are for looking things up
# What stands in a page or an identifier, and the field's word for it.
PROSE = {
    "whom": "the noun",
    "mended": "fixed",
    "told of": "reported",
    "given back": "returned",
    "incarnation": "sandbox process",
    "stillness": "freeze",
    "rehearsal": "warm-up",
    "clerk": "worker",
    "guardian": "watchdog",
    "twin": "paired run",
    "unsound": "not negatable",
}
NAMES = {
    "told": "reported",
    "meant": "intended",
    "moment": "snapshot",
    "mend": "fix",
    "incarnation": "process",
    "stillness": "freeze",
    "rehearsal": "warm-up",
    "guardian": "watchdog",
    "clerk": "worker",
    "twin": "pair",
    "room": "limit",
    "retake": "re-extract",
    "doubt": "suspicion",
    "unsound": "not negatable",
}
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+)?\w+(?:ed|en)\b")
_WORD = re.compile(r"[\w`'-]+")


def sentences(page: str) -> Iterator[str]:
    """Yields the sentences of a Markdown page, without code, tables and headings."""
    page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"^(?:    |\||#|:::).*$", "", page, flags=re.MULTILINE)
    page = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", page, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", page):
        text = " ".join(paragraph.split())
        yield from (s for s in re.split(r"(?<=[.!?])\s+", text) if len(_WORD.findall(s)) > 2)


def identifiers(code: str) -> Iterator[tuple[int, str]]:
    """Yields the names that a module defines, with their lines."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def faults_of_pages() -> Iterator[str]:
    """Yields what is wrong with the pages, one line each."""
    lengths, num_passive = [], 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if page.parent.name != "reference" and (num_words := len(text.split())) > MAX_WORDS:
            yield f"{page.relative_to(ROOT)}: {num_words} words, more than {MAX_WORDS}"
        for sentence in sentences(text):
            lengths.append(len(_WORD.findall(sentence)))
            num_passive += bool(_PASSIVE.search(sentence))
        for word, instead in PROSE.items():
            for found in re.finditer(rf"\b{word}\b", text, re.IGNORECASE):
                line = text.count("\n", 0, found.start()) + 1
                yield f"{page.relative_to(ROOT)}:{line}: write {instead!r}, not {word!r}"
    passive = num_passive / len(lengths)
    print(f"{len(lengths)} sentences, median {median(lengths):.0f} words, {passive:.0%} passive")
    if median(lengths) > MAX_MEDIAN_WORDS:
        yield f"the median sentence has {median(lengths)} words, more than {MAX_MEDIAN_WORDS}"
    if passive > MAX_PASSIVE:
        yield f"{passive:.0%} of the sentences are passive, more than {MAX_PASSIVE:.0%}"


def faults_of_names() -> Iterator[str]:
    """Yields what is wrong with the identifiers, one line each."""
    for path in (path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))):
        if set(DATA) & set(path.parts):
            continue
        for line, name in identifiers(path.read_text(encoding="utf-8")):
            for word in sorted(set(name.lower().split("_")) & NAMES.keys()):
                place = f"{path.relative_to(ROOT)}:{line}"
                yield f"{place}: the name {name!r} says {word!r}; write {NAMES[word]!r}"


def main() -> None:
    """Prints the faults; ends with 1 where there are any."""
    found = [*faults_of_pages(), *faults_of_names()]
    print("\n".join(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
