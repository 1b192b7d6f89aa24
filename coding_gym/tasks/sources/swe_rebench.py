"""SWE-rebench: SWE-bench's schema with an ``install_config`` in each row, and frozen requirements.

Commands for a system's package manager are left out: environments are built without root. Where a
project needs them, run its rows in their images.
"""

import logging
import re
import shlex
from collections.abc import Mapping
from typing import Any

from coding_gym.row_reader import RowReader
from coding_gym.tasks.left_out import FROM_INSTALL, log_once
from coding_gym.tasks.sources.fields import hidden_test_ids
from coding_gym.tasks.sources.kinds import Row, RowFormat
from coding_gym.tasks.sources.runner_choice import how_tests_run
from coding_gym.tasks.sources.swe_bench import fill_in, with_pytest

_log = logging.getLogger(__name__)

_CONFIG = "install_config"
_NEEDS_ROOT = re.compile(r"(sudo |apt-get |apt |conda |dpkg |yum |apk )")
_PIN = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?==[^\s;]+")


def _to_row(row: Row, where: str) -> Row:
    reader = RowReader(row, where)
    config = row.get(_CONFIG)
    if not isinstance(config, Mapping):
        if config is None:
            raise reader.error(_CONFIG, "is missing")
        raise reader.wrong(_CONFIG, "an object")
    inside = _Config(config, reader)
    command = "\n".join(inside.commands("test_cmd"))
    parser = inside.text("log_parser")
    run = how_tests_run(hidden_test_ids(reader), command, parser, where=reader.label)
    installs = _install_commands(inside, reader)
    made: dict[str, Any] = {
        **run,
        "install_commands": with_pytest(installs) if run["runner"] == "pytest" else installs,
        "image": _image(reader),
    }
    if python := inside.text("python"):
        made["interpreter"] = python
    kept = {key: value for key, value in row.items() if key not in (_CONFIG, "image_name")}
    return fill_in(made | kept, where)


def _image(reader: RowReader) -> str:
    for key in ("docker_image", "image_name"):
        if reader.row.get(key) is not None:
            return reader.text(key)
    return ""


def _install_commands(inside: "_Config", reader: RowReader) -> tuple[str, ...]:
    before = inside.commands("pre_install")
    if left_out := [one for one in before if _NEEDS_ROOT.match(one)]:
        log_once(_log, FROM_INSTALL, reader.label, left_out)
    commands = [one for one in before if one not in left_out]
    frozen = reader.text("requirements") if reader.row.get("requirements") is not None else ""
    pins = [word for word in frozen.split() if _PIN.fullmatch(word)]
    if pins:
        commands.append(f"python -m pip install {shlex.join(pins)}")
    else:
        files = inside.commands("reqs_path")
        commands += [f"python -m pip install -r {shlex.quote(file)}" for file in files]
    if packages := inside.commands("pip_packages"):
        commands.append(f"python -m pip install {shlex.join(packages)}")
    return (*commands, *inside.commands("install"))


class _Config:
    """The fields of ``install_config``; errors name them with it in front."""

    def __init__(self, config: Row, outer: RowReader) -> None:
        named = {f"{_CONFIG}.{key}": value for key, value in config.items()}
        self._reader = RowReader({"instance_id": outer.row.get("instance_id")} | named, outer.where)

    def text(self, key: str) -> str:
        """Returns a text; "" where there is none."""
        name = f"{_CONFIG}.{key}"
        return self._reader.text(name) if self._reader.row.get(name) is not None else ""

    def commands(self, key: str) -> tuple[str, ...]:
        """Returns one text or a list of texts, as a list without empty ones."""
        name = f"{_CONFIG}.{key}"
        value = self._reader.row.get(name)
        if isinstance(value, str):
            texts: tuple[str, ...] = (value,)
        else:
            texts = () if value is None else self._reader.texts(name)
        return tuple(text.strip() for text in texts if text.strip())


SWE_REBENCH = RowFormat(name="swe-rebench", reads=lambda row: _CONFIG in row, to_row=_to_row)
