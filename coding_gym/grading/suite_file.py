"""A test file that can hold canaries: which of its tests can be copied, and where the copies go."""

import ast
import io
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from coding_gym import syntax
from coding_gym.grading.canary_source import (
    Function,
    can_compare_wrongly,
    copy_test,
    first_line,
    fresh_name,
    identifiers,
    own_nodes,
    returns_early,
)
from coding_gym.grading.contradiction import contradict

# Marks that only choose arguments and fixtures; a copy under them runs as the original does.
_PLAIN_MARKS = {"parametrize", "usefixtures", "filterwarnings"}
# Under these marks a test that must fail would do something else.
_FORGIVING = ("xfail", "expectedfailure", "flaky", "rerun", "retry")
_UNFIT = (*_FORGIVING, "skip", "dependency", "order", "depends")


@dataclass(frozen=True, slots=True)
class Canary:
    """One canary.

    Attributes:
        path: The test file that holds it.
        original: Id of the test that it copies, after the path and without parameters.
        name: Its own id, likewise.
    """

    path: str
    original: str
    name: str

    @property
    def original_id(self) -> str:
        """Node id of the original, without parameters."""
        return f"{self.path}::{self.original}"

    @property
    def node_id(self) -> str:
        """Node id of the canary, without parameters."""
        return f"{self.path}::{self.name}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A test that is fit to be copied.

    Attributes:
        path: The test file that holds it.
        original: Its id after the path, without parameters.
        node: Its source.
        classes: The classes around it, the outermost first.
        plain: Whether its decorators only choose arguments and fixtures.
        compares: Whether a copy can fail by the test's own last comparison.
    """

    path: str
    original: str
    node: Function
    classes: tuple[ast.ClassDef, ...]
    plain: bool
    compares: bool


class SuiteFile:
    """A test file that can hold canaries. It always says the same, and threads may share it."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(self.encoding)
        self.has_crlf = "\r\n" in text
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            raise ValueError("a bare carriage return is a line end to the parser")
        self.tree = syntax.parse(text)
        self.lines = _split(text)
        self._candidates: dict[str, Candidate | None] = {}

    def candidates(self, wanted: Iterable[str]) -> list[Candidate]:
        """The tests among ``wanted`` (ids after the path, without parameters) fit to be copied."""
        found = []
        for original in dict.fromkeys(wanted):
            if original not in self._candidates:
                self._candidates[original] = self._candidate(original)
            if (candidate := self._candidates[original]) is not None:
                found.append(candidate)
        return found

    def _candidate(self, original: str) -> Candidate | None:
        owners, node = _find(self.tree, *_split_id(original))
        if node is None or not _is_fit(node, owners):
            return None
        plain = all(_mark(d) in _PLAIN_MARKS for d in node.decorator_list)
        return Candidate(self.path, original, node, owners, plain, can_compare_wrongly(node))

    def contradict(self, wanted: Iterable[str], rng: Random) -> tuple[list[str], bytes]:
        """Turns tests against themselves, in their places and under their names.

        Args:
            wanted: Ids of the tests, after the path and without parameters.
            rng: Decides what they ask for instead.

        Returns:
            The ids of those that now fail wherever they passed, and the file that holds them.
        """
        lines, found = list(self.lines), []
        places = {original: _find(self.tree, *_split_id(original)) for original in wanted}
        tests = [(node, owners, name) for name, (owners, node) in places.items() if node]
        for node, owners, original in sorted(tests, key=lambda t: t[0].lineno, reverse=True):
            if _is_marked(node, owners, _FORGIVING) or _yields(node):
                continue
            changed = None if returns_early(node) else contradict(lines, node, rng)
            if changed is None and _is_fit(node, owners):
                block = copy_test(lines, node, node.name, rng, own_idiom=True)
                changed = [*lines[: first_line(node) - 1], *block, *lines[node.end_lineno :]]
            if changed is not None:
                lines = changed
                found.append(original)
        return found, self._encoded(lines)

    def insert(self, chosen: Sequence[Candidate], rng: Random) -> tuple[list[Canary], bytes]:
        """Returns the canaries and the file that holds them after all other tests."""
        taken = set(identifiers(self.lines))
        tests = [n.name for n in ast.walk(self.tree) if isinstance(n, Function)]
        canaries, blocks = [], []
        for number, one in enumerate(chosen):
            name = fresh_name(one.node.name, tests, taken, rng)
            taken.add(name)
            *classes, _ = one.original.split("::")
            canaries.append(Canary(self.path, one.original, "::".join([*classes, name])))
            # One in each file fails as its test would, which finds out forged values.
            copy = copy_test(self.lines, one.node, name, rng, own_idiom=number == 0)
            blocks.append((self._end(one), len(one.classes), copy))
        lines = list(self.lines)
        # What goes in later stands before what is at its place: where a class ends the file, its
        # methods before the functions, or they would be functions within these.
        for at, depth, block in sorted(blocks, key=lambda b: (-b[0], b[1])):
            if not lines[at - 1].endswith("\n"):
                lines[at - 1] += "\n"
            lines[at:at] = (["\n"] if depth else ["\n", "\n"]) + block
        return canaries, self._encoded(lines)

    def _encoded(self, lines: Sequence[str]) -> bytes:
        text = "".join(lines)
        syntax.parse(text)
        return (text.replace("\n", "\r\n") if self.has_crlf else text).encode(self.encoding)

    def _end(self, candidate: Candidate) -> int:
        """Number of the line after which the copy goes: the end of its class, or of all tests."""
        if candidate.classes:
            return candidate.classes[-1].end_lineno or len(self.lines)
        ends = [n.end_lineno or 0 for n in self.tree.body if isinstance(n, Function | ast.ClassDef)]
        return max(ends)


