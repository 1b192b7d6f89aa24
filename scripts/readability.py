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
    "shown": "displayed, or visible",
    "given": "an argument, or passed",
    "answered": "replied",
    "become": "run, or convert",
    "becomes": "runs, or converts",
    "places": "paths, or locations",
    "survey": "coverage, or report",
    "reach": "scope, or access",
    "beside": "next to",
    "prepared": "pre-started",
    "requested": "planned",
    "guarded": "watched",
    "bodies": "payloads",
    "making": "fixtures",
    "openings": "open descriptors",
    "shelf": "layer slots",
}
# Names that stay, by file. The key of a plan, which users keep as `plan.json`, holds a digest of
# the text of this file, so a new name makes every plan stale.
EXEMPT = {"coding_gym/grading/wrong_values.py": {"places"}}
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+)?\w+(?:ed|en)\b")
_WORD = re.compile(r"[\w`'-]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of a name in snake case or camel case


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
            case ast.MatchAs(name=str()) | ast.MatchStar(name=str()):
                yield node.lineno, node.name
            case ast.ExceptHandler(name=str()):
                yield node.lineno, node.name


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
        file = path.relative_to(ROOT).as_posix()
        names = [(1, path.stem), *identifiers(path.read_text(encoding="utf-8"))]
        for line, name in names:
            if name in EXEMPT.get(file, ()):
                continue
            for word in sorted({part.lower() for part in _PART.findall(name)} & NAMES.keys()):
                yield f"{file}:{line}: the name {name!r} says {word!r}; write {NAMES[word]!r}"


def main() -> None:
    """Prints the faults; ends with 1 where there are any."""
    found = [*faults_of_pages(), *faults_of_names()]
    print("\n".join(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
