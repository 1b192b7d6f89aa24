"""A checkout of QuixBugs (github.com/jkoppel/QuixBugs): 40 short programs, in Python and in Java.

Each program has one wrong line. The tree of a task is the wrong program alone, the hidden tests are
the checkout's own, the gold patch leads to the checkout's corrected program.
"""

import ast
import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from coding_gym import syntax
from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.sources.file_text import read_text
from coding_gym.tasks.sources.java_tests import without_comments
from coding_gym.tasks.sources.kinds import Checkout
from coding_gym.tasks.sources.quixbugs_outcomes import JAVA, PYTHON

_FOLDERS = ("python_programs", "correct_python_programs", "java_programs", "java_testcases/junit")
_PYTHON_TESTS, _JAVA_TESTS = "python_testcases", "java_testcases/junit"
# What the checkout's own conftest.py sets from its command line, and a limit for each test: many of
# the wrong programs never end. It is CPU time, so that a busy machine fails nobody; after the first
# program that hangs, the other tests of the file get less.
_CONFTEST = '''\
"""Hidden: how the tests of QuixBugs are run."""

import signal

import pytest

pytest.use_correct = False
pytest.run_slow = False
_limit_s = 2.0
_too_slow = {too_slow!r}


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if item.name.partition("[")[2] not in _too_slow]


class TooSlow(Exception):
    """A test took more CPU time than any correct program needs."""


def _stop(*_):
    global _limit_s
    _limit_s = 0.5
    raise TooSlow


@pytest.fixture(autouse=True)
def _limited():
    before = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, _limit_s)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
'''

_TEST = re.compile(
    r"@(?:org\.junit\.)?Test\b[^;{]*?\bvoid\s+(\w+)\s*\(([^;{]*)\{(.*?)\n    \}", re.DOTALL
)
_CALL = re.compile(r"java_programs\.(\w+\.\w+\(.*\));")
_EXPECTED = re.compile(r"assertEquals\(\s*(.+?),\s*result\w*(?:,[^,()]*)?\s*\);")
# Two programs say in a comment what is wrong with them.
_GIVEAWAY = re.compile(r"[ \t]*// [^\n]*(?:fixed|correct) version[^\n]*")
_SHARED = ("Node", "WeightedEdge")


def is_checkout(folder: Path) -> bool:
    """Returns whether a folder has QuixBugs' layout."""
    return all((folder / name).is_dir() for name in _FOLDERS)


def read_checkout(folder: Path) -> Iterator[tuple[str, Task]]:
    """Yields (where, task) for each program, the Python ones first, in the order of names.

    Raises:
        InvalidTaskError: A file is missing, or its tests are not those whose outcomes are known.
    """
    for outcomes, task_of, place in (
        (PYTHON, _python_task, "python_programs/{}.py"),
        (JAVA, _java_task, "java_programs/{}.java"),
    ):
        for name, marks in sorted(outcomes.items()):
            path = folder / place.format(name if task_of is _python_task else name.upper())
            try:
                yield str(path), task_of(folder, name, marks)
            except OSError as error:
                raise InvalidTaskError(
                    f"{path}: this checkout of QuixBugs is not whole: {error.filename} cannot be "
                    f"read: {error.strerror}"
                ) from error


def _python_task(folder: Path, name: str, marks: str) -> Task:
    """Returns the task of one program, whose tests end at base as ``marks`` says."""
    path = f"python_programs/{name}.py"
    code, about, tail = _documented(folder, path)
    right, *_ = _documented(folder, f"correct_{path}")
    wrong = code + tail
    test_path = f"{_PYTHON_TESTS}/test_{name}.py"
    test = read_text(folder / test_path)
    cases = _cases(folder, name)
    ids = _test_ids(test, test_path, cases)
    broken, working, left_out = _by_outcome(ids, marks, folder / test_path)
    fixed = _repaired(code, right, _without_comment) + tail
    too_slow = sorted(test.partition("[")[2] for test in left_out)
    hidden = {"conftest.py": _CONFTEST.format(too_slow=too_slow), test_path: test}
    for extra in ("load_testdata.py", "node.py"):
        hidden[f"{_PYTHON_TESTS}/{extra}"] = read_text(folder / _PYTHON_TESTS / extra)
    if cases is not None:
        hidden[f"json_testcases/{name}.json"] = read_text(folder / f"json_testcases/{name}.json")
    return Task(
        task_id=f"quixbugs-python-{name}",
        tree=FilesTree({path: wrong}),
        problem_statement=_issue(
            name, path, about, _python_example(name, cases, ids.index(broken[0]), test)
        ),
        gold_patch=Patch.between({path: wrong}, {path: fixed}).text,
        test_patch=Patch.between({}, hidden).text,
        fail_to_pass=broken,
        pass_to_pass=working,
        excluded_tests=left_out,
        repo="jkoppel/QuixBugs",
        difficulty="easy",
        language="python",
    )


