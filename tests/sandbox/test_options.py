"""What `sandbox=` may say."""

import math
from typing import Any

import pytest
from sandbox_fixtures import repeat_once_only_actions

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox import SandboxLimits, SandboxSpec
from coding_gym.sandbox.options import SandboxOptions


def test_a_name_alone_is_all_that_is_needed() -> None:
    assert SandboxOptions.parse("auto") == SandboxOptions.parse({}) == SandboxOptions()
    assert SandboxOptions.parse("namespace") == SandboxOptions.parse({"name": "namespace"})


def test_options_change_what_they_name_and_nothing_else() -> None:
    limits = SandboxLimits(num_processes=7, num_open_files=99)
    spec = SandboxSpec(limits=limits, image="theirs", path=("/opt/bin",))
    asked = {"limits": {"num_processes": 64, "num_cpus": 1.5}, "shell": "waiting"}
    wanted = SandboxOptions.parse(asked).applied(spec)
    assert wanted == SandboxSpec(
        shell="waiting",
        limits=SandboxLimits(num_processes=64, num_open_files=99, num_cpus=1.5),
        image="theirs",
        path=("/opt/bin",),
    )
    assert SandboxOptions.parse({"image": "ours"}).applied(spec).image == "ours"
    assert SandboxOptions().applied(spec) == spec


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, r"sandbox must be a backend's name or a mapping such as .*, got 3"),
        (["namespace"], r"sandbox must be a backend's name"),
        ({"nmae": "auto"}, "sandbox has no argument 'nmae'; did you mean 'name'"),
        ({"memory_bytes": 1}, "sandbox has no argument 'memory_bytes'; it has name, shell"),
        ({"name": None}, "sandbox name must be a text, got None"),
        ({"image": 5}, "sandbox image must be a text, got 5"),
        ({"limits": 5}, r"sandbox limits must be a mapping such as .*, got 5"),
        ({"limits": {"memory": 1}}, "has no argument 'memory'; did you mean 'memory_bytes'"),
        ({"limits": {"memory_bytes": 0}}, "sandbox limit memory_bytes must be .*, got 0"),
        ({"limits": {"num_processes": True}}, "num_processes must be .*, got True"),
        ({"limits": {"num_processes": 1.5}}, "num_processes must be .*, got 1.5"),
        ({"limits": {"num_processes": 1}}, "num_processes must be .* at least 16, got 1"),
        ({"limits": {"memory_bytes": 1 << 20}}, "memory_bytes must be .* at least 33554432"),
        (
            {"limits": {"num_cpus": 0}},
            "num_cpus must be a number above 0 and at most 65536, or None, got 0",
        ),
        ({"limits": {"num_cpus": math.inf}}, "num_cpus must be a number above 0"),
        ({"limits": {"num_cpus": "2"}}, "num_cpus must be a number above 0"),
    ],
)
def test_what_cannot_be_is_named_with_the_way_out(value: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        SandboxOptions.parse(value)


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="no sandbox backend is called 'lxc'"):
        SandboxOptions.parse({"name": "lxc"})
    with pytest.raises(UnknownNameError, match="'persistant'; did you mean 'persistent'"):
        SandboxOptions.parse({"shell": "persistant"})
    with pytest.raises(UnknownNameError, match="no sandbox shell is called None"):
        SandboxOptions.parse({"shell": None})


def test_processors_may_be_all_there_are() -> None:
    asked = SandboxOptions.parse({"limits": {"num_cpus": None}})
    assert asked.applied(SandboxSpec(limits=SandboxLimits(num_cpus=2))).limits.num_cpus is None


def test_a_limit_that_nothing_keeps_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    repeat_once_only_actions()
    asked = {"name": "process", "limits": {"disk_bytes": 1 << 20, "file_bytes": 1 << 10}}
    for _ in range(2):
        SandboxOptions.parse(asked).warn_of_unkept()
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "the 'process' sandbox does not keep disk_bytes on this machine"
    ]
