"""Each promise has a test, and a backend is held to what it declares."""

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from promises import held_to

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Promise

_FAILS = pytest.raises((AssertionError, pytest.fail.Exception))


def test_every_promise_has_a_test() -> None:
    texts = [path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    marker = r"^@pytest\.mark\.promise\(Promise\.(\w+)"
    marked = re.findall(marker, "\n".join(texts), re.MULTILINE)
    assert {*marked} == {promise.name for promise in Promise}


@pytest.mark.parametrize(
    ("passes", "is_declared", "may_hold", "outcome"),
    [
        (True, False, False, nullcontext()),
        (False, False, False, _FAILS),
        (True, True, False, _FAILS),
        (True, True, True, nullcontext()),
        (False, True, False, nullcontext()),
    ],
)
def test_a_backend_is_held_to_what_it_declares(
    passes: bool, is_declared: bool, may_hold: bool, outcome: AbstractContextManager[Any]
) -> None:
    missing = {Promise.DISK_LIMIT} if is_declared else {Promise.OWN_PYTHON}
    with outcome, held_to(Promise.DISK_LIMIT, missing, lambda: may_hold):
        assert passes


def test_an_error_is_no_missing_promise() -> None:
    with pytest.raises(InvalidArgumentError), held_to(Promise.OWN_IMAGE, [*Promise], lambda: False):
        raise InvalidArgumentError("unexpected")
