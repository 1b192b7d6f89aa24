"""AReno's inline programs, and NeMo Gym's requests around rows of others."""

import json

import pytest
from rows import loaded, refusal, row

from coding_gym.task import FilesTree, GitTree
from coding_gym.tasks import load_tasks

FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": "…"}
TEST = "test_calc.py::test_add"
ARENO = row(files=FILES, FAIL_TO_PASS=[TEST], test_commands=["pytest test_calc.py"], max_turns=8)
INNER = row(instance_id="getmoto__moto-1", repo="getmoto/moto")


def test_named_tests_count_where_they_are_pytests():
    task = loaded(ARENO)
    assert task.tree == FilesTree(FILES)
    assert (task.runner, task.fail_to_pass) == ("pytest", (TEST,))
    assert task.visible_test_command == "pytest test_calc.py"
    assert task.max_turns == 8
    assert load_tasks([task.to_row()]) == (task,)


@pytest.mark.parametrize("named", [[], None, ["adds two numbers"]])
def test_otherwise_each_command_is_a_test(named):
    commands = ("make check", "./run all")
    task = loaded(ARENO | {"FAIL_TO_PASS": named, "test_commands": list(commands)})
    assert (task.runner, task.fail_to_pass, task.pass_to_pass) == ("command", commands, ())
    assert task.visible_test_command == "make check && ./run all"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("test_commands", None, "is missing"),
        ("test_commands", [], "must be a list of at least one shell command"),
        ("test_commands", [" "], "must be a list of at least one shell"),
        ("test_commands", [1], "must be a list of texts"),
        ("files", {"a.py": 1}, "must be an object of texts by path, got {'a.py': 1}"),
        ("max_turns", -1, "must be a whole number of at least 0, got -1"),
        ("max_turns", True, "must be a whole number of at least 0, got True"),
    ],
)
def test_a_malformed_row_of_areno_is_refused_with_row_field_and_value(field, value, said):
    expected = f"row 1 (owner__name-1): field '{field}' {said}"
    assert refusal([ARENO | {field: value}]).startswith(expected)


def test_fields_may_stand_beside_the_request():
    request = {"responses_create_params": {"input": []}, "subset": "gym", "split": "train"}
    task = loaded(INNER | request)
    assert (task.task_id, task.split) == ("getmoto__moto-1", "train")
    assert task.image == "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-1:latest"


@pytest.mark.parametrize("as_text", [True, False])
def test_the_row_may_stand_inside_the_request(as_text):
    metadata = {"instance_dict": json.dumps(INNER) if as_text else INNER, "split": "test"}
    task = loaded({"responses_create_params": {"input": [], "metadata": metadata}, "agent_ref": {}})
    assert (task.task_id, task.split) == ("getmoto__moto-1", "test")
    assert task.tree == GitTree("https://github.com/getmoto/moto")


def test_the_row_inside_may_be_of_any_format():
    task = loaded({"responses_create_params": {"metadata": {"instance_dict": ARENO}}})
    assert (task.task_id, task.max_turns) == ("owner__name-1", 8)


def test_a_malformed_row_of_nemo_gym_is_refused_with_row_field_and_value():
    inner = "responses_create_params.metadata.instance_dict"
    for request, said in [
        (None, "'responses_create_params' must be an object, got None"),
        ({"metadata": {"instance_dict": "{"}}, f"'{inner}' "),
        ({"metadata": {"instance_dict": "[1]"}}, f"'{inner}' must be a row of a dataset"),
        ({"metadata": {"instance_dict": {}}}, "'instance_id' is missing"),
        ({}, "'instance_id' is missing"),
    ]:
        found = refusal([INNER, {"responses_create_params": request}])
        assert found.startswith(f"row 2: field {said}"), found
