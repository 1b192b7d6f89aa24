"""What the doctor finds, on this machine and on others; backends by name, and what `auto` takes."""

import json
import os
import resource
import warnings
from typing import Any

import pytest
from machines import NO_LANDLOCK, NO_MOUNT, NO_PIVOT, NO_UNSHARE, NO_USER_NAMESPACES, run_on

from coding_gym.errors import InvalidArgumentError, SandboxError
from coding_gym.sandbox import Probe, Promise, SandboxSpec, backend_names, get_backend, open_sandbox
from coding_gym.sandbox.backend_checks import failed_probe
from coding_gym.sandbox.doctor import Diagnosis, Step, examine, shortages, try_out
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.process import NoIsolationWarning

pytestmark = pytest.mark.slow

_PROBE = """
import json
from coding_gym.sandbox.namespace import NamespaceBackend
found = NamespaceBackend().probe()
print(json.dumps([found.available, found.detail, found.remedy]))
"""
_EXAMINE = """
import json
from coding_gym.sandbox.doctor import examine
print(json.dumps(examine().to_json()))
"""


def test_a_backend_that_works_does_all_that_an_episode_needs() -> None:
    backend = get_backend("namespace")
    steps = try_out(backend, missing=backend.probe().missing)
    assert [step.detail for step in steps] == [""] * 11
    assert {"keep the network closed", "keep host files out of reach"} <= {s.name for s in steps}


def test_what_a_backend_does_not_promise_is_not_tried() -> None:
    with pytest.warns(UserWarning, match="isolates nothing"):
        steps = try_out(get_backend("process"), missing=tuple(Promise))
    assert [step.detail for step in steps] == [""] * 9
    assert not any(step.name.startswith("keep ") for step in steps)


def test_a_step_that_fails_is_the_last_and_names_what_helps() -> None:
    class Broken(NamespaceBackend):
        def open(self, spec: SandboxSpec, **_: Any) -> Any:
            sandbox = super().open(spec)
            sandbox.run("chmod 500 removed")
            return sandbox

    backend = Broken()
    probe = backend.probe()
    found = Diagnosis(name="namespace", probe=probe, steps=try_out(backend, missing=probe.missing))
    assert [step.ok for step in found.steps] == [True, True, False, True]
    assert not found.works
    assert found.failure.startswith("could not remove a folder of the template: `rm -rf removed")
    assert "Permission denied" in found.failure
    assert found.remedy.startswith("use Linux 6.6 or later")


def test_a_failed_step_names_its_remedy() -> None:
    probe = Probe(available=True, detail="")
    for name, said in (("keep the network closed", "do not use"), ("run a command", "again")):
        steps = (Step(name=name, ok=False, detail="refused"),)
        assert said in Diagnosis(name="own", probe=probe, steps=steps).remedy


def test_a_backend_that_does_not_open_says_so() -> None:
    class Closed(NamespaceBackend):
        def open(self, spec: SandboxSpec, **_: Any) -> Any:
            raise SandboxError(f"no room for {len(spec.layers)} layers")

    (step,) = try_out(Closed(), missing=())
    assert (step.ok, step.detail) == (False, "no room for 1 layers")
    failure = str(failed_probe(Closed().open))
    assert failure.startswith("Probe(available=False, detail='no room for 0 layers'")
    assert failed_probe(get_backend("namespace").open) is None


@pytest.mark.parametrize(
    ("machine", "step"),
    [
        (NO_UNSHARE, "create a user namespace"),
        (NO_PIVOT, "change the root"),
        (NO_MOUNT, "create a mount namespace"),
    ],
)
def test_a_machine_that_forbids_a_step_is_told_which(machine: str, step: str) -> None:
    ended = run_on(machine, _PROBE)
    assert ended.stderr == ""
    is_available, detail, remedy = json.loads(ended.stdout)
    assert not is_available
    assert step in detail
    assert remedy


