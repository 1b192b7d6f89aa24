"""The Python programs of a QuixBugs checkout."""

import ast
import json
from pathlib import Path
from typing import Any

from coding_gym import syntax
from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.sources.file_text import read_text
from coding_gym.tasks.sources.quixbugs_text import (
    REPO,
    Documented,
    by_outcome,
    documented,
    repaired,
    statement,
)

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
_TESTS = "python_testcases"


def python_task(folder: Path, name: str, marks: str) -> Task:
    """Returns the task of one program.

    Args:
        folder: The checkout.
        name: The program's name.
        marks: How its tests end at base; see `quixbugs_outcomes`.

    Raises:
        OSError: A file cannot be read; it says which.
        InvalidTaskError: A file is not Python, or has other tests than ``marks`` says.
    """
    path = f"python_programs/{name}.py"
    wrong = documented(read_text(folder / path), path)
    right = documented(read_text(folder / f"correct_{path}"), f"correct_{path}")
    test_path = f"{_TESTS}/test_{name}.py"
    test = read_text(folder / test_path)
    cases = _cases(folder, name)
    ids = _test_ids(test, test_path, cases)
    broken, working, left_out = by_outcome(ids, marks, folder / test_path)
    fixed = repaired(wrong.code, right.code, _without_comment) + wrong.tail
    too_slow = sorted(test.partition("[")[2] for test in left_out)
    hidden = {"conftest.py": _CONFTEST.format(too_slow=too_slow), test_path: test}
    for extra in ("load_testdata.py", "node.py"):
        hidden[f"{_TESTS}/{extra}"] = read_text(folder / _TESTS / extra)
    if cases is not None:
        hidden[f"json_testcases/{name}.json"] = read_text(folder / f"json_testcases/{name}.json")
    return Task(
        task_id=f"quixbugs-python-{name}",
        tree=FilesTree({path: wrong.code + wrong.tail}),
        problem_statement=_statement(name, path, wrong, cases, ids.index(broken[0]), test),
        gold_patch=Patch.between({path: wrong.code + wrong.tail}, {path: fixed}).text,
        test_patch=Patch.between({}, hidden).text,
        fail_to_pass=broken,
        pass_to_pass=working,
        excluded_tests=left_out,
        repo=REPO,
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
        f"{path}::{function.name}[input_data{number}-{_shown(expected, number)}]"
        for function in functions
        for number, (_, expected) in enumerate(cases)
    ]


def _shown(expected: Any, number: int) -> str:
    """Returns what pytest makes of an expected value in the name of a test."""
    if isinstance(expected, str):
        return expected.encode("unicode_escape").decode("ascii")
    if isinstance(expected, int | float) or expected is None:
        return str(expected)
    return f"expected{number}"


def _statement(
    name: str,
    path: str,
    program: Documented,
    cases: list[Any] | None,
    number: int,
    test: str,
) -> str:
    if cases is not None:
        arguments, expected = cases[number]
        called = ", ".join(map(repr, arguments)) if isinstance(arguments, list) else repr(arguments)
        example = f"For example, `{name}({called})` should give:\n\n    {expected!r}"
    else:
        functions = [n for n in syntax.parse(test).body if isinstance(n, ast.FunctionDef)]
        example = _described(ast.get_docstring(functions[number]) or "")
    return statement(name, path, program.text, example)


def _described(text: str) -> str:
    """Returns what a test says of itself, as an example."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line.partition(":")[2].strip() if line.startswith("Case") else line for line in lines]
    return "One case in which it goes wrong:\n\n" + "\n".join(f"    {line}" for line in lines)
