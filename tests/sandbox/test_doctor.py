"""What the doctor reports of this machine and of others; backends by name; the automatic choice."""

import json
import os
import warnings
from typing import Any

import pytest
from sandbox_fixtures import NO_LANDLOCK, NO_MOUNT, NO_UNSHARE, NO_USER_NAMESPACES, run_on

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxSpec, backend_names, get_backend, open_sandbox
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.select import probe_backends

_EXAMINE = """
import json
from dataclasses import asdict
from coding_gym.sandbox.select import probe_backends
probes, automatic = probe_backends()
print(json.dumps({"namespace": asdict(probes["namespace"]), "automatic": automatic}))
"""
_CHOOSE = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s")
from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec, get_backend, open_sandbox
try:
    with open_sandbox(SandboxSpec()) as sandbox:
        print(get_backend().name, sandbox.run("echo ran").output, end="")
except SandboxUnavailableError as error:
    print(error.problem and error.remedy and "unavailable")
"""


@pytest.mark.slow
@pytest.mark.parametrize("machine", [NO_UNSHARE, NO_MOUNT])
def test_a_machine_without_namespaces_gets_a_remedy(machine: str) -> None:
    ended = run_on(machine, _EXAMINE)
    assert ended.stderr == ""
    report = json.loads(ended.stdout)
    namespace = report["namespace"]
    assert not namespace["available"]
    assert namespace["detail"]
    assert namespace["remedy"]
    assert report["automatic"] in {"landlock", ""}


@pytest.mark.slow
def test_every_backend_is_probed_and_the_automatic_one_named() -> None:
    probes, automatic = probe_backends()
    assert automatic == "namespace"
    assert set(probes) == set(backend_names())


def test_the_automatic_choice_isolates_and_does_not_warn() -> None:
    assert get_backend("auto").name == get_backend().name == "namespace"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_sandbox(SandboxSpec()) as sandbox:
            assert sandbox.workdir == "/workspace"


_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="landlock needs root")


@pytest.mark.parametrize(
    ("name", "fields", "named"),
    [
        ("namespace", {"shell": "interactive"}, "shell"),
        pytest.param("landlock", {"image": "x"}, "image", marks=_ROOT),
    ],
)
def test_unsupported_fields_are_refused(name: str, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        get_backend(name).open(SandboxSpec(**fields))


@pytest.mark.slow
@pytest.mark.skipif(landlock_rules.abi() == 0, reason="the kernel does not enforce Landlock")
@pytest.mark.parametrize("machine", [NO_UNSHARE, NO_USER_NAMESPACES])
def test_landlock_replaces_namespaces_for_root_with_a_warning(machine: str) -> None:
    ended = run_on(machine, _CHOOSE)
    expected = "WARNING\nlandlock ran\n" if os.geteuid() == 0 else "unavailable\n"
    assert (ended.stdout, ended.stderr) == (expected, "")


@pytest.mark.slow
def test_a_machine_without_isolation_gets_problem_and_remedy() -> None:
    ended = run_on(NO_UNSHARE + NO_LANDLOCK, _CHOOSE)
    assert (ended.stdout, ended.stderr) == ("unavailable\n", "")
