"""The automatic backend is held to the one suite, and the suite to what it says of itself."""

from contextlib import nullcontext

import pytest
from checks import SandboxCheck, hold, sandbox_checks
from episodes import raising

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Probe, Promise, SandboxBackend, get_backend
from coding_gym.sandbox.process import ProcessBackend


@pytest.fixture(scope="module")
def probe() -> Probe:
    found = get_backend("auto").probe()
    assert found.available, f"{found.detail}; {found.remedy}"
    return found


@pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.name)
def test_automatic_backend_keeps_the_contract(check: SandboxCheck, probe: Probe) -> None:
    hold(check, get_backend("auto"), missing=probe.missing)


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
    with pytest.raises(AssertionError) if is_refused else nullcontext():
        hold(check, ProcessBackend(), missing=missing)


def test_an_error_of_a_backend_is_not_taken_for_a_missing_promise() -> None:
    fails = raising(InvalidArgumentError("ours"))
    check = SandboxCheck("a_claim", fails, Promise.NO_NETWORK)
    with pytest.raises(InvalidArgumentError):
        hold(check, ProcessBackend(), missing=(Promise.NO_NETWORK,))


def test_the_probe_is_asked_where_nobody_said_what_is_missing() -> None:
    hold(_check(False), ProcessBackend())
