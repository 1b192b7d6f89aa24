"""Backends by name, and what the doctor says of them."""

import os
import subprocess
import sys
import warnings

import pytest

from coding_gym.errors import UnknownNameError
from coding_gym.sandbox import SandboxSpec, backend_names, get_backend, open_sandbox
from coding_gym.sandbox.doctor import diagnose
from coding_gym.sandbox.process import NoIsolationWarning

# Forbids what a hardened machine forbids, then asks the backend.
_FORBIDDEN = """
import sys
from coding_gym.sandbox.zygote import seccomp, syscalls
from coding_gym.sandbox import SandboxSpec, get_backend, open_sandbox
from coding_gym.errors import SandboxUnavailableError

syscalls.prctl(38, 1)
syscalls.install_filter(seccomp.program(syscalls.machine()))
probe = get_backend("namespace").probe()
print(probe.available, probe.detail, probe.remedy, sep="|")
try:
    open_sandbox(SandboxSpec())
except SandboxUnavailableError as error:
    print(error)
"""


def test_automatic_choice_isolates_and_does_not_warn() -> None:
    assert get_backend("auto").name == "namespace"
    assert get_backend().name == "namespace"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_sandbox(SandboxSpec()) as sandbox:
            assert sandbox.workdir == "/workspace"


def test_every_backend_has_the_name_it_is_asked_for_by() -> None:
    assert set(backend_names()) >= {"namespace", "process"}
    for name in backend_names():
        assert get_backend(name).name == name


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="'docker-in-docker'; there are auto, namespace"):
        get_backend("docker-in-docker")


def test_no_isolation_must_be_named_and_warns() -> None:
    with (
        pytest.warns(NoIsolationWarning, match="isolates nothing"),
        open_sandbox(SandboxSpec(), backend="process") as sandbox,
    ):
        assert sandbox.run("echo ran").output == "ran\n"


def test_the_doctor_tries_every_backend() -> None:
    report = dict(diagnose())
    assert set(report) == set(backend_names())
    assert report["namespace"].available
    assert report["namespace"].remedy == ""
    assert "memory limit" in report["namespace"].missing
    assert "files" in report["process"].missing


def test_a_machine_that_forbids_namespaces_is_told_what_to_do() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FORBIDDEN], capture_output=True, text=True, env=dict(os.environ)
    )
    assert ended.stderr == ""
    probed, refused = ended.stdout.splitlines()
    available, detail, remedy = probed.split("|")
    assert available == "False"
    assert detail.startswith("could not create a user namespace: ")
    assert "Operation not permitted" in detail
    assert remedy
    assert refused.startswith("no sandbox works on this machine: could not create a user namespace")
    assert refused.endswith(remedy)


def test_importing_the_sandbox_starts_nothing_and_loads_little() -> None:
    script = (
        "import sys, coding_gym.sandbox; from pathlib import Path; "
        "print(Path('/proc/self/task').exists() and Path("
        "f'/proc/self/task/{__import__(\"os\").getpid()}/children').read_text()); "
        "print(sorted({'git', 'docker', 'pydantic', 'torch', 'ray'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout.split("\n") == ["", "[]", ""]
