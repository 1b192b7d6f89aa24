"""Every backend that this machine can run is held to the one suite, as its probe declares."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import (
    Probe,
    Promise,
    SandboxBackend,
    SandboxSpec,
    Snapshot,
    backend_names,
    get_backend,
)
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.namespace_sandbox import NamespaceSandbox
from coding_gym.sandbox.process import ProcessBackend
from coding_gym.testing import SandboxCheck, hold, sandbox_checks

pytestmark = pytest.mark.filterwarnings("ignore::coding_gym.sandbox.process.NoIsolationWarning")

# Docker's checks need an engine of their own: tests/sandbox/containers.
_ELSEWHERE = {"docker"}
BACKENDS: dict[str, SandboxBackend] = {
    name: get_backend(name) for name in backend_names() if name not in _ELSEWHERE
}
# What old kernels get without being asked, tried on this one too.
BACKENDS["namespace-on-disk"] = NamespaceBackend(changes="disk")


@cache
def probe(name: str) -> Probe:
    return BACKENDS[name].probe()


@pytest.fixture
def conforming(request: pytest.FixtureRequest) -> tuple[SandboxBackend, Probe]:
    found = probe(request.param)
    if not found.available:
        pytest.skip(f"{request.param}: {found.detail}; {found.remedy}")
    return BACKENDS[request.param], found


@pytest.mark.parametrize("conforming", BACKENDS, indirect=True)
@pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.name)
def test_backend_keeps_the_contract(
    conforming: tuple[SandboxBackend, Probe], check: SandboxCheck
) -> None:
    backend, found = conforming
    hold(check, backend, missing=found.missing)


class Waiting(NamespaceBackend):
    """Gives a bash that waits to whoever asks for a fresh one."""

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> NamespaceSandbox:
        if spec.shell == "fresh":
            spec = replace(spec, shell="waiting")
        return super().open(spec, snapshot=snapshot)


OF_COMMANDS = [
    check
    for check in sandbox_checks()
    if check.run.__module__.endswith(("_output", "_commands", "_ends", "_limits"))
]


@pytest.mark.parametrize("check", OF_COMMANDS, ids=lambda check: check.name)
def test_a_waiting_bash_keeps_the_contract_too(check: SandboxCheck) -> None:
    found = probe("namespace")
    if not found.available:
        pytest.skip(found.detail)
    hold(check, Waiting(), missing=found.missing)


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_pickle(name: str) -> None:
    copied = pickle.loads(pickle.dumps(BACKENDS[name]))  # noqa: S301 - made on the line
    assert copied.name == BACKENDS[name].name


def test_there_are_enough_checks_and_each_is_a_claim() -> None:
    names = [check.name for check in sandbox_checks()]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


def test_every_promise_has_a_check() -> None:
    assert {check.promise for check in sandbox_checks()} - {None} == set(Promise)


def _check(works: bool, *, is_moot: bool = False) -> SandboxCheck:
    def run(_: SandboxBackend) -> None:
        assert works

    return SandboxCheck("a_claim", run, Promise.NO_NETWORK, lambda: is_moot)


def _refuses(action: Callable[[], None]) -> bool:
    try:
        action()
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize(
    ("works", "is_declared", "is_moot", "is_refused"),
    [
        (True, False, False, False),
        (False, False, False, True),
        (True, True, False, True),
        (True, True, True, False),
        (False, True, False, False),
    ],
)
def test_a_backend_is_held_to_what_it_declares(
    works: bool, is_declared: bool, is_moot: bool, is_refused: bool
) -> None:
    missing = (Promise.NO_NETWORK,) if is_declared else (Promise.CPU_LIMIT,)
    check = _check(works, is_moot=is_moot)
    assert _refuses(lambda: hold(check, ProcessBackend(), missing=missing)) is is_refused


def test_an_error_of_a_backend_is_not_taken_for_a_missing_promise() -> None:
    def run(_: SandboxBackend) -> None:
        raise InvalidArgumentError("ours")

    check = SandboxCheck("a_claim", run, Promise.NO_NETWORK)
    with pytest.raises(InvalidArgumentError):
        hold(check, ProcessBackend(), missing=(Promise.NO_NETWORK,))


def test_the_probe_is_asked_where_nobody_said_what_is_missing() -> None:
    hold(_check(False), ProcessBackend())
