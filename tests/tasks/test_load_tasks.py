"""Choosing tasks: sources by name, and filters."""

from pathlib import Path

import pytest
from rows import refusal

from coding_gym.errors import InvalidArgumentError, UnknownTaskError
from coding_gym.tasks import find_task, load_tasks


def row(task_id: str, **more: str) -> dict[str, object]:
    base = {"instance_id": task_id, "problem_statement": "broken", "files": {"a.py": ""}}
    return base | {"FAIL_TO_PASS": ["t.py::test_a"]} | more


ROWS = [
    row("c", repo="o/x", split="train", difficulty="easy"),
    row("a", repo="o/y", split="test", difficulty="hard"),
    row("b", repo="o/x", split="test", difficulty="hard", language="java"),
    row("calc-add-sign", repo="o/z", split="train", difficulty="easy"),
]


def ids(**filters: object) -> list[str]:
    return [task.task_id for task in load_tasks(ROWS, **filters)]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({}, ["c", "a", "b", "calc-add-sign"]),
        ({"task_ids": ["b", "c"]}, ["c", "b"]),
        ({"task_ids": "b"}, ["b"]),
        ({"repos": ["o/x"]}, ["c", "b"]),
        ({"languages": ["java"]}, ["b"]),
        ({"difficulty": "hard"}, ["a", "b"]),
        ({"split": "train"}, ["c", "calc-add-sign"]),
        ({"split": ["train", "test"], "limit": 3}, ["c", "a", "b"]),
        ({"split": "test", "repos": "o/x", "limit": 9}, ["b"]),
    ],
)
def test_filters_are_exact_and_keep_the_order(filters, left):
    assert ids(**filters) == left


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"split": "tset"}, "split=['tset'] leaves none of 4 tasks; their values are ['test', "),
        ({"repos": ["o"]}, "repos=['o'] leaves none of 4 tasks; their values are ['o/x', "),
        (
            {"split": "train", "languages": "java"},
            "split=['train'] leaves none of 1 tasks; their values are ['test']",
        ),
        ({"difficulty": []}, "difficulty=[] leaves none of 4 tasks"),
        (
            {"task_ids": ["calc-add-sing"]},
            "no task 'calc-add-sing' among 4; did you mean 'calc-add-sign'? "
            "`coding-gym tasks list` shows all",
        ),
        ({"task_ids": ["?"]}, "no task '?' among 4; `coding-gym tasks list` shows all"),
    ],
)
def test_a_filter_that_leaves_nothing_is_named(filters, message):
    with pytest.raises(UnknownTaskError) as refused:
        ids(**filters)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        *(({"limit": limit}, f"at least 1, got {limit}") for limit in (0, -1, True, 1.5)),
        *(({"repos": repos}, "repos must be text or a list of texts") for repos in (3, [3])),
        ({"task_ids": []}, "task_ids is empty; give at least one id, or N"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(filters, said):
    with pytest.raises(InvalidArgumentError, match=said):
        ids(**filters)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("bundeld", "no task source 'bundeld'; did you mean 'bundled'"),
        (
            "nofile.jsonl",
            "there is no file 'nofile.jsonl'; give 'bundled', 'polyglot', a folder of tasks",
        ),
        ("swe-smith:nofile.jsonl", "there is no file 'nofile.jsonl'; give 'bundled', "),
        (Path("/nonexistent"), "there is no file or folder '/nonexistent'; give 'bundled', "),
        ("./no/such/folder", "there is no file or folder './no/such/folder'; give 'bundled', "),
    ],
)
def test_a_source_that_is_not_there_is_called_missing(source, said):
    with pytest.raises(UnknownTaskError) as refused:
        load_tasks(source)
    assert str(refused.value).startswith(said)


def test_a_test_that_must_fail_and_pass_at_the_base_is_refused_where_it_stands():
    both = row("d", PASS_TO_PASS=["t.py::test_b", "t.py::test_a"])
    found = refusal([ROWS[0], both])
    assert found.startswith("row 2 (d): fields ")
    assert "both name 't.py::test_a'; name it in one" in found
    assert load_tasks([ROWS[0], both], task_ids="c")
    said = {"d": {"excluded_tests": ["t.py::test_a"]}}
    assert "leaves none of the 1 tests" in refusal([both], environments=said)


@pytest.mark.parametrize(
    ("environments", "said"),
    [("swebnch", "did you mean 'swebench'?"), ("gone.jsonl", "or give 'swebench'")],
)
def test_environments_that_are_not_there_are_called_missing(environments, said):
    with pytest.raises(InvalidArgumentError) as refused:
        load_tasks(ROWS, environments=environments)
    assert str(refused.value).endswith(f"there is no file {environments!r}; {said}")


@pytest.mark.parametrize("source", [3, None, ROWS[0]])
def test_a_source_of_another_type_is_refused(source):
    with pytest.raises(InvalidArgumentError, match="a source's name, a path or a list of rows"):
        load_tasks(source)


def test_find_task_gives_the_task_or_names_what_is_near():
    tasks = load_tasks(ROWS)
    assert find_task(tasks, "b") is tasks[2]
    with pytest.raises(UnknownTaskError, match="did you mean 'calc-add-sign'"):
        find_task(tasks, "calc-add-sig")


def test_tasks_that_were_loaded_are_a_source_too():
    loaded = load_tasks("bundled", limit=2)
    assert load_tasks(list(loaded)) == loaded