def test_the_doctor_of_a_machine_without_namespaces_names_the_command_that_helps() -> None:
    ended = run_on(NO_USER_NAMESPACES, _EXAMINE)
    assert ended.stderr == ""
    report = json.loads(ended.stdout)
    namespace = report["backends"]["namespace"]
    assert not namespace["works"]
    assert "create a user namespace" in namespace["failure"]
    assert namespace["remedy"] == "run `sudo sysctl -w user.max_user_namespaces=65536`"
    assert namespace["steps"] == []
    assert report["automatic"] in {"landlock", ""}


def test_the_report_is_json_and_names_the_automatic_choice() -> None:
    report = json.loads(json.dumps(examine(num_episodes=1).to_json()))
    assert report["automatic"] == "namespace"
    assert set(report["backends"]) == set(backend_names())
    assert report["backends"]["process"]["missing"][0] == "HOST_FILES"
    assert report["shortages"] == []
    assert report["cgroups"]


def test_limits_that_many_episodes_would_meet_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {resource.RLIMIT_NOFILE: (1024, 4096), resource.RLIMIT_NPROC: (500, 500)}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits[kind])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getuid", lambda: 987654321)  # of nobody, who runs no threads
    assert [lack for lack in shortages(20) if "namespaces" not in lack.limit] == []
    files, processes = (lack for lack in shortages(500) if "namespaces" not in lack.limit)
    assert (files.limit, files.has, files.needs) == ("open files", 1024, 2064)
    assert files.remedy == "run `ulimit -n 2064` in the shell that starts the trainer"
    assert (processes.limit, processes.has, processes.needs) == ("processes", 500, 4000)
    assert "/etc/security/limits.conf" in processes.remedy


_CHOOSE = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox import SandboxSpec, get_backend, open_sandbox
try:
    with open_sandbox(SandboxSpec()) as sandbox:
        print(get_backend().name, sandbox.run("echo ran").output, end="")
except SandboxUnavailableError as error:
    print("problem:", error.problem)
    print("remedy:", error.remedy)
"""


def test_automatic_choice_isolates_and_does_not_warn() -> None:
    assert get_backend("auto").name == "namespace"
    assert get_backend().name == "namespace"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_sandbox(SandboxSpec()) as sandbox:
            assert sandbox.workdir == "/workspace"


@pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")
@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("namespace", {"shell": "interactive"}, "shell must be"),
        ("landlock", {"image": "x"}, "cannot run the image 'x'; use 'namespace'"),
        ("docker", {"shell": "persistent"}, "persistent"),
        ("apptainer", {"shell": "persistent"}, "no persistent shells"),
        ("process", {"image": "some.tar"}, "cannot run the image"),
    ],
)
def test_what_a_backend_cannot_do_is_refused(name: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        get_backend(name).open(SandboxSpec(**fields))


def test_no_isolation_must_be_named_and_warns() -> None:
    with (
        pytest.warns(NoIsolationWarning, match="isolates nothing"),
        open_sandbox(SandboxSpec(), backend="process") as sandbox,
    ):
        assert sandbox.run("echo ran").output == "ran\n"


@pytest.mark.skipif(landlock_rules.abi() == 0, reason="the kernel does not enforce Landlock")
@pytest.mark.parametrize("machine", [NO_UNSHARE, NO_USER_NAMESPACES])
def test_where_namespaces_are_forbidden_landlock_is_taken_and_that_is_told(machine: str) -> None:
    ended = run_on(machine, _CHOOSE)
    assert ended.stderr == ""
    told, ran = ended.stdout.splitlines()
    assert told.startswith("WARNING sandboxes are of the 'landlock' backend: could not create a ")
    assert ran == "landlock ran"


def test_where_nothing_isolates_the_error_says_what_would_mend_the_best() -> None:
    ended = run_on(NO_UNSHARE + NO_LANDLOCK, _CHOOSE)
    assert ended.stderr == ""
    problem, remedy = ended.stdout.splitlines()
    assert problem.startswith(
        "problem: no sandbox works on this machine: could not create a user namespace: "
    )
    assert len(remedy) > len("remedy: ")
