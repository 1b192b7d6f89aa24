"""The Java programs of a QuixBugs checkout."""

import re
from pathlib import Path

from coding_gym.errors import InvalidTaskError
from coding_gym.patch import Patch
from coding_gym.task import FilesTree, Task
from coding_gym.tasks.sources.file_text import read_text
from coding_gym.tasks.sources.junit_source import without_comments
from coding_gym.tasks.sources.quixbugs_text import (
    REPO,
    by_outcome,
    documented,
    repaired,
    statement,
)

_PROGRAMS, _TESTS = "java_programs", "java_testcases/junit"
_TEST = re.compile(
    r"@(?:org\.junit\.)?Test\b[^;{]*?\bvoid\s+(\w+)\s*\(([^;{]*)\{(.*?)\n    \}", re.DOTALL
)
_CALL = re.compile(r"java_programs\.(\w+\.\w+\(.*\));")
_EXPECTED = re.compile(r"assertEquals\(\s*(.+?),\s*result\w*(?:,[^,()]*)?\s*\);")
# Two programs say in a comment what is wrong with them.
_GIVEAWAY = re.compile(r"[ \t]*// [^\n]*(?:fixed|correct) version[^\n]*")
_SHARED = ("Node", "WeightedEdge")


def java_task(folder: Path, name: str, marks: str) -> Task:
    """Returns the task of one program.

    Args:
        folder: The checkout.
        name: The program's name, in lower case.
        marks: How its tests end at base; see `quixbugs_outcomes`.

    Raises:
        OSError: A file cannot be read; it says which.
        InvalidTaskError: A file has other tests than ``marks`` says.
    """
    path = f"{_PROGRAMS}/{name.upper()}.java"
    wrong = _GIVEAWAY.sub("", read_text(folder / path))
    right = _in_package(read_text(folder / f"correct_{path}"))
    tree = {path: wrong}
    test_path = f"{_TESTS}/{name.upper()}_TEST.java"
    test = read_text(folder / test_path)
    for shared in _SHARED:
        if re.search(rf"\b{shared}\b", wrong + test):
            tree[f"{_PROGRAMS}/{shared}.java"] = read_text(folder / f"{_PROGRAMS}/{shared}.java")
    hidden = {test_path: test}
    if "QuixFixOracleHelper" in test:
        oracle = f"{_TESTS}/QuixFixOracleHelper.java"
        hidden[oracle] = read_text(folder / oracle)
    found = {match[1]: match[3] for match in _TEST.finditer(without_comments(test))}
    ids = [f"java_testcases.junit.{name.upper()}_TEST::{method}" for method in found]
    broken, working, left_out = by_outcome(ids, marks, folder / test_path)
    about = documented(
        read_text(folder / f"python_programs/{name}.py"), f"python_programs/{name}.py"
    )
    body = found[broken[0].partition("::")[2]]
    gold = Patch.between({path: wrong}, {path: repaired(wrong, right, _without_spaces)})
    if gold.is_empty:
        raise InvalidTaskError(f"{folder / path}: does not differ from the corrected program")
    return Task(
        task_id=f"quixbugs-java-{name}",
        tree=FilesTree(tree),
        problem_statement=statement(name, path, about.text, _example(body)),
        gold_patch=gold.text,
        test_patch=Patch.between({}, hidden).text,
        fail_to_pass=broken,
        pass_to_pass=working,
        excluded_tests=left_out,
        repo=REPO,
        difficulty="easy",
        language="java",
        visible_test_command=f"javac -nowarn -d /tmp/classes {_PROGRAMS}/*.java",
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


def _example(body: str) -> str:
    """Returns the call that a test makes and what it expects, or else what the test does."""
    call, expected = _CALL.search(body), _EXPECTED.search(body)
    if call and expected:
        return f"For example, `{call[1]}` should give:\n\n    {expected[1]}"
    lines = [line for line in body.splitlines() if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    shown = "\n".join(f"    {line[margin:].rstrip()}" for line in lines)
    return f"For example, this should go through:\n\n{shown}"
