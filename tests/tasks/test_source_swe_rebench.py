"""SWE-rebench: how to install and test stands in each row."""

import datetime
import logging

import pytest
import rows

CONFIG = {
    "python": "3.9",
    "install": "pip install -e .[dev]",
    "pre_install": ["apt-get update && apt-get install -y gcc", "touch local.cfg"],
    "pip_packages": ["pytest", "pytest-cov"],
    "reqs_path": ["requirements/dev.txt"],
    "packages": "requirements.txt",
    "test_cmd": "pytest --no-header -rA",
    "log_parser": "parse_log_pytest",
    "env_vars": None,
}


def row(**more: object) -> dict[str, object]:
    fields = {
        "created_at": datetime.datetime(2024, 5, 14, 9, 30),  # as Parquet has it
        "install_config": CONFIG,
        "requirements": "click==8.1.8\n-e git+https://h/o/n@1#egg=name\nFlask[async]==3.1.0\n",
        "docker_image": "swerebench/sweb.eval.x86_64.owner_1776_name-64",
    }
    return rows.row(64, **fields | more)


def load(**more: object):
    return rows.loaded(row(**more))


def test_frozen_requirements_come_before_the_project():
    task = load()
    assert task.install_commands == (
        "touch local.cfg",
        "python -m pip install click==8.1.8 'Flask[async]==3.1.0'",
        "python -m pip install pytest pytest-cov",
        "pip install -e .[dev]",
    )
    assert (task.interpreter, task.runner) == ("3.9", "pytest")
    assert task.image == "swerebench/sweb.eval.x86_64.owner_1776_name-64"
    assert task.created_at == "2024-05-14T09:30:00"


def test_commands_for_the_system_are_left_out_with_a_word(caplog):
    commands = ["apt-get install -y a-library", "make", "sudo make install"]
    with caplog.at_level(logging.WARNING, "coding_gym"):
        task = load(install_config=CONFIG | {"pre_install": commands})
    assert task.install_commands[0] == "make"
    (record,) = caplog.records
    said = record.getMessage()
    assert said.startswith("row 1 (owner__name-64): left out of the install commands")
    assert said.endswith(": 'apt-get install -y a-library', 'sudo make install'")


def test_without_them_the_files_that_the_row_names_do():
    task = load(requirements=None)
    assert task.install_commands[1] == "python -m pip install -r requirements/dev.txt"


def test_other_languages_run_their_command_and_read_its_log():
    config = {"install": ["npm ci"], "test_cmd": ["npm run build", "npx jest"]}
    task = load(
        language="ts",
        FAIL_TO_PASS=["suite > case"],
        install_config=config | {"log_parser": "parse_log_jest"},
        docker_image=None,
        image_name="docker.io/swerebenchv2/owner-name:1",
        requirements="",
    )
    assert (task.runner, task.test_report, task.language) == ("swebench", "jest", "typescript")
    assert task.test_command == "npm run build\nnpx jest"
    assert task.install_commands == ("npm ci",)
    assert task.interpreter == "base"
    assert task.image == "docker.io/swerebenchv2/owner-name:1"


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("install_config", "pip", "must be an object, got 'pip'"),
        ("install_config.python", 3.9, "must be text, got 3.9"),
        ("install_config.pip_packages", [1], "must be a list of texts"),
        ("requirements", 3, "must be text, got 3"),
    ],
)
def test_a_malformed_row_is_refused_with_row_field_and_value(place, value, said):
    field, _, key = place.partition(".")
    found = rows.refusal([row(**{field: CONFIG | {key: value} if key else value})])
    assert found.startswith(f"row 1 (owner__name-64): field '{place}' {said}")


def test_the_format_by_name_asks_for_its_field(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"instance_id": "a"}\n')
    found = rows.refusal(f"swe-rebench:{tmp_path}/rows.jsonl")
    assert found.endswith("line 1 (a): field 'install_config' is missing")
