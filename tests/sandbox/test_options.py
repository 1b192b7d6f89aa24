"""The argument `sandbox=`."""

from typing import Any

import pytest

from coding_gym.errors import InvalidArgumentError, UnknownNameError
from coding_gym.sandbox import SandboxLimits, SandboxSpec
from coding_gym.sandbox.options import SandboxOptions


def test_a_name_alone_is_enough() -> None:
    assert SandboxOptions.parse("auto") == SandboxOptions.parse({}) == SandboxOptions()
    assert SandboxOptions.parse("namespace") == SandboxOptions.parse({"name": "namespace"})


def test_options_change_what_they_name_and_nothing_else() -> None:
    limits = SandboxLimits(num_processes=7, num_open_files=99)
    spec = SandboxSpec(limits=limits, image="theirs", path=("/opt/bin",))
    arguments = {"limits": {"num_processes": 64}, "shell": "persistent"}
    wanted = SandboxOptions.parse(arguments).applied(spec)
    assert wanted == SandboxSpec(
        shell="persistent",
        limits=SandboxLimits(num_processes=64, num_open_files=99),
        image="theirs",
        path=("/opt/bin",),
    )
    assert SandboxOptions.parse({"image": "ours"}).applied(spec).image == "ours"
    assert SandboxOptions().applied(spec) == spec


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (3, "sandbox"),
        ({"nmae": "auto"}, "nmae"),
        ({"name": "lxc"}, "lxc"),
        ({"shell": "persistant"}, "persistent"),
        ({"limits": 5}, "limits"),
        ({"limits": {"memory": 1}}, "memory_bytes"),
        ({"limits": {"memory_bytes": 1 << 20}}, "33554432"),
        ({"limits": {"num_processes": True}}, "num_processes"),
        ({"limits": {"num_processes": 1}}, "16"),
    ],
)
def test_a_malformed_option_is_named(value: Any, field: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=field):
        SandboxOptions.parse(value)