def _without_comment(line: str) -> str:
    return "" if line.lstrip().startswith("#") else line.rstrip()


def _cases(folder: Path, name: str) -> list[Any] | None:
    """Returns the pairs of arguments and result that a program is tested with; None for graphs."""
    path = folder / f"json_testcases/{name}.json"
    if not path.is_file():
        return None
    try:
        cases = [json.loads(line) for line in read_text(path).splitlines() if line.strip()]
    except ValueError as error:
        raise InvalidTaskError(f"{path}: not a JSON value per line: {error}") from None
    for number, case in enumerate(cases, 1):
        if not isinstance(case, list) or len(case) != 2:
            raise InvalidTaskError(
                f"{path} line {number}: must be a list of arguments and result, got {case!r:.80}"
            )
    return cases


def _test_ids(test: str, path: str, cases: list[Any] | None) -> list[str]:
    """Returns pytest's names of the tests, in their order."""
    try:
        body = syntax.parse(test).body
    except SyntaxError as error:
        raise InvalidTaskError(f"{path}: not Python: {error}") from None
    functions = [n for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]
    if cases is None:
        return [f"{path}::{function.name}" for function in functions]
    return [
        f"{path}::{function.name}[input_data{number}-{_expected_id(expected, number)}]"
        for function in functions
        for number, (_, expected) in enumerate(cases)
    ]


def _expected_id(expected: Any, number: int) -> str:
    """Returns what pytest makes of an expected value in the name of a test."""
    if isinstance(expected, str):
        return expected.encode("unicode_escape").decode("ascii")
    if isinstance(expected, int | float) or expected is None:
        return str(expected)
    return f"expected{number}"


def _python_example(name: str, cases: list[Any] | None, number: int, test: str) -> str:
    """Returns a call that goes wrong with what it should give, or what a test says of itself."""
    if cases is not None:
        arguments, expected = cases[number]
        called = ", ".join(map(repr, arguments)) if isinstance(arguments, list) else repr(arguments)
        return f"For example, `{name}({called})` should give:\n\n    {expected!r}"
    functions = [n for n in syntax.parse(test).body if isinstance(n, ast.FunctionDef)]
    text = ast.get_docstring(functions[number]) or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line.partition(":")[2].strip() if line.startswith("Case") else line for line in lines]
    return "One case in which it goes wrong:\n\n" + "\n".join(f"    {line}" for line in lines)


def _java_task(folder: Path, name: str, marks: str) -> Task:
    """Returns the task of one program; arguments as for Python."""
    path = f"java_programs/{name.upper()}.java"
    wrong = _GIVEAWAY.sub("", read_text(folder / path))
    right = _in_package(read_text(folder / f"correct_{path}"))
    tree = {path: wrong}
    test_path = f"{_JAVA_TESTS}/{name.upper()}_TEST.java"
    test = read_text(folder / test_path)
    for shared in _SHARED:
        if re.search(rf"\b{shared}\b", wrong + test):
            tree[f"java_programs/{shared}.java"] = read_text(
                folder / f"java_programs/{shared}.java"
            )
    hidden = {test_path: test}
    if "QuixFixOracleHelper" in test:
        oracle = f"{_JAVA_TESTS}/QuixFixOracleHelper.java"
        hidden[oracle] = read_text(folder / oracle)
    found = {match[1]: match[3] for match in _TEST.finditer(without_comments(test))}
    ids = [f"java_testcases.junit.{name.upper()}_TEST::{method}" for method in found]
    broken, working, left_out = _by_outcome(ids, marks, folder / test_path)
    _, about, _ = _documented(folder, f"python_programs/{name}.py")
    body = found[broken[0].partition("::")[2]]
    gold = Patch.between({path: wrong}, {path: _repaired(wrong, right, _without_spaces)})
    if gold.is_empty:
        raise InvalidTaskError(f"{folder / path}: does not differ from the corrected program")
    return Task(
        task_id=f"quixbugs-java-{name}",
        tree=FilesTree(tree),
        problem_statement=_issue(name, path, about, _java_example(body)),
        gold_patch=gold.text,
        test_patch=Patch.between({}, hidden).text,
        fail_to_pass=broken,
        pass_to_pass=working,
        excluded_tests=left_out,
        repo="jkoppel/QuixBugs",
        difficulty="easy",
        language="java",
        visible_test_command="javac -nowarn -d /tmp/classes java_programs/*.java",
        runner="java",
        test_command=".",
    )


