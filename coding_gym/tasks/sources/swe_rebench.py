"""SWE-rebench: SWE-bench's schema with an ``install_config`` in each row, and frozen requirements.

Commands for a system's package manager are dropped: environments are built without root. Where a
project needs them, run its rows in their images.
"""

import re
import shlex
from typing import Any

from coding_gym.task_row import Row, Text, Texts, row_error, value_of
from coding_gym.tasks.excluded_commands import EXCLUDED
from coding_gym.tasks.sources.row_format import RowFormat
from coding_gym.tasks.sources.runner_choice import how_tests_run
from coding_gym.tasks.sources.swe_bench import fill_in, hidden_test_ids, with_pytest

_CONFIG = "install_config"
_NEEDS_ROOT = re.compile(r"(sudo |apt-get |apt |conda |dpkg |yum |apk )")
_PIN = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[^\s;]+")


def _to_row(row: Row, where: str) -> Row:
    config = value_of(row, _CONFIG, dict[str, Any], where)
    if config is None:
        raise row_error(row, where, _CONFIG, "is missing")
    # Errors name these fields with the object in front.
    inner = {f"{_CONFIG}.{key}": value for key, value in config.items()}
    inner["instance_id"] = row.get("instance_id")
    command = "\n".join(_commands(inner, "test_cmd", where))
    parser = value_of(inner, f"{_CONFIG}.log_parser", Text, where, "")
    run = how_tests_run(hidden_test_ids(row, where), command, parser)
    frozen = value_of(row, "requirements", Text, where, "")
    excluded, installs = _install_commands(inner, frozen, where)
    docker_image = value_of(row, "docker_image", Text, where)
    made: dict[str, Any] = {
        **run,
        EXCLUDED: excluded,
        "install_commands": with_pytest(installs) if run["runner"] == "pytest" else installs,
        "image": docker_image or value_of(row, "image_name", Text, where, ""),
    }
    if python := value_of(inner, f"{_CONFIG}.python", Text, where):
        made["interpreter"] = python
    kept = {key: value for key, value in row.items() if key not in (_CONFIG, "image_name")}
    return fill_in(made | kept, where)


def _install_commands(
    inner: Row, frozen: str, where: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the commands that need root, and those that install the project without it."""
    before, install = (_commands(inner, key, where) for key in ("pre_install", "install"))
    excluded = tuple(one for one in before + install if _NEEDS_ROOT.match(one))
    commands = [one for one in before if one not in excluded]
    pins = [word for word in frozen.split() if _PIN.fullmatch(word)]
    if pins:
        commands.append(f"python -m pip install {shlex.join(pins)}")
    else:
        files = _commands(inner, "reqs_path", where)
        commands += [f"python -m pip install -r {shlex.quote(file)}" for file in files]
    if packages := _commands(inner, "pip_packages", where):
        commands.append(f"python -m pip install {shlex.join(packages)}")
    return excluded, (*commands, *(one for one in install if one not in excluded))


def _commands(inner: Row, key: str, where: str) -> tuple[str, ...]:
    """Returns one text or a list of texts, as a list without empty ones."""
    name = f"{_CONFIG}.{key}"
    value = inner.get(name)
    texts = (value,) if isinstance(value, str) else value_of(inner, name, Texts, where, ())
    return tuple(text.strip() for text in texts if text.strip())


SWE_REBENCH = RowFormat(name="swe-rebench", reads=lambda row: _CONFIG in row, to_row=_to_row)
