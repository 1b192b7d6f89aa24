"""Conformance checks that anyone's sandbox backend can run.

    import pytest
    from coding_gym.testing import sandbox_checks

    @pytest.mark.parametrize("check", sandbox_checks(), ids=lambda check: check.__name__)
    def test_my_backend_conforms(check):
        check(MyBackend())

A check is a function of a backend whose name is what it claims. It raises ``AssertionError`` where
the claim does not hold. Needs nothing but bash, the usual small programs, and this package.
"""

from coding_gym.testing import sandbox_commands, sandbox_files
from coding_gym.testing.claims import SandboxCheck

__all__ = ["SandboxCheck", "sandbox_checks"]


def sandbox_checks() -> tuple[SandboxCheck, ...]:
    """Returns the checks of the contract in `coding_gym.sandbox.protocol`."""
    return tuple(
        value
        for module in (sandbox_files, sandbox_commands)
        for value in vars(module).values()
        if getattr(value, "is_claim", False)
    )
