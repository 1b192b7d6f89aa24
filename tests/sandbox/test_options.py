"""The argument `sandbox=`."""

import math
from typing import Any

import pytest
from sandbox_fixtures import repeat_once_only_actions

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox import SandboxLimits, SandboxSpec
from coding_gym.sandbox.options import SandboxOptions


def test_a_name_alone_is_enough() -> None:
    assert SandboxOptions.parse("auto") == SandboxOptions.parse({}) == SandboxOptions()
    assert SandboxOptions.parse("namespace") == SandboxOptions.parse({"name": "namespace"})


def test_options_change_what_they_name_and_nothing_else() -> None:
    limits = SandboxLimits(num_processes=7, num_open_files=99)
    spec = SandboxSpec(limits=limits, image="theirs", path=("/opt/bin",))
    arguments = {"limits": {"num_processes": 64, "num_cpus": 1.5}, "shell": "waiting"}
    wanted = SandboxOptions.parse(arguments).applied(spec)
    assert wanted == SandboxSpec(
        shell="waiting",
        limits=SandboxLimits(num_processes=64, num_open_files=99, num_cpus=1.5),
        image="theirs",
        path=("/opt/bin",),
    )
    assert SandboxOptions.parse({"image": "ours"}).applied(spec).image == "ours"
    assert SandboxOptions().applied(spec) == spec


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (3, "sandbox"),
        (["namespace"], "sandbox"),
        ({"nmae": "auto"}, "nmae"),
        ({"memory_bytes": 1}, "memory_bytes"),
        ({"name": None}, "name"),
        ({"name": "lxc"}, "lxc"),
        ({"shell": "persistant"}, "persistent"),
        ({"shell": None}, "shell"),
        ({"image": 5}, "image"),
        ({"limits": 5}, "limits"),
        ({"limits": {"memory": 1}}, "memory_bytes"),
        ({"limits": {"memory_bytes": 0}}, "memory_bytes"),
        ({"limits": {"memory_bytes": 1 << 20}}, "33554432"),
        ({"limits": {"num_processes": True}}, "num_processes"),
        ({"limits": {"num_processes": 1.5}}, "num_processes"),
        ({"limits": {"num_processes": 1}}, "16"),
        ({"limits": {"num_cpus": 0}}, "num_cpus"),
        ({"limits": {"num_cpus": math.inf}}, "num_cpus"),
        ({"limits": {"num_cpus": "2"}}, "num_cpus"),
    ],
)
def test_a_malformed_option_is_named(value: Any, field: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=field):
        SandboxOptions.parse(value)


def test_processors_may_be_all_there_are() -> None:
    arguments = SandboxOptions.parse({"limits": {"num_cpus": None}})
    assert arguments.applied(SandboxSpec(limits=SandboxLimits(num_cpus=2))).limits.num_cpus is None


def test_a_limit_that_is_not_kept_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    repeat_once_only_actions()
    arguments = {"name": "process", "limits": {"disk_bytes": 1 << 20, "file_bytes": 1 << 10}}
    for _ in range(2):
        SandboxOptions.parse(arguments).warn_of_unkept()
    (record,) = caplog.records
    assert "disk_bytes" in record.getMessage()
    assert "file_bytes" not in record.getMessage()
