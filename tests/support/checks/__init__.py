"""Conformance checks that anyone's sandbox backend can run.

    import pytest
    from checks import hold, sandbox_checks

    @pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.name)
    def test_my_backend_conforms(check):
        hold(check, MyBackend())

A check is a function of a backend whose name is what it claims. It raises ``AssertionError`` where
the claim does not hold. `hold` runs it, and where the backend's probe declares that it lacks the
check's `Promise`, wants it to fail. Nothing is needed but bash, git, the usual small programs, this
package, and a backend that pickles; none does lasting harm where there is no isolation.
"""

from checks import (
    sandbox_commands,
    sandbox_ends,
    sandbox_files,
    sandbox_images,
    sandbox_isolation,
    sandbox_layers,
    sandbox_limits,
    sandbox_output,
    sandbox_shells,
    sandbox_siblings,
    sandbox_snapshots,
)
from checks.claims import SandboxCheck, hold

__all__ = ["SandboxCheck", "hold", "sandbox_checks"]

_MODULES = (
    sandbox_output,
    sandbox_commands,
    sandbox_files,
    sandbox_layers,
    sandbox_ends,
    sandbox_limits,
    sandbox_isolation,
    sandbox_siblings,
    sandbox_shells,
    sandbox_snapshots,
    sandbox_images,
)


def sandbox_checks() -> tuple[SandboxCheck, ...]:
    """Returns the checks of the contract in `coding_gym.sandbox.protocol`."""
    return tuple(
        value
        for module in _MODULES
        for value in vars(module).values()
        if isinstance(value, SandboxCheck)
    )