def _find(
    tree: ast.Module, classes: Sequence[str], name: str
) -> tuple[tuple[ast.ClassDef, ...], Function | None]:
    """The classes and the function at a dotted place; None unless each is there exactly once."""
    owners: list[ast.ClassDef] = []
    body = tree.body
    for class_name in classes:
        matches = [n for n in body if isinstance(n, ast.ClassDef) and n.name == class_name]
        if len(matches) != 1:
            return (), None
        owners.append(matches[0])
        body = matches[0].body
    functions = [n for n in body if isinstance(n, Function) and n.name == name]
    return tuple(owners), functions[0] if len(functions) == 1 else None


def _split_id(original: str) -> tuple[list[str], str]:
    *classes, name = original.split("::")
    return classes, name


def _is_fit(node: Function, owners: Sequence[ast.ClassDef]) -> bool:
    """Whether a copy runs like the test: no coroutine, no generator, no mark that spares it."""
    if isinstance(node, ast.AsyncFunctionDef) or node.body[0].lineno == node.lineno:
        return False
    return not (_yields(node) or _is_marked(node, owners, _UNFIT))


def _yields(node: Function) -> bool:
    return any(isinstance(child, ast.Yield | ast.YieldFrom) for child in own_nodes(node))


def _is_marked(node: Function, owners: Sequence[ast.ClassDef], words: Iterable[str]) -> bool:
    """Whether the name of a decorator of a test, or of its class, holds one of some words."""
    decorators = node.decorator_list + [d for owner in owners for d in owner.decorator_list]
    names = [ast.unparse(d.func if isinstance(d, ast.Call) else d).lower() for d in decorators]
    return any(word in name for name in names for word in words)


def _mark(decorator: ast.expr) -> str:
    """The last part of a decorator's name: ``parametrize`` for ``@pytest.mark.parametrize(…)``."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else ""


def _split(text: str) -> list[str]:
    """Splits at line feeds only, as the parser counts lines; `str.splitlines` knows more ends."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
