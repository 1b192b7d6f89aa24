"""AReno's inline programs, and NeMo Gym's requests around rows of others."""

import json

import pytest

from coding_gym.errors import InvalidTaskError
from coding_gym.task import FilesTree, GitTree
from coding_gym.tasks import load_tasks

FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": "…"}


def areno(**more: object) -> dict[str, object]:
    return {
        "instance_id": "local__calc-1",
        "repo": "local/calc",
        "base_commit": "0" * 39 + "1",
        "problem_statement": "add subtracts",
        "FAIL_TO_PASS": ["test_calc.py::test_add"],
        "PASS_TO_PASS": [],
        "files": FILES,
        "test_commands": ["python -m pytest test_calc.py -q"],
        "max_turns": 8,
    } | more


def test_named_tests_count_where_they_are_pytests():
    (task,) = load_tasks([areno()])
    assert task.tree == FilesTree(FILES)
    assert (task.runner, task.fail_to_pass) == ("pytest", ("test_calc.py::test_add",))
    assert task.visible_test_command == "python -m pytest test_calc.py -q"
    assert task.max_turns == 8
    assert load_tasks([task.to_row()]) == (task,)


@pytest.mark.parametrize("named", [[], None, ["adds two numbers"]])
def test_otherwise_each_command_is_a_test(named):
    commands = ["make check", "./run all"]
    (task,) = load_tasks([areno(FAIL_TO_PASS=named, test_commands=commands)])
    assert (task.runner, task.fail_to_pass, task.pass_to_pass) == (
        "command",
        ("make check", "./run all"),
        (),
    )
    assert task.visible_test_command == "make check && ./run all"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_commands": None}, "field 'test_commands' is missing"),
        (
            {"test_commands": []},
            "field 'test_commands' must be a list of at least one shell command",
        ),
        ({"test_commands": [" "]}, "field 'test_commands' must be a list of at least one shell"),
        ({"test_commands": [1]}, "field 'test_commands' must be a list of texts"),
        (
            {"files": {"a.py": 1}},
            "field 'files' must be an object of texts by path, got {'a.py': 1}",
        ),
        ({"max_turns": -1}, "field 'max_turns' must be a whole number of at least 0, got -1"),
        ({"max_turns": True}, "field 'max_turns' must be a whole number of at least 0, got True"),
    ],
)
def test_a_malformed_row_of_areno_is_refused_with_row_field_and_value(change, message):
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks([areno(**change)])
    assert str(refused.value).startswith(f"row 1 (local__calc-1): {message}")


INNER = {
    "instance_id": "getmoto__moto-1",
    "repo": "getmoto/moto",
    "base_commit": "1" * 40,
    "problem_statement": "It is wrong.",
    "FAIL_TO_PASS": ["tests/test_a.py::test_a"],
}


def test_fields_may_stand_beside_the_request():
    request = {"responses_create_params": {"input": []}, "subset": "gym", "split": "train"}
    (task,) = load_tasks([INNER | request])
    assert (task.task_id, task.split) == ("getmoto__moto-1", "train")
    assert task.image == "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-1:latest"


@pytest.mark.parametrize("as_text", [True, False])
def test_the_row_may_stand_inside_the_request(as_text):
    metadata = {"instance_dict": json.dumps(INNER) if as_text else INNER, "split": "test"}
    outer = {"responses_create_params": {"input": [], "metadata": metadata}, "agent_ref": {}}
    (task,) = load_tasks([outer])
    assert (task.task_id, task.split) == ("getmoto__moto-1", "test")
    assert task.tree == GitTree("https://github.com/getmoto/moto")


def test_the_row_inside_may_be_of_any_format():
    metadata = {"instance_dict": areno()}
    (task,) = load_tasks([{"responses_create_params": {"metadata": metadata}}])
    assert (task.task_id, task.max_turns) == ("local__calc-1", 8)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (None, "field 'responses_create_params' must be an object, got None"),
        (
            {"metadata": {"instance_dict": "{"}},
            "field 'responses_create_params.metadata.instance_d",
        ),
        (
            {"metadata": {"instance_dict": "[1]"}},
            "field 'responses_create_params.metadata.instance_dict' must be a row of a dataset",
        ),
        ({"metadata": {"instance_dict": {}}}, "field 'instance_id' is missing"),
        ({}, "field 'instance_id' is missing"),
    ],
)
def test_a_malformed_row_of_nemo_gym_is_refused_with_row_field_and_value(request_, message):
    with pytest.raises(InvalidTaskError) as refused:
        load_tasks([INNER, {"responses_create_params": request_}])
    assert str(refused.value).startswith(f"row 2: {message}")
