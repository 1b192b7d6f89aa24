"""What the doctor reports of this machine and of others; backends by name; the automatic choice."""

import json
import os
import pickle
import resource
import warnings
from typing import Any

import pytest
from sandbox_fixtures import NO_LANDLOCK, NO_MOUNT, NO_PIVOT, NO_UNSHARE, NO_USER_NAMESPACES, run_on

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import SandboxSpec, backend_names, get_backend, open_sandbox
from coding_gym.sandbox.doctor import Diagnosis, examine, shortages, try_out
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.process import NoIsolationWarning

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
def test_a_working_backend_passes_every_step() -> None:
    backend = get_backend("namespace")
    steps = try_out(backend, missing=backend.probe().missing)
    assert len(steps) > 8
    assert all(step.ok for step in steps)


@pytest.mark.slow
def test_a_failed_step_is_reported_with_a_remedy() -> None:
    class Broken(NamespaceBackend):
        def open(self, spec: SandboxSpec, **_: Any) -> Any:
            sandbox = super().open(spec)
            sandbox.run("chmod 500 removed")
            return sandbox

    probe = Broken().probe()
    steps = try_out(Broken(), missing=probe.missing)
    found = Diagnosis(name="namespace", probe=probe, steps=steps)
    assert [step.ok for step in found.steps].count(False) == 1
    assert not found.works
    assert found.failure
    assert found.remedy


@pytest.mark.slow
@pytest.mark.parametrize("machine", [NO_UNSHARE, NO_PIVOT, NO_MOUNT, NO_USER_NAMESPACES])
def test_a_machine_without_namespaces_gets_a_remedy(machine: str) -> None:
    ended = run_on(machine, _EXAMINE)
    assert ended.stderr == ""
    report = json.loads(ended.stdout)
    namespace = report["backends"]["namespace"]
    assert (namespace["works"], namespace["steps"]) == (False, [])
    assert namespace["failure"]
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
    monkeypatch.setattr(os, "getuid", lambda: 987654321)  # of nobody, who runs no threads
    assert [lack for lack in shortages(20) if "namespaces" not in lack.limit] == []
    files, processes = (lack for lack in shortages(500) if "namespaces" not in lack.limit)
    assert (files.has, files.needs, processes.has, processes.needs) == (1024, 2064, 500, 4000)
    assert "2064" in files.remedy


def test_the_automatic_choice_isolates_and_does_not_warn() -> None:
    assert get_backend("auto").name == get_backend().name == "namespace"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_sandbox(SandboxSpec()) as sandbox:
            assert sandbox.workdir == "/workspace"


@pytest.mark.parametrize("name", backend_names())
def test_backends_pickle(name: str) -> None:
    assert pickle.loads(pickle.dumps(get_backend(name))).name == name  # noqa: S301 - made here


@pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")
@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("namespace", "shell", "interactive"),
        ("landlock", "image", "x"),
        ("docker", "shell", "persistent"),
        ("process", "image", "some.tar"),
    ],
)
def test_unsupported_fields_are_refused(name: str, field: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=field):
        get_backend(name).open(SandboxSpec(**{field: value}))


def test_no_isolation_must_be_named_and_warns() -> None:
    with (
        pytest.warns(NoIsolationWarning),
        open_sandbox(SandboxSpec(), backend="process") as sandbox,
    ):
        assert sandbox.run("echo ran").output == "ran\n"


@pytest.mark.slow
@pytest.mark.skipif(landlock_rules.abi() == 0, reason="the kernel does not enforce Landlock")
@pytest.mark.parametrize("machine", [NO_UNSHARE, NO_USER_NAMESPACES])
def test_landlock_replaces_namespaces_with_a_warning(machine: str) -> None:
    ended = run_on(machine, _CHOOSE)
    assert (ended.stdout, ended.stderr) == ("WARNING\nlandlock ran\n", "")


@pytest.mark.slow
def test_a_machine_without_isolation_gets_problem_and_remedy() -> None:
    ended = run_on(NO_UNSHARE + NO_LANDLOCK, _CHOOSE)
    assert (ended.stdout, ended.stderr) == ("unavailable\n", "")
