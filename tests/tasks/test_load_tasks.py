"""Choosing tasks: sources by name, and filters."""

from pathlib import Path

import pytest

from coding_gym.errors import InvalidArgumentError, InvalidTaskError, UnknownTaskError
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


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(InvalidArgumentError, match=f"at least 1, got {limit}"):
        ids(limit=limit)


@pytest.mark.parametrize("wanted", [3, [3]])
def test_a_filter_that_is_no_text_is_refused(wanted):
    with pytest.raises(InvalidArgumentError, match="repos must be text or a list of texts"):
        ids(repos=wanted)


def test_an_empty_list_of_ids_is_called_empty():
    with pytest.raises(InvalidArgumentError, match="task_ids is empty; give at least one id, or N"):
        ids(task_ids=[])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nofile.jsonl", "there is no file 'nofile.jsonl'; give 'bundled', "),
        ("swe-smith:nofile.jsonl", "there is no file 'nofile.jsonl'; give 'bundled', "),
        (Path("/nonexistent"), "there is no file or folder '/nonexistent'; give 'bundled', "),
        ("./no/such/folder", "there is no file or folder './no/such/folder'; give 'bundled', "),
    ],
)
def test_a_path_at_which_nothing_lies_is_called_missing(source, said):
    with pytest.raises(UnknownTaskError) as refused:
        load_tasks(source)
    assert str(refused.value).startswith(said)


def test_a_test_that_must_fail_and_pass_at_the_base_is_refused_where_it_stands():
    both = row("d", PASS_TO_PASS=["t.py::test_b", "t.py::test_a"])
    with pytest.raises(
        InvalidTaskError, match=r"row 2 \(d\): fields .* both name 't\.py::test_a'; name it in one"
    ):
        load_tasks([ROWS[0], both])
    assert load_tasks([ROWS[0], both], task_ids="c")
    said = {"d": {"excluded_tests": ["t.py::test_a"]}}
    with pytest.raises(InvalidTaskError, match="leaves none of the 1 tests"):
        load_tasks([both], environments=said)


@pytest.mark.parametrize(
    ("environments", "said"),
    [("swebnch", "did you mean 'swebench'?"), ("gone.jsonl", "or give 'swebench'")],
)
def test_environments_that_are_not_there_are_called_missing(environments, said):
    with pytest.raises(InvalidArgumentError) as refused:
        load_tasks(ROWS, environments=environments)
    assert str(refused.value).endswith(f"there is no file {environments!r}; {said}")


def test_an_unknown_source_says_what_there_is(tmp_path):
    with pytest.raises(UnknownTaskError, match="no task source 'bundeld'; did you mean 'bundled'"):
        load_tasks("bundeld")
    gone = tmp_path / "gone.jsonl"
    with pytest.raises(
        UnknownTaskError, match=r"gone\.jsonl'; give 'bundled', 'polyglot', a folder of tasks"
    ):
        load_tasks(gone)


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