def _in_package(text: str) -> str:
    """Returns a corrected program as it reads in the package of the wrong ones."""
    text = re.sub(
        r"^package correct_java_programs;", "package java_programs;", text, flags=re.MULTILINE
    )
    return re.sub(r"^import java_programs\.\w+;[ \t]*\r?\n", "", text, flags=re.MULTILINE)


def _without_spaces(line: str) -> str:
    return "" if line.lstrip().startswith(("*", "/*", "//")) else "".join(line.split())


def _java_example(body: str) -> str:
    """Returns the call that a test makes and what it expects, or else what the test does."""
    call, expected = _CALL.search(body), _EXPECTED.search(body)
    if call and expected:
        return f"For example, `{call[1]}` should give:\n\n    {expected[1]}"
    lines = [line for line in body.splitlines() if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    code = "\n".join(f"    {line[margin:].rstrip()}" for line in lines)
    return f"For example, this should go through:\n\n{code}"


def _documented(folder: Path, path: str) -> tuple[str, str, str]:
    """Divides a Python program: code, description, and that as it stands at the end of the file."""
    text = read_text(folder / path)
    try:
        body = syntax.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise InvalidTaskError(f"{path}: not Python: {error}") from None
    last = body[-1] if body else None
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)):
        return text, "", ""
    lines = text.split("\n")
    code = "".join(f"{line}\n" for line in lines[: last.lineno - 1])
    return code, str(last.value.value), "\n".join(lines[last.lineno - 1 :])


def _repaired(wrong: str, right: str, key: Callable[[str], str]) -> str:
    """Returns the right program with as few changes of the wrong one as there can be.

    Lines that differ in nothing that matters stay as the wrong program has them: the corrected
    programs were edited by other hands.

    ``key`` returns what of a line matters, "" for nothing.
    """
    old, tail = _blocks(wrong, key)
    new, _ = _blocks(right, key)
    matcher = difflib.SequenceMatcher(
        None, [key(line) for _, line in old], [key(line) for _, line in new], autojunk=False
    )
    result: list[str] = []
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            result += [part for block in old[start:end] for part in block]
            continue
        for before, line in new[new_start:new_end]:
            result += [line] if before.strip() else [before, line]  # no comments on the repair
    return "".join(result) + tail


def _blocks(text: str, key: Callable[[str], str]) -> tuple[list[tuple[str, str]], str]:
    """Returns each line that matters after those before it that do not, and what follows all."""
    blocks: list[tuple[str, str]] = []
    blank = ""
    for line in text.splitlines(keepends=True):
        if key(line):
            blocks.append((blank, line))
            blank = ""
        else:
            blank += line
    return blocks, blank


def _by_outcome(
    ids: Sequence[str], marks: str, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Divides tests into those that the bug breaks, the others, and those that are left out."""
    if len(ids) != len(marks):
        raise InvalidTaskError(
            f"{path}: has {len(ids)} tests where QuixBugs had {len(marks)} when it was measured "
            "(August 2022, commit 4257f44); check out that commit"
        )
    broken, working, left_out = (
        tuple(test for test, mark in zip(ids, marks, strict=True) if mark == wanted)
        for wanted in "F.s"
    )
    return broken, working, left_out


def _issue(name: str, path: str, text: str, example: str) -> str:
    """Returns the issue: what the program is for, and a call that goes wrong."""
    kept: list[str] = []
    for line in text.strip().splitlines():
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip())
    quoted = "\n".join(f"    {line}".rstrip() for line in kept)
    return (
        f"{name} does not do what it says\n\n"
        f"`{name}` in `{path}` gives wrong results, raises, or never ends. It is meant to be:\n\n"
        f"{quoted}\n\n{example}\n"
    )


QUIXBUGS = Checkout(name="quixbugs", reads=is_checkout, read=read_checkout)
