"""Backends that are not the automatic choice are held to the suite, or to what differs in them.

Docker's checks need an engine of their own: tests/sandbox/containers.
"""

import pickle
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from checks import SandboxCheck, hold, sandbox_checks
from sandbox_scene import MakeLayer

from coding_gym.sandbox import (
    Mount,
    Probe,
    Promise,
    SandboxBackend,
    SandboxSpec,
    Snapshot,
    backend_names,
    default_interpreter,
    get_backend,
)
from coding_gym.sandbox.landlock import LandlockBackend
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.served_sandbox import ServedSandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning"),
]


class Waiting(NamespaceBackend):
    """Gives a bash that waits to whoever asks for a fresh one."""

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        if spec.shell == "fresh":
            spec = replace(spec, shell="waiting")
        return super().open(spec, snapshot=snapshot)


BACKENDS: dict[str, SandboxBackend] = {
    "landlock": get_backend("landlock"),
    "apptainer": get_backend("apptainer"),
    "process": get_backend("process"),
    # What old kernels get without being asked, tried on this one too.
    "namespace-on-disk": NamespaceBackend(changes="disk"),
    "waiting": Waiting(),
    # Has system calls for truncation and the network that a Landlock of ABI 2 does not know.
    "landlock-2": LandlockBackend(abi=2),
    # Has no scopes: processes are found one by one.
    "landlock-5": LandlockBackend(abi=5),
}
# Checks by module, of those backends that share the rest with another one.
_OF_MODULES = {
    "process": ("output", "commands", "files", "layers", "ends", "shells", "snapshots"),
    "namespace-on-disk": ("layers", "snapshots", "limits"),
    "waiting": ("output", "commands", "ends", "limits", "snapshots"),
}
_BY_NAME = {
    "process": (
        "memory_is_bounded_and_the_sandbox_goes_on",
        "memory_is_that_of_all_processes_together",
        "a_sandbox_ends_with_its_owner_however_that_dies",
    ),
    "landlock-2": (
        "layers_are_never_written",
        "mounts_are_read_only",
        "files_of_the_host_cannot_be_written",
        "nothing_outside_is_reachable",
    ),
    "landlock-5": (
        "a_timeout_kills_what_ignores_signals_or_is_stopped",
        "a_timeout_kills_what_left_its_session",
        "what_left_its_session_ends_with_the_command",
        "what_is_left_running_is_killed_and_counted",
    ),
}


def _checks(name: str) -> Iterator[SandboxCheck]:
    for check in sandbox_checks():
        module = check.run.__module__.rpartition("sandbox_")[2]
        names, modules = _BY_NAME.get(name, ()), _OF_MODULES.get(name, ())
        if check.name in names or module in modules or not (names or modules):
            yield check


def _params() -> Iterator[Any]:
    for name in BACKENDS:
        if name == "apptainer" and shutil.which("apptainer") is None:
            continue
        for check in _checks(name):
            yield pytest.param(name, check, id=f"{name}-{check.name}")


@cache
def probe(name: str) -> Probe:
    return BACKENDS[name].probe()


@pytest.mark.parametrize(("name", "check"), list(_params()))
def test_backend_keeps_the_contract(name: str, check: SandboxCheck) -> None:
    found = probe(name)
    if not found.available:
        pytest.skip(f"{name}: {found.detail}; {found.remedy}")
    hold(check, BACKENDS[name], missing=found.missing)


def test_every_check_and_module_that_is_chosen_exists() -> None:
    names = {check.name for check in sandbox_checks()}
    names |= {check.run.__module__.rpartition("sandbox_")[2] for check in sandbox_checks()}
    chosen = [*_BY_NAME.values(), *_OF_MODULES.values()]
    assert [name for several in chosen for name in several if name not in names] == []


@pytest.mark.parametrize("name", ["namespace", "landlock", "process"])
def test_mounted_packages_of_the_interpreter_are_found(name: str, make_layer: MakeLayer) -> None:
    backend, python = get_backend(name), default_interpreter()
    if not backend.probe().available:
        pytest.skip(f"this machine has no {name} sandboxes")
    source = make_layer({"brought.py": "print('imported')"})
    mount = Mount(source=source, target=str(python.site_packages))
    with backend.open(SandboxSpec(python=python, mounts=(mount,))) as sandbox:
        assert sandbox.run("python -m brought").output == "imported\n"


@pytest.mark.parametrize("abi", [2, 5])
def test_an_older_landlock_says_what_it_does_not_keep(abi: int) -> None:
    found, newest = probe(f"landlock-{abi}"), probe("landlock")
    if not newest.available or Promise.HOST_PROCESSES in newest.missing:
        pytest.skip("the kernel has no Landlock with scopes")
    assert found.available
    assert set(found.missing) - set(newest.missing) == {Promise.HOST_PROCESSES}
    assert "host processes are out of reach needs Linux 6.12" in found.detail


@pytest.mark.parametrize("name", backend_names())
def test_backends_pickle(name: str) -> None:
    copied = pickle.loads(pickle.dumps(get_backend(name)))  # noqa: S301 - made on the line
    assert copied.name == name
