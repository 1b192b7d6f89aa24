"""How a backend is held to the promises that it declares."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import pytest

from coding_gym.sandbox import Promise


@contextmanager
def held_to(
    promise: Promise | None, missing: Collection[Promise], may_hold: Callable[[], bool]
) -> Iterator[None]:
    """Runs a test in its block, which must fail where the test's promise is declared missing.

    An error other than a failed assertion is an error in any case.
    """
    if promise not in missing:
        yield
        return
    try:
        yield
    except (AssertionError, pytest.fail.Exception):
        return
    if not may_hold():
        pytest.fail(f"{promise!r} is declared missing, but its test passes")
