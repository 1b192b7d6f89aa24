"""Reads rows of SWE-rebench: SWE-bench's schema, with installation commands and requirements.

Environments are built without root, so commands of the system's package manager are excluded; a
project that needs such a command can run in the image that its row names.
"""

import re
import shlex
from typing import Any

from coding_gym.tasks.root_commands import without_root
from coding_gym.tasks.sources.swe_bench import (
    fill_in,
    hidden_test_ids,
    how_tests_run,
    with_pytest,
)
from coding_gym.tasks.task_row import Row, Text, Texts, value_of

_CONFIG = "install_config"
_PIN = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[^\s;]+")


def reads(row: Row) -> bool:
    """Returns whether a row has the field ``install_config`` of SWE-rebench."""
    return _CONFIG in row


def to_row(row: Row, position: str) -> Row:
    """Returns a row of SWE-rebench in the common schema."""
    config = value_of(row, _CONFIG, dict[str, Any], position, {})
    # Error messages name these fields with the prefix ``install_config``.
    config_fields = {f"{_CONFIG}.{key}": value for key, value in config.items()}
    config_fields["instance_id"] = row.get("instance_id")
    command = "\n".join(_commands(config_fields, "test_cmd", position))
    parser = value_of(config_fields, f"{_CONFIG}.log_parser", Text, position, "")
    run = how_tests_run(hidden_test_ids(row, position), command, parser)
    requirements = value_of(row, "requirements", Text, position, "")
    install_commands = _install_commands(config_fields, requirements, position)
    if run["runner"] == "pytest":
        install_commands = with_pytest(install_commands)
    docker_image = value_of(row, "docker_image", Text, position)
    derived_fields: dict[str, Any] = {
        **run,
        "install_commands": install_commands,
        "image": docker_image or value_of(row, "image_name", Text, position, ""),
    }
    if python := value_of(config_fields, f"{_CONFIG}.python", Text, position):
        derived_fields["interpreter"] = python
    copied_fields = {key: value for key, value in row.items() if key not in (_CONFIG, "image_name")}
    return fill_in(derived_fields | copied_fields, position)


def _install_commands(config_fields: Row, requirements: str, position: str) -> tuple[str, ...]:
    """Returns the commands that install the project without root."""
    commands = [*without_root(_commands(config_fields, "pre_install", position))]
    pins = [word for word in requirements.split() if _PIN.fullmatch(word)]
    if pins:
        commands.append(f"python -m pip install {shlex.join(pins)}")
    else:
        files = _commands(config_fields, "reqs_path", position)
        commands += [f"python -m pip install -r {shlex.quote(file)}" for file in files]
    if packages := _commands(config_fields, "pip_packages", position):
        commands.append(f"python -m pip install {shlex.join(packages)}")
    return (*commands, *without_root(_commands(config_fields, "install", position)))


def _commands(config_fields: Row, key: str, position: str) -> tuple[str, ...]:
    """Returns the non-empty texts of a field, which is a text or a list of texts."""
    name = f"{_CONFIG}.{key}"
    value = config_fields.get(name)
    if isinstance(value, str):
        texts: tuple[str, ...] = (value,)
    else:
        texts = value_of(config_fields, name, Texts, position, ())
    return tuple(text.strip() for text in texts if text.strip())
