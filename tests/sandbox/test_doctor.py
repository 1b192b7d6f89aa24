"""What the doctor reports of this machine and of others; backends by name; the automatic choice."""

import json
import os
import resource
import warnings
from typing import Any

import pytest
from sandbox_fixtures import NO_LANDLOCK, NO_MOUNT, NO_UNSHARE, NO_USER_NAMESPACES, run_on

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxSpec, backend_names, get_backend, open_sandbox
from coding_gym.sandbox.doctor import examine, shortages
from coding_gym.sandbox.inside import landlock_rules

_EXAMINE = """
import json
from coding_gym.sandbox.doctor import examine
print(json.dumps(examine().to_json()))
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
    namespace = report["backends"]["namespace"]
    assert not namespace["works"]
    assert namespace["detail"]
    assert namespace["remedy"]
    assert report["automatic"] in {"landlock", ""}


@pytest.mark.slow
def test_the_report_is_json_and_names_the_automatic_choice() -> None:
    report = json.loads(json.dumps(examine(num_episodes=1).to_json()))
    assert report["automatic"] == "namespace"
    assert set(report["backends"]) == set(backend_names())
    assert report["shortages"] == []


def test_limits_that_many_episodes_would_meet_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {resource.RLIMIT_NOFILE: (1024, 4096), resource.RLIMIT_NPROC: (500, 500)}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[kind])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert shortages(20) == ()
    files, processes = shortages(500)
    assert "2064 open files" in files
    assert "4000 processes" in processes


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
